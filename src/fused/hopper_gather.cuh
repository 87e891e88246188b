/* SPDX-License-Identifier: BSD-3-Clause */
/* All-gather in the kernel of a product: some warps of each block, which would have nothing to do,
 * push the member's shard to the others, and the thread that loads waits for theirs. The member's
 * own rows are multiplied first. */
#ifndef WEFT_FUSED_HOPPER_GATHER_CUH
#define WEFT_FUSED_HOPPER_GATHER_CUH

#include "fused/hopper_exchange.cuh"

/* --- Pushing: called by all lanes of a warp ------------------------------------------------------
 *
 * One warp in each block has too few loads under way for the link; with three, stores wait for the
 * link, and loads of factors wait for the stores. */

/* Returns the number of pieces in a chunk: as many as warps push. */
WEFT_DEVICE uint32_t pieces_of_chunk(void) {
    return weft_block_count() * WEFT_HOPPER_PUSHERS;
}

/* Copies the units of [0, count) that belong to a piece, with two loads of each lane under way. */
WEFT_DEVICE void push_units(char *to, const char *from, uint64_t count, uint32_t piece) {
    const uint32_t both = WEFT_HOPPER_PUSHED_UNITS;
    for (uint64_t i = piece * both + weft_lane(); i < count; i += pieces_of_chunk() * both) {
        uint64_t first = i * WEFT_HOPPER_UNIT, second = first + WEFT_WARP_LANES * WEFT_HOPPER_UNIT;
        bool has_second = i + WEFT_WARP_LANES < count;
        weft_bytes16 a = weft_ld_weak((const weft_bytes16 *)(from + first)), b = a;
        if (has_second)
            b = weft_ld_weak((const weft_bytes16 *)(from + second));
        weft_st_weak((weft_bytes16 *)(to + first), a);
        if (has_second)
            weft_st_weak((weft_bytes16 *)(to + second), b);
    }
}

/* Pushes a piece of a chunk, and adds its share to the chunk's count. */
WEFT_DEVICE void push_piece(const struct hopper_call &call, uint32_t member, uint32_t chunk,
                            uint32_t piece) {
    const struct weft_hopper_gather *gather = &call.task->gather;
    uint32_t me = call.task->exchange.me;
    uint64_t chunk_units = weft_hopper_chunk_units(gather), first = chunk * chunk_units;
    uint64_t left = first < gather->units ? gather->units - first : 0;
    uint64_t count = left < chunk_units ? left : chunk_units;
    char *slot = weft_array_at(&call.task->exchange.slots, (int)member) +
                 me * gather->units * WEFT_HOPPER_UNIT;
    push_units(slot + first * WEFT_HOPPER_UNIT, gather->shard + first * WEFT_HOPPER_UNIT, count,
               piece);
    count_chunk(call, WEFT_HOPPER_SHARDS, member, chunk,
                weft_hopper_share(piece, pieces_of_chunk()));
}

/* Pushes the pieces that this warp takes. The previous member needs the shard first. */
WEFT_DEVICE void push_shard(const struct hopper_call &call) {
    uint32_t n = call.task->tiles.members, me = call.task->exchange.me;
    uint32_t of_chunk = pieces_of_chunk(), of_member = WEFT_HOPPER_SHARD_CHUNKS * of_chunk;
    take_pieces(&own_words(call.task)->pieces, (n - 1) * of_member, [&](uint32_t piece) {
        push_piece(call, (me + n - 1 - piece / of_member) % n, piece % of_member / of_chunk,
                   piece % of_chunk);
    });
}

/* --- Waiting ---------------------------------------------------------------------------------- */

/* Waits for the shards of all members. No member leaves the call before that: a member that has all
 * shards knows that the others have finished the call before. */
WEFT_DEVICE void await_all(const struct hopper_call &call) {
    for (uint32_t member = 0; member < call.task->tiles.members; member++)
        for (uint32_t chunk = 0;
             chunk < WEFT_HOPPER_SHARD_CHUNKS && member != call.task->exchange.me; chunk++)
            await_chunk(call, WEFT_HOPPER_SHARDS, member, chunk);
}

/* The chunks of a member for which the loading thread has waited. */
struct chunks {
    uint32_t member, count;
};

/* Waits for the rows up to `end` of a member. Bulk loads then see them. */
WEFT_DEVICE void await_rows(const struct hopper_call &call, uint32_t member, uint32_t end,
                            struct chunks *have) {
    const struct weft_hopper_gather *gather = &call.task->gather;
    if (end > call.task->rows)
        end = call.task->rows;
    uint32_t last = (uint32_t)((end * gather->row_units - 1) / weft_hopper_chunk_units(gather));
    if (have->member != member)
        have->count = 0;
    have->member = member;
    for (; have->count <= last; have->count++)
        await_chunk(call, WEFT_HOPPER_SHARDS, member, have->count);
    weft_fence_async();
}

/* Loads the tiles that the cluster takes: this member's rows of A from its shard, the others' rows
 * from the slots. Called by one thread. */
template <int WIDTH, enum order ORDER>
WEFT_DEVICE void load_gathered(const struct hopper_call &call, const struct hopper_block &block) {
    const struct weft_hopper_task *task = call.task;
    struct place place = first_empty();
    struct chunks have = {task->exchange.me, 0};
    struct turns turns = {0, call.first};
    uint32_t count = weft_hopper_tile_count(&task->tiles), t;
    while ((t = turns_next(call, block, &turns)) < count) {
        struct weft_hopper_tile tile = weft_hopper_tile_at(&task->tiles, t);
        const struct weft_cu_tensor_map *map = &task->a;
        uint32_t y = tile_row(block, tile);
        if (tile.member != task->exchange.me) {
            await_rows(call, tile.member, y + WEFT_HOPPER_ROWS, &have);
            map = &task->exchanged;
            y += tile.member * task->rows;
        }
        load_tile<WIDTH, ORDER>(task, block, tile, map, y, &place);
    }
}

#endif
