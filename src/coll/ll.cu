/* SPDX-License-Identifier: BSD-3-Clause */
/* Small collectives by packets. A block works on its share of the units with the blocks of its
 * number of the other members, by the channel of that number. Its threads stand in groups, and a
 * group has a thread for every unit of a tile: so the packets for all members leave at once, and
 * those of all members are waited for at once.
 *
 * A thread sends all that it has to before it waits for anything. A unit is read before it is
 * written, so a call may be in place. */
#define WEFT_KERNEL_THREADS
#include "coll/ll.h"
#include "coll/ll.cuh"
#include "coll/fold.cuh"

/* Not unrolled: most calls go through these loops once. */
#ifdef __CUDACC__
#define ROLLED _Pragma("unroll 1")
#else
#define ROLLED
#endif

/* The block's share: its first bytes in source and dest, and how many it has in each member's
 * block. */
struct share {
    const char *source;
    char *dest;
    size_t source_step, dest_step;
    uint32_t bytes, units;
};

WEFT_DEVICE struct share share_of(const struct weft_gpu_collective &task, uint32_t units) {
    uint32_t at = weft_block_index() * units * 8, left = (uint32_t)task.bytes - at;
    uint32_t bytes = left < units * 8 ? left : units * 8;
    return {task.source + at, task.dest + at, task.source_step,
            task.dest_step,   bytes,          (bytes + 7) / 8};
}

WEFT_DEVICE uint64_t load(const struct share &share, int member, uint32_t unit) {
    const char *from = share.source + member * share.source_step + unit * 8;
    return weft_ll_load(from, share.bytes - unit * 8);
}

WEFT_DEVICE void store(const struct share &share, int member, uint32_t unit, uint64_t data) {
    weft_ll_store(share.dest + member * share.dest_step + unit * 8, share.bytes - unit * 8, data);
}

/* A thread's place: unit `unit` of each tile, member `group` of each round. */
struct place {
    uint32_t unit, tile, group, groups;
};

WEFT_DEVICE struct place place_of(uint32_t tile_shift) {
    uint32_t tile = 1u << tile_shift, id = weft_block_thread();
    return {id & (tile - 1), tile, id >> tile_shift, weft_block_threads() >> tile_shift};
}

/* What a block knows of a call. */
struct ll_call {
    struct share share;
    struct place place;
    int me, n;
    uint64_t *word, epoch;
    struct weft_ll ll;
};

WEFT_DEVICE struct ll_call call_of(const struct weft_gpu_channels &channels,
                                   const struct weft_gpu_collective &task,
                                   struct weft_ll_shape shape) {
    struct ll_call call = {};
    call.share = share_of(task, shape.share);
    call.place = place_of(shape.tile_shift);
    call.me = channels.me;
    call.n = channels.n;
    return call;
}

/* The member so many places behind this one. All begin with the next one: so no two members send to
 * the same one at a time. */
WEFT_DEVICE int member_at(const struct ll_call &call, uint32_t distance) {
    int member = call.me + (int)distance;
    return member < call.n ? member : member - call.n;
}

/* --- Sending --------------------------------------------------------------------------------- */

/* This thread's packets of a unit. `ahead`, if `loaded`, is the data of the first. */
WEFT_DEVICE void send_unit(const struct ll_call &call, uint32_t unit, bool loaded, uint64_t ahead) {
    ROLLED
    for (uint32_t d = 1 + call.place.group; d < (uint32_t)call.n; d += call.place.groups) {
        int member = member_at(call, d);
        weft_ll_put(&call.ll, member, unit, loaded ? ahead : load(call.share, member, unit));
        loaded = false;
    }
}

WEFT_DEVICE void send(const struct ll_call &call, uint64_t ahead) {
    const struct place &place = call.place;
    ROLLED
    for (uint32_t unit = place.unit; unit < call.share.units; unit += place.tile)
        send_unit(call, unit, unit == place.unit, ahead);
}

/* The loads of the first data and of the epoch are under way together. */
WEFT_DEVICE struct ll_call begin(const struct weft_gpu_channels &channels,
                                 const struct weft_gpu_collective &task,
                                 struct weft_ll_shape shape) {
    uint32_t channel = weft_block_index();
    struct ll_call call = call_of(channels, task, shape);
    uint64_t ahead = 0;
    if (call.place.unit < call.share.units)
        ahead = load(call.share, member_at(call, 1 + call.place.group), call.place.unit);
    call.word = &weft_gpu_channel_head(&channels, channels.me, channel)->packets;
    call.epoch = weft_channel_epoch_begin(call.word);
    call.ll = weft_ll_begin(&channels, channel, call.epoch);
    send(call, ahead);
    return call;
}

/* --- Receiving ------------------------------------------------------------------------------- */

