/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions that push (coll/ring.h). The threads of a block have three roles:
 *
 *   pushers   store tile k of each other member's chunk into their ring there, for the next member
 *             first, and go on with tile k + 1;
 *   a warp    makes tile k known to its owners: a fence for all that has been stored so far, then a
 *             word each;
 *   folders   wait until all members' tiles k are there, fold them in the members' order, store the
 *             result, and give the tile's places back by a word each.
 *
 * Tiles are numbered from call to call. Who has a tile of a member knows that it has begun the call
 * and has read its part of that tile: so the result may be stored there, in place too. */
#define WEFT_KERNEL_THREADS
#include "coll/ring.h"
#include "transport/gpu_channel.cuh"
#include "coll/fold.cuh"
#include "coll/unit.cuh"

/* Pushers may be AHEAD tiles ahead of the warp that makes them known. */
enum { WARP = 32, AHEAD = 4 };

/* Barriers of some of a block's threads. */
enum ring_barrier { PUSHED = 1, KNOWN = PUSHED + AHEAD, FOLDED = KNOWN + AHEAD };

struct ring {
    struct weft_gpu_abort abort;
    const struct weft_gpu_channels *channels;
    const struct weft_gpu_collective *task;
    struct weft_ring_shape shape;
    uint32_t channel;
    uint32_t id, count; /* of this thread among those of its role */
    uint64_t first;     /* the number of the call's first tile */
    bool over;          /* the job is: threads go on, without waiting for other members */
};

/* A tile as it lies in the owner's chunk. */
struct ring_tile {
    size_t from, to; /* bytes behind `source`, and behind the owner's `dest` */
    uint32_t bytes;
};

/* Tile k of this block. */
WEFT_DEVICE struct ring_tile tile_of(const struct ring &ring, int owner, uint32_t k) {
    struct weft_ring_chunk chunk = weft_ring_chunk(ring.task, ring.channels->n, owner);
    size_t at = ((size_t)k * weft_block_count() + ring.channel) * ring.shape.tile_bytes;
    if (at >= chunk.bytes)
        return {chunk.from, chunk.to, 0};
    size_t rest = chunk.bytes - at;
    uint32_t bytes = rest < ring.shape.tile_bytes ? (uint32_t)rest : ring.shape.tile_bytes;
    return {chunk.from + at, chunk.to + at, bytes};
}

/* Where tile k of source 0 lies in the rings of an owner, and how far apart those of two sources
 * are. */
WEFT_DEVICE char *place_of(const struct ring &ring, int owner, uint32_t k) {
    char *rings =
        weft_gpu_channel_slot(ring.channels, owner, ring.channel * ring.shape.areas, 0, 0);
    return rings + (ring.first + k) % ring.shape.depth * ring.shape.place_bytes;
}
WEFT_DEVICE size_t place_step(const struct ring &ring) {
    return (size_t)ring.shape.depth * ring.shape.place_bytes;
}

/* The words of this channel at a member: `of` is who writes there. */
WEFT_DEVICE uint64_t *word_of(const struct ring &ring, int member, enum weft_gpu_channel_row row,
                              int of) {
    return &weft_gpu_channel_row(ring.channels, member, ring.channel, row)[of];
}

/* Units of a tile `apart` bytes apart, of which those before `bytes` are there. */
template <int count, bool plain>
WEFT_DEVICE void load_units(weft_bytes16 *units, const char *from, uint32_t bytes, uint32_t apart) {
    if (!plain)
        weft_units_load<count>(units, from, bytes, apart);
    WEFT_UNROLL
    for (uint32_t i = 0; i < count; i++)
        if (plain && i * apart < bytes)
            units[i] = weft_ld_weak((const weft_bytes16 *)(from + i * apart));
}

/* --- Pushers --------------------------------------------------------------------------------- */

/* A place in a ring is free when the tile that was in it has been folded. `known`: of its owner's
 * tiles that have been, when this was last looked at. */
