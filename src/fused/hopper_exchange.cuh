/* SPDX-License-Identifier: BSD-3-Clause */
/* How kernels of products exchange data between members: they store to the others' slots, add to
 * the counts there, and wait for their own counts. Nobody waits before it stores, because two
 * halves take turns (device/half.h). If the job is over, waits end, and the results are arbitrary.
 *
 * Other kernels may leave too few multiprocessors for all clusters to run at once, and the
 * remaining clusters begin when the first clusters have ended. So no cluster has work of its own
 * that members wait for: clusters and warps take the next tile, or the next piece of what is sent
 * or received, from counters, and what other members need is taken first. */
#ifndef WEFT_FUSED_HOPPER_EXCHANGE_CUH
#define WEFT_FUSED_HOPPER_EXCHANGE_CUH

#include "fused/hopper_tile.cuh"

/* A call, as the threads that exchange data see it. */
struct hopper_call {
    const struct weft_hopper_task *task;
    struct weft_gpu_abort abort;
    uint32_t first; /* the cluster's first tile; only thread 0 of its block 0 has it */
};

WEFT_DEVICE struct weft_hopper_words *words_of(const struct weft_hopper_task *task,
                                               uint32_t member) {
    return (struct weft_hopper_words *)weft_array_at(&task->exchange.words, (int)member);
}

WEFT_DEVICE struct weft_hopper_words *own_words(const struct weft_hopper_task *task) {
    return words_of(task, task->exchange.me);
}

/* --- Taking work ------------------------------------------------------------------------------ */

WEFT_DEVICE uint32_t take_tile(const struct weft_hopper_task *task) {
    return (uint32_t)weft_atom_add_relaxed_sys_u64(&own_words(task)->tiles, 1);
}

/* Takes a piece from a counter for all lanes of a warp, and returns it in the first lane. */
WEFT_DEVICE uint32_t take_piece(uint64_t *counter) {
    return weft_lane() == 0 ? (uint32_t)weft_atom_add_relaxed_sys_u64(counter, 1) : 0;
}

/* Calls work(piece) for the pieces of [0, count) that this warp takes from a counter. It takes a
 * piece before it works on the previous piece, so that it does not wait for the counter. */
template <class Work> WEFT_DEVICE void take_pieces(uint64_t *counter, uint32_t count, Work work) {
    uint32_t taken = take_piece(counter), piece;
    while ((piece = weft_warp_broadcast_u32(taken, 0)) < count) {
        taken = take_piece(counter);
        work(piece);
    }
}

/* The turns of a thread that loads. In block 0 it takes the tiles of the cluster, each a turn
 * early, so that nobody waits for the counter. */
struct turns {
    uint32_t turn, next;
};

/* Returns the tile of the next turn, as turn_tile. */
WEFT_DEVICE uint32_t turns_next(const struct hopper_call &call, const struct hopper_block &block,
                                struct turns *turns) {
    if (block.rank == 0) {
        turn_give(block, turns->turn, turns->next);
        turns->next = take_tile(call.task);
    }
    return turn_tile(block, turns->turn++);
}

/* --- The end of a call ------------------------------------------------------------------------ */

/* Called once by each block, after all of its threads. The last block counts the call, in which the
 * kinds from `first` to `last` were exchanged. */
WEFT_DEVICE void exchange_end(const struct hopper_call &call, enum weft_hopper_kind first,
                              enum weft_hopper_kind last) {
    struct weft_hopper_words *words = own_words(call.task);
    if (weft_atom_add_gpu_u64(&words->ended, 1) + 1 < weft_block_count())
        return;
    weft_st_relaxed_sys(&words->ended, (uint64_t)0);
    weft_st_relaxed_sys(&words->tiles, (uint64_t)0);
    weft_st_relaxed_sys(&words->pieces, (uint64_t)0);
    weft_st_relaxed_sys(&words->collected, (uint64_t)0);
    for (int kind = first; kind <= last; kind++) {
        uint64_t *epoch = &words->of[kind].epoch;
        weft_st_relaxed_sys(epoch, weft_ld_relaxed_sys(epoch) + 1);
    }
}

/* --- Chunks ----------------------------------------------------------------------------------- */

/* Waits for a chunk of a member. */
WEFT_DEVICE void await_chunk(const struct hopper_call &call, enum weft_hopper_kind kind,
                             uint32_t member, uint32_t chunk) {
    const struct weft_hopper_counts *counts = &own_words(call.task)->of[kind];
    uint64_t count = (weft_ld_relaxed_sys(&counts->epoch) + 1) * WEFT_HOPPER_SHARES;
    struct weft_spin spin = {};
    while (weft_ld_acquire_sys(&counts->arrived[member][chunk]) < count)
        if (!weft_spin(&spin, call.abort))
            return;
}

/* Adds to the count of a chunk at a member. Called by all lanes of the warp that has stored it. */
WEFT_DEVICE void count_chunk(const struct hopper_call &call, enum weft_hopper_kind kind,
                             uint32_t member, uint32_t chunk, uint64_t share) {
    struct weft_hopper_words *words = words_of(call.task, member);
    weft_warp_sync();
    if (weft_lane() == 0)
        weft_red_add_sys(&words->of[kind].arrived[call.task->exchange.me][chunk], share);
}

#endif