/* A unit of a member's; false when the kernel is to give up. */
WEFT_DEVICE bool receive(const struct ll_call &call, int source, uint32_t unit, uint64_t *data,
                         struct weft_gpu_abort abort) {
    if (source != call.me)
        return weft_ll_receive(&call.ll, source, unit, data, abort);
    *data = load(call.share, source, unit);
    return true;
}

/* By the thread that has sent this member's unit, and behind that: dest may be source. The last one
 * is its own. */
WEFT_DEVICE bool gather_unit(const struct ll_call &call, uint32_t unit,
                             struct weft_gpu_abort abort) {
    ROLLED
    for (uint32_t d = 1 + call.place.group; d <= (uint32_t)call.n; d += call.place.groups) {
        uint64_t data;
        int source = member_at(call, d);
        if (!receive(call, source, unit, &data, abort))
            return false;
        store(call.share, source, unit, data);
    }
    return true;
}

WEFT_DEVICE void gather(const struct ll_call &call, struct weft_gpu_abort abort) {
    uint32_t unit = call.place.unit;
    while (unit < call.share.units && gather_unit(call, unit, abort))
        unit += call.place.tile;
}

extern "C" __global__ void __launch_bounds__(WEFT_GPU_CHANNEL_THREADS)
    weftk_ll_exchange(struct weft_gpu_abort abort, struct weft_gpu_channels channels,
                      struct weft_gpu_collective task, struct weft_ll_shape shape) {
    struct ll_call call = begin(channels, task, shape);
    gather(call, abort);
    weft_block_sync();
    weft_ll_end(&call.ll, &channels, call.epoch);
    weft_channel_epoch_store(call.word, call.epoch);
}

/* --- Broadcast ------------------------------------------------------------------------------- */

/* Every member says to the root that it has started, and so is done with the call before last, in
 * whose slots the root is to write. The word is nearly always there. */
WEFT_DEVICE void await_started(const struct weft_gpu_channels &channels, uint64_t epoch,
                               struct weft_gpu_abort abort) {
    const uint64_t *started =
        weft_gpu_channel_row(&channels, channels.me, weft_block_index(), WEFT_GPU_CHANNEL_STARTED);
    uint32_t n = (uint32_t)channels.n, me = (uint32_t)channels.me;
    for (uint32_t i = weft_block_thread(); i < n; i += weft_block_threads()) {
        struct weft_spin spin = {};
        while (i != me && weft_ld_relaxed_sys(&started[i]) < epoch - 1)
            if (!weft_spin(&spin, abort))
                break;
    }
    weft_block_sync();
}

WEFT_DEVICE void tell_started(const struct weft_gpu_channels &channels, int root, uint64_t epoch) {
    uint64_t *started =
        weft_gpu_channel_row(&channels, root, weft_block_index(), WEFT_GPU_CHANNEL_STARTED);
    if (weft_block_thread() == 0)
        weft_st_relaxed_sys(&started[channels.me], epoch);
}

/* To all members, this one included. */
WEFT_DEVICE void spread(const struct ll_call &call) {
    const struct place &place = call.place;
    ROLLED
    for (uint32_t unit = place.unit; unit < call.share.units; unit += place.tile) {
        uint64_t data = load(call.share, 0, unit);
        if (place.group == 0)
            store(call.share, 0, unit, data);
        ROLLED
        for (uint32_t d = 1 + place.group; d < (uint32_t)call.n; d += place.groups)
            weft_ll_put(&call.ll, member_at(call, d), unit, data);
    }
}

/* Each thread receives units, whatever its group. */
WEFT_DEVICE void take(const struct ll_call &call, int root, struct weft_gpu_abort abort) {
    uint64_t data;
    ROLLED
    for (uint32_t unit = weft_block_thread(); unit < call.share.units; unit += weft_block_threads())
        if (weft_ll_receive(&call.ll, root, unit, &data, abort))
            store(call.share, 0, unit, data);
}

extern "C" __global__ void __launch_bounds__(WEFT_GPU_CHANNEL_THREADS)
    weftk_ll_broadcast(struct weft_gpu_abort abort, struct weft_gpu_channels channels,
                       struct weft_gpu_collective task, struct weft_ll_shape shape) {
    struct ll_call call = call_of(channels, task, shape);
    call.word = &weft_gpu_channel_head(&channels, call.me, weft_block_index())->directed;
    call.epoch = weft_channel_epoch_begin(call.word);
    call.ll = weft_ll_begin(&channels, weft_block_index(), call.epoch);
    if (call.me == task.root) {
        await_started(channels, call.epoch, abort);
        spread(call);
    } else {
        tell_started(channels, task.root, call.epoch);
        take(call, task.root, abort);
    }
    weft_block_sync();
    weft_ll_end(&call.ll, &channels, call.epoch);
    weft_channel_epoch_store(call.word, call.epoch);
}