WEFT_DEVICE void await_credit(struct ring *ring, const uint64_t *credit, uint64_t known,
                              uint32_t k) {
    struct weft_spin spin = {};
    while (!ring->over && known + ring->shape.depth <= ring->first + k) {
        ring->over = !weft_spin(&spin, ring->abort);
        known = weft_ld_relaxed_sys(credit);
    }
}

/* Whether all of a tile is whole units, aligned here and where it comes from or goes to. */
WEFT_DEVICE bool is_plain(const void *place, const struct ring_tile &tile) {
    return ((uintptr_t)place | tile.bytes) % 16 == 0;
}

/* The first units are on their way here while the credit is, too. */
template <int count, bool plain>
WEFT_DEVICE void push_units(struct ring *ring, int owner, uint32_t k,
                            const struct ring_tile &tile) {
    int me = ring->channels->me;
    const char *from = ring->task->source + tile.from;
    char *to = place_of(*ring, owner, k) + me * place_step(*ring);
    const uint64_t *credit = word_of(*ring, me, WEFT_GPU_CHANNEL_CREDIT, owner);
    uint64_t known = weft_ld_relaxed_sys(credit);
    uint32_t apart = ring->count * 16;
    WEFT_ROLLED
    for (uint32_t at = ring->id * 16; at < tile.bytes; at += count * apart) {
        weft_bytes16 units[count];
        load_units<count, plain>(units, from + at, tile.bytes - at, apart);
        if (at == ring->id * 16)
            await_credit(ring, credit, known, k);
        WEFT_UNROLL
        for (uint32_t i = 0; i < count; i++)
            if (at + i * apart < tile.bytes && !ring->over)
                weft_st_weak((weft_bytes16 *)(to + at + i * apart), units[i]);
    }
}

WEFT_DEVICE void push_tile(struct ring *ring, int owner, uint32_t k) {
    struct ring_tile tile = tile_of(*ring, owner, k);
    if (is_plain(ring->task->source + tile.from, tile))
        push_units<8, true>(ring, owner, k, tile);
    else
        push_units<1, false>(ring, owner, k, tile);
}

WEFT_DEVICE void push_tiles(struct ring *ring) {
    const struct weft_gpu_channels *channels = ring->channels;
    uint32_t meeting = ring->count + WARP;
    WEFT_ROLLED
    for (uint32_t k = 0; k < ring->shape.tiles; k++) {
        if (k >= AHEAD)
            weft_barrier_sync(KNOWN + k % AHEAD, meeting);
        WEFT_ROLLED
        for (int distance = 1; distance < channels->n; distance++)
            push_tile(ring, weft_gpu_member_after(channels->me, channels->n, distance), k);
        weft_barrier_arrive(PUSHED + k % AHEAD, meeting);
    }
}

/* --- The warp that makes tiles known --------------------------------------------------------- */

WEFT_DEVICE void tell_tiles(const struct ring &ring, uint32_t pushers) {
    const struct weft_gpu_channels *channels = ring.channels;
    WEFT_ROLLED
    for (uint32_t k = 0; k < ring.shape.tiles; k++) {
        weft_barrier_sync(PUSHED + k % AHEAD, pushers + WARP);
        if (k + AHEAD < ring.shape.tiles)
            weft_barrier_arrive(KNOWN + k % AHEAD, pushers + WARP);
        weft_fence_sys();
        for (int i = (int)ring.id; i < channels->n; i += WARP)
            if (i != channels->me)
                weft_st_relaxed_sys(word_of(ring, i, WEFT_GPU_CHANNEL_TILES, channels->me),
                                    ring.first + k + 1);
    }
}

/* --- Folders --------------------------------------------------------------------------------- */

