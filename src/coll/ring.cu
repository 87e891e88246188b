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

/* The first units are on their way here while the credit is, too. */
WEFT_DEVICE void push_tile(struct ring *ring, int owner, uint32_t k) {
    enum { UNITS = 4 };
    int me = ring->channels->me;
    struct ring_tile tile = tile_of(*ring, owner, k);
    const char *from = ring->task->source + tile.from;
    weft_bytes16 units[UNITS];
    weft_bytes16 *to = (weft_bytes16 *)(place_of(*ring, owner, k) + me * place_step(*ring));
    const uint64_t *credit = word_of(*ring, me, WEFT_GPU_CHANNEL_CREDIT, owner);
    uint64_t known = weft_ld_relaxed_sys(credit);
    uint32_t nunits = (tile.bytes + 15) / 16, step = ring->count;
    for (uint32_t unit = ring->id; unit < nunits; unit += UNITS * step) {
        weft_units_load<UNITS>(units, from + unit * 16, tile.bytes - unit * 16, step * 16);
        if (unit == ring->id)
            await_credit(ring, credit, known, k);
        WEFT_UNROLL
        for (uint32_t i = 0; i < UNITS; i++)
            if (unit + i * step < nunits && !ring->over)
                weft_st_weak(&to[unit + i * step], units[i]);
    }
}

WEFT_DEVICE void push_tiles(struct ring *ring) {
    const struct weft_gpu_channels *channels = ring->channels;
    uint32_t meeting = ring->count + WARP;
    for (uint32_t k = 0; k < ring->shape.tiles; k++) {
        if (k >= AHEAD)
            weft_barrier_sync(KNOWN + k % AHEAD, meeting);
        for (int distance = 1; distance < channels->n; distance++) {
            int owner = channels->me + distance;
            push_tile(ring, owner < channels->n ? owner : owner - channels->n, k);
        }
        weft_barrier_arrive(PUSHED + k % AHEAD, meeting);
    }
}

/* --- The warp that makes tiles known --------------------------------------------------------- */

WEFT_DEVICE void tell_tiles(const struct ring &ring, uint32_t pushers) {
    const struct weft_gpu_channels *channels = ring.channels;
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
template <class T> WEFT_DEVICE void store_unit(char *to, number_vector unit, uint32_t bytes) {
    enum { N = sizeof unit / sizeof(T) };
    T numbers[N];
    if ((uintptr_t)to % sizeof unit == 0 && bytes >= sizeof unit)
        return weft_st_weak((number_vector *)to, unit);
    memcpy(numbers, &unit, sizeof unit);
    WEFT_UNROLL
    for (uint32_t i = 0; i < N; i++)
        if ((i + 1) * sizeof(T) <= bytes)
            weft_st_weak((T *)to + i, numbers[i]);
}

/* The dest of an all-reduce's result is that of all members, the next one's first. */
template <class T>
WEFT_DEVICE void store_result(const struct ring &ring, size_t to, number_vector unit,
                              uint32_t bytes) {
    int me = ring.channels->me, n = ring.channels->n;
    if (ring.task->source_step != 0)
        return store_unit<T>(ring.task->dest + to, unit, bytes);
    for (int distance = 1; distance <= n; distance++) {
        int member = me + distance < n ? me + distance : me + distance - n;
        store_unit<T>(weft_array_of(&ring.task->dests, member) + to, unit, bytes);
    }
}

/* The members' units in their order; `own` is this member's. */
template <class Operation, class T>
WEFT_DEVICE number_vector fold_units(const struct ring &ring, const char *staged, size_t step,
                                     number_vector own) {
    enum { SOURCES = sizeof(T) == 8 ? 3 : 4 };
    int me = ring.channels->me, n = ring.channels->n;
    weft_unpacked<T, number_vector> so_far;
    for (int s = 0; s < n; s += SOURCES) {
        number_vector next[SOURCES];
        WEFT_UNROLL
        for (int i = 0; i < SOURCES; i++)
            if (s + i < n)
                next[i] =
                    s + i == me ? own : weft_ld_weak((const number_vector *)(staged + i * step));
        WEFT_UNROLL
        for (int i = 0; i < SOURCES; i++)
            if (s + i == 0)
                so_far = unpack<T>(next[i]);
            else if (s + i < n)
                fold_word<Operation>(&so_far, next[i]);
        staged += SOURCES * step;
    }
    return pack<Operation>(so_far, ring.task->divisor);
}

template <class Operation, class T>
WEFT_DEVICE void fold_tile(const struct ring &ring, uint32_t k) {
    struct ring_tile tile = tile_of(ring, ring.channels->me, k);
    const char *staged = place_of(ring, ring.channels->me, k);
    const char *source = ring.task->source + tile.from;
    size_t step = place_step(ring);
    for (uint32_t at = ring.id * 16; at < tile.bytes; at += ring.count * 16) {
        weft_bytes16 loaded;
        number_vector own;
        weft_units_load<1>(&loaded, source + at, tile.bytes - at, 0);
        memcpy(&own, &loaded, sizeof own);
        number_vector result = fold_units<Operation, T>(ring, staged + at, step, own);
        store_result<T>(ring, tile.to + at, result, tile.bytes - at);
    }
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