/* --- Folding --------------------------------------------------------------------------------- */

/* The units of members first, first + 1, ..., `count` of them, a tile apart. */
template <class Operation, class T>
WEFT_DEVICE void fold_round(weft_unpacked<T, uint64_t> *so_far, const uint64_t *units,
                            uint32_t tile, uint32_t first, uint32_t count) {
    uint32_t k = 0;
    if (first == 0)
        *so_far = unpack<T>(units[k++ * tile]);
    for (; k < count; k++)
        fold_word<Operation>(so_far, units[k * tile]);
}

/* The threads of a tile's first group fold what the groups have received, in the members' order: a
 * round of as many members as there are groups at a time, through one half of the block's memory
 * and then the other. */
template <class Operation, class T>
WEFT_DEVICE void fold(const struct ll_call &call, int divisor, struct weft_gpu_abort abort) {
    WEFT_SHARED(uint64_t, received, 2 * WEFT_GPU_CHANNEL_THREADS);
    const struct place &place = call.place;
    uint32_t half = 0, n = (uint32_t)call.n;
    ROLLED
    for (uint32_t tile = 0; tile < call.share.units; tile += place.tile) {
        uint32_t unit = tile + place.unit;
        bool folds = place.group == 0 && unit < call.share.units;
        weft_unpacked<T, uint64_t> so_far = {};
        ROLLED
        for (uint32_t first = 0; first < n; first += place.groups) {
            uint32_t source = first + place.group, left = n - first;
            uint64_t *round = received + half;
            if (unit < call.share.units && source < n &&
                !receive(call, (int)source, unit, &round[weft_block_thread()], abort))
                round[weft_block_thread()] = 0;
            weft_block_sync();
            if (folds)
                fold_round<Operation>(&so_far, round + place.unit, place.tile, first,
                                      left < place.groups ? left : place.groups);
            half ^= WEFT_GPU_CHANNEL_THREADS;
        }
        if (folds)
            store(call.share, 0, unit, pack<Operation, T, uint64_t>(so_far, divisor));
    }
}

/* All have received what they have to when the last round is folded. */
template <class Operation, class T>
WEFT_DEVICE void reduce(struct weft_gpu_abort abort, const struct weft_gpu_channels &channels,
                        const struct weft_gpu_collective &task, struct weft_ll_shape shape) {
    struct ll_call call = begin(channels, task, shape);
    fold<Operation, T>(call, task.divisor, abort);
    weft_ll_end(&call.ll, &channels, call.epoch);
    weft_channel_epoch_store(call.word, call.epoch);
}

extern "C" __global__ void __launch_bounds__(WEFT_GPU_CHANNEL_THREADS)
    weftk_ll_sum_f32(struct weft_gpu_abort abort, struct weft_gpu_channels channels,
                     struct weft_gpu_collective task, struct weft_ll_shape shape) {
    reduce<fold_sum, float>(abort, channels, task, shape);
}

extern "C" __global__ void __launch_bounds__(WEFT_GPU_CHANNEL_THREADS)
    weftk_ll_sum_f64(struct weft_gpu_abort abort, struct weft_gpu_channels channels,
                     struct weft_gpu_collective task, struct weft_ll_shape shape) {
    reduce<fold_sum, double>(abort, channels, task, shape);
}

extern "C" __global__ void __launch_bounds__(WEFT_GPU_CHANNEL_THREADS)
    weftk_ll_sum_bf16(struct weft_gpu_abort abort, struct weft_gpu_channels channels,
                      struct weft_gpu_collective task, struct weft_ll_shape shape) {
    reduce<fold_sum, weft_bf16>(abort, channels, task, shape);
}

extern "C" __global__ void __launch_bounds__(WEFT_GPU_CHANNEL_THREADS)
    weftk_ll_sum_f16(struct weft_gpu_abort abort, struct weft_gpu_channels channels,
                     struct weft_gpu_collective task, struct weft_ll_shape shape) {
    reduce<fold_sum, weft_f16>(abort, channels, task, shape);
}

extern "C" __global__ void __launch_bounds__(WEFT_GPU_CHANNEL_THREADS)
    weftk_ll_sum_u32(struct weft_gpu_abort abort, struct weft_gpu_channels channels,
                     struct weft_gpu_collective task, struct weft_ll_shape shape) {
    reduce<fold_sum, uint32_t>(abort, channels, task, shape);
}

extern "C" __global__ void __launch_bounds__(WEFT_GPU_CHANNEL_THREADS)
    weftk_ll_sum_u64(struct weft_gpu_abort abort, struct weft_gpu_channels channels,
                     struct weft_gpu_collective task, struct weft_ll_shape shape) {
    reduce<fold_sum, uint64_t>(abort, channels, task, shape);
}