/* Stores what has been folded, whole numbers. */
template <class T, bool plain>
WEFT_DEVICE void store_unit(char *to, number_vector unit, uint32_t bytes) {
    enum { N = sizeof unit / sizeof(T) };
    T numbers[N];
    if (plain)
        return weft_st_weak((number_vector *)to, unit);
    memcpy(numbers, &unit, sizeof unit);
    WEFT_UNROLL
    for (uint32_t i = 0; i < N; i++)
        if ((i + 1) * sizeof(T) <= bytes)
            weft_st_weak((T *)to + i, numbers[i]);
}

/* The dest of an all-reduce's result is that of all members, the next one's first. */
template <class T, int count, bool plain>
WEFT_DEVICE void store_results(const struct ring &ring, size_t to, const number_vector *units,
                               uint32_t bytes) {
    int me = ring.channels->me, n = ring.channels->n;
    uint32_t apart = ring.count * 16;
    bool spreads = ring.task->source_step == 0;
    WEFT_ROLLED
    for (int distance = spreads ? 1 : n; distance <= n; distance++) {
        int member = weft_gpu_member_after(me, n, distance);
        char *dest = spreads ? weft_array_of(&ring.task->dests, member) : ring.task->dest;
        WEFT_UNROLL
        for (uint32_t i = 0; i < count; i++)
            if (i * apart < bytes)
                store_unit<T, plain>(dest + to + i * apart, units[i], bytes - i * apart);
    }
}

/* The members' units in their order, those of SOURCES members under way at a time: `staged` is
 * where member 0's first is. */
template <class Operation, class T, int count, bool plain>
WEFT_DEVICE void fold_units(number_vector *results, const struct ring &ring, const char *own,
                            const char *staged, uint32_t bytes) {
    enum { SOURCES = 2 };
    int n = ring.channels->n;
    weft_unpacked<T, number_vector> so_far[count] = {};
    WEFT_ROLLED
    for (int s = 0; s < n; s += SOURCES) {
        weft_bytes16 loaded[SOURCES][count];
        WEFT_UNROLL
        for (int i = 0; i < SOURCES; i++)
            if (s + i < n)
                load_units<count, plain>(
                    loaded[i],
                    s + i == ring.channels->me ? own : staged + (s + i) * place_step(ring), bytes,
                    ring.count * 16);
        WEFT_UNROLL
        for (int i = 0; i < SOURCES * count; i++) {
            number_vector next;
            memcpy(&next, &loaded[i / count][i % count], sizeof next);
            if (s + i / count == 0)
                so_far[i % count] = unpack<T>(next);
            else if (s + i / count < n)
                fold_word<Operation>(&so_far[i % count], next);
        }
    }
    WEFT_UNROLL
    for (int i = 0; i < count; i++)
        results[i] = pack<Operation>(so_far[i], ring.task->divisor);
}

template <class Operation, class T, int count, bool plain>
WEFT_DEVICE void fold_all(const struct ring &ring, const char *staged,
                          const struct ring_tile &tile) {
    WEFT_ROLLED
    for (uint32_t at = ring.id * 16; at < tile.bytes; at += count * ring.count * 16) {
        number_vector results[count];
        fold_units<Operation, T, count, plain>(results, ring, ring.task->source + tile.from + at,
                                               staged + at, tile.bytes - at);
        store_results<T, count, plain>(ring, tile.to + at, results, tile.bytes - at);
    }
}

template <class Operation, class T>
WEFT_DEVICE void fold_tile(const struct ring &ring, uint32_t k) {
    struct ring_tile tile = tile_of(ring, ring.channels->me, k);
    const char *staged = place_of(ring, ring.channels->me, k);
    if (is_plain(ring.task->source + tile.from, tile) && is_plain(ring.task->dest + tile.to, tile))
        fold_all<Operation, T, sizeof(T) == 4 ? 4 : 3, true>(ring, staged, tile);
    else
        fold_all<Operation, T, 1, false>(ring, staged, tile);
}

/* Until the tiles k of all members are here, and seen by this thread. */
WEFT_DEVICE void await_tiles(struct ring *ring, uint32_t k) {
    int me = ring->channels->me;
    struct weft_spin spin = {};
    for (int i = (int)ring->id; i < ring->channels->n; i += (int)ring->count) {
        const uint64_t *tiles = word_of(*ring, me, WEFT_GPU_CHANNEL_TILES, i);
        while (i != me && !ring->over && weft_ld_acquire_sys(tiles) <= ring->first + k)
            ring->over = !weft_spin(&spin, ring->abort);
    }
}

/* Tiles before k have been read. */
WEFT_DEVICE void give_credit(const struct ring &ring, uint32_t k) {
    int me = ring.channels->me;
    for (int i = (int)ring.id; i < ring.channels->n; i += (int)ring.count)
        if (i != me)
            weft_st_relaxed_sys(word_of(ring, i, WEFT_GPU_CHANNEL_CREDIT, me), ring.first + k);
}

/* The barrier before a tile stands behind the one before it, too. */
template <class Operation, class T> WEFT_DEVICE void fold_tiles(struct ring *ring) {
    WEFT_ROLLED
    for (uint32_t k = 0; k < ring->shape.tiles; k++) {
        await_tiles(ring, k);
        weft_barrier_sync(FOLDED, ring->count);
        give_credit(*ring, k);
        if (!ring->over)
            fold_tile<Operation, T>(*ring, k);
    }
    weft_barrier_sync(FOLDED, ring->count);
    give_credit(*ring, ring->shape.tiles);
}

/* --- Kernels --------------------------------------------------------------------------------- */

/* Half of the threads fold; the first warp of the others tells. */
template <class Operation, class T> WEFT_DEVICE void work(struct ring *ring) {
    uint32_t thread = weft_block_thread(), folders = weft_block_threads() / 2;
    uint32_t pushers = weft_block_threads() - folders - WARP;
    if (thread < folders) {
        ring->id = thread, ring->count = folders;
        fold_tiles<Operation, T>(ring);
    } else if (thread < folders + WARP) {
        ring->id = thread - folders;
        tell_tiles(*ring, pushers);
    } else {
        ring->id = thread - folders - WARP, ring->count = pushers;
        push_tiles(ring);
    }
}

/* What an all-reduce has stored at others is there before the call ends, here and there. */
template <class Operation, class T>
WEFT_DEVICE void reduce(struct weft_gpu_abort abort, const struct weft_gpu_channels *channels,
                        const struct weft_gpu_collective *task, struct weft_ring_shape shape) {
    uint32_t channel = weft_block_index();
    struct weft_gpu_channel_head *head = weft_gpu_channel_head(channels, channels->me, channel);
    struct ring ring = {abort, channels, task, shape, channel, 0, 0, 0, false};
    uint64_t epoch = weft_channel_epoch_begin(&head->epoch);
    bool over;
    ring.first = weft_ld_relaxed_sys(&head->tiles);
    work<Operation, T>(&ring);
    if (task->source_step == 0) {
        weft_channel_tell_done(channels, channel, epoch);
        over = !weft_channel_await(abort, channels, channel, WEFT_GPU_CHANNEL_DONE, epoch);
    } else {
        over = weft_block_sync_any(ring.over);
    }
    if (over || weft_block_thread() != 0)
        return;
    weft_st_relaxed_sys(&head->tiles, ring.first + shape.tiles);
    if (task->source_step == 0)
        weft_st_relaxed_sys(&head->epoch, epoch);
}

#define RING_KERNEL(number, T)                                                                   \
    extern "C" __global__ void __launch_bounds__(WEFT_RING_THREADS, 1)                           \
        weftk_ring_sum_##number(struct weft_gpu_abort abort, struct weft_gpu_channels channels,  \
                                struct weft_gpu_collective task, struct weft_ring_shape shape) { \
        reduce<fold_sum, T>(abort, &channels, &task, shape);                                     \
    }
RING_KERNEL(f32, float)
RING_KERNEL(f64, double)
RING_KERNEL(bf16, weft_bf16)
RING_KERNEL(f16, weft_f16)
