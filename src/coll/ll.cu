/* SPDX-License-Identifier: BSD-3-Clause */
/* Small collectives with packets. A block of threads has a share of the units, and works with the
 * blocks of the same number on the other members, by the channel of that number. Its threads form
 * groups, and a group has a thread for every unit of a tile. So the packets for all members are
 * sent at once, and the packets of all members are awaited at once.
 *
 * A thread sends all its packets before it waits for any. A unit is read before it is written, so a
 * call may be in place. Rare cases, such as bytes at odd addresses, are handled after the frequent
 * ones. */
#define WEFT_KERNEL_THREADS
#include "coll/ll.h"
#include "coll/ll.cuh"
#include "coll/fold.cuh"

/* A thread's position in a call. */
struct ll_place {
    uint32_t begin, end;    /* units of its block */
    uint32_t first, tile;   /* its own units: first, first + tile, ... */
    uint32_t group, groups; /* its group, and their number; a group serves a member at a time */
    uint32_t slots;         /* offset of this call's slots in the inbox */
    uint64_t *word, epoch;
};

/* Returns the word of this block's channel; `word` is that of channel 0. */
WEFT_DEVICE uint64_t *word_at(uint64_t *word, const struct weft_ll_work &work) {
    return (uint64_t *)((char *)word + weft_block_index() * work.head_bytes);
}

WEFT_DEVICE struct ll_place place_in(const struct weft_ll_work &work) {
    uint32_t block = weft_block_index(), id = weft_block_thread();
    struct ll_place place = {};
    place.tile = 1u << work.tile_shift;
    place.group = id >> work.tile_shift;
    place.groups = weft_block_threads() >> work.tile_shift;
    place.begin = block * work.share;
    place.end = work.units - place.begin < work.share ? work.units : place.begin + work.share;
    place.first = place.begin + (id & (place.tile - 1));
    place.slots = block * 2 * work.half_bytes;
    place.word = word_at(work.epoch, work);
    return place;
}

WEFT_DEVICE void begin(struct ll_place *place, const struct weft_ll_work &work, uint64_t before) {
    place->epoch = weft_gpu_epoch_after(before);
    place->slots += place->epoch & 1 ? work.half_bytes : 0;
}

WEFT_DEVICE uint32_t member_at(const struct weft_ll_work &work, uint32_t distance) {
    return (uint32_t)weft_gpu_member_after(work.me, work.n, (int)distance);
}

/* --- One unit -------------------------------------------------------------------------------- */

WEFT_DEVICE uint64_t load(const struct weft_ll_work &work, uint32_t member, uint32_t unit) {
    const char *from = work.source + member * work.source_step + unit * 8;
    if (unit < work.words)
        return weft_ll_load_word(from);
    return weft_ll_load_bytes(from, work.bytes - unit * 8);
}

WEFT_DEVICE void store(const struct weft_ll_work &work, uint32_t member, uint32_t unit,
                       uint64_t data) {
    char *to = work.dest + member * work.dest_step + unit * 8;
    if (unit < work.words)
        weft_ll_store_word(to, data);
    else
        weft_ll_store_bytes(to, work.bytes - unit * 8, data);
}

WEFT_DEVICE void send(const struct weft_ll_work &work, const struct ll_place &place,
                      uint32_t member, uint32_t unit, uint64_t data) {
    uint32_t at = place.slots + (unit - place.begin) * 16;
    weft_packet_put(work.out + member * work.out_step + at, data, (uint32_t)place.epoch);
}

/* Receives a unit of a member; false when the kernel has to give up. */
WEFT_DEVICE bool receive(uint64_t *data, const struct weft_ll_work &work,
                         const struct ll_place &place, uint32_t source, uint32_t unit,
                         struct weft_gpu_abort abort) {
    uint32_t at = place.slots + source * work.slot_bytes + (unit - place.begin) * 16;
    return weft_packet_get(data, work.in + at, (uint32_t)place.epoch, abort);
}

/* As receive; this member's own unit is loaded from source. */
WEFT_DEVICE bool obtain(uint64_t *data, const struct weft_ll_work &work,
                        const struct ll_place &place, uint32_t source, uint32_t unit,
                        struct weft_gpu_abort abort) {
    if (source != (uint32_t)work.me)
        return receive(data, work, place, source, unit, abort);
    *data = load(work, source, unit);
    return true;
}

/* --- Sending --------------------------------------------------------------------------------- */

/* Sends this thread's packets of a unit. */
WEFT_DEVICE void send_unit(const struct weft_ll_work &work, const struct ll_place &place,
                           uint32_t unit) {
    WEFT_ROLLED
    for (uint32_t d = 1 + place.group; d < (uint32_t)work.n; d += place.groups) {
        uint32_t member = member_at(work, d);
        send(work, place, member, unit, load(work, member, unit));
    }
}

/* Begins a call, and sends all packets of this thread. */
WEFT_DEVICE void send_all(struct ll_place *place, const struct weft_ll_work &work) {
    begin(place, work, weft_ld_relaxed_sys(place->word));
    WEFT_ROLLED
    for (uint32_t unit = place->first; unit < place->end; unit += place->tile)
        send_unit(work, *place, unit);
}

/* Called after a sync at which the block has received everything. */
WEFT_DEVICE void end(const struct weft_ll_work &work, const struct ll_place &place) {
    weft_packets_end(work.in + place.slots, work.half_bytes, place.epoch,
                     weft_thread_group_block());
    weft_channel_epoch_store(place.word, place.epoch);
}

/* --- One round ------------------------------------------------------------------------------- */

/* If there is a thread for each unit and member, each thread sends one packet and receives one; the
 * threads of the last group move this member's own unit. All addresses are computed before the
 * epoch is known. The epoch's load has an address that depends on the thread, as far as the
 * compiler knows: otherwise it would move values that are equal for all threads to uniform
 * registers, and wait there, before source is loaded. */
struct ll_single {
    uint32_t member, unit;
    bool moves; /* the unit exists, and has arrived */
    uint64_t data;
};

WEFT_DEVICE struct ll_single pass(struct ll_place *place, const struct weft_ll_work &work,
                                  struct weft_gpu_abort abort) {
    uint64_t before = weft_ld_relaxed_sys(place->word + weft_block_thread() * work.zero);
    struct ll_single it = {member_at(work, 1 + place->group), place->first,
                           place->first < place->end, 0};
    if (it.moves)
        it.data = load(work, it.member, it.unit);
    begin(place, work, before);
    if (it.moves && it.member != (uint32_t)work.me) {
        send(work, *place, it.member, it.unit, it.data);
        it.moves = receive(&it.data, work, *place, it.member, it.unit, abort);
    }
    return it;
}

/* --- Exchange -------------------------------------------------------------------------------- */

/* Stores a unit of all members. Runs in the thread that has sent this member's unit, and after
 * that, since dest may be source. This member's own unit is the last. */
WEFT_DEVICE bool gather_unit(const struct weft_ll_work &work, const struct ll_place &place,
                             uint32_t unit, struct weft_gpu_abort abort) {
    WEFT_ROLLED
    for (uint32_t d = 1 + place.group; d <= (uint32_t)work.n; d += place.groups) {
        uint64_t data;
        uint32_t source = member_at(work, d);
        if (!obtain(&data, work, place, source, unit, abort))
            return false;
        store(work, source, unit, data);
    }
    return true;
}

WEFT_DEVICE void gather(const struct weft_ll_work &work, const struct ll_place &place,
                        struct weft_gpu_abort abort) {
    uint32_t unit = place.first;
    while (unit < place.end && gather_unit(work, place, unit, abort))
        unit += place.tile;
}

extern "C" __global__ void __launch_bounds__(WEFT_GPU_CHANNEL_THREADS, 1)
    weftk_ll_exchange(struct weft_gpu_abort abort, struct weft_ll_work work) {
    weft_dependency_wait();
    struct ll_place place = place_in(work);
    if (work.single) {
        struct ll_single it = pass(&place, work, abort);
        if (it.moves)
            store(work, it.member, it.unit, it.data);
    } else {
        send_all(&place, work);
        gather(work, place, abort);
    }
    weft_block_sync();
    end(work, place);
}

/* --- Broadcast ------------------------------------------------------------------------------- */

/* Waits until every member has told this root that it has started the previous broadcast or this
 * one. The member has then finished the broadcast before the previous one, whose slots the root
 * overwrites now. The words have nearly always arrived. */
WEFT_DEVICE void await_started(const struct weft_ll_work &work, uint64_t epoch,
                               struct weft_gpu_abort abort) {
    const uint64_t *started = word_at(work.started, work);
    for (uint32_t i = weft_block_thread(); i < (uint32_t)work.n; i += weft_block_threads()) {
        struct weft_spin spin = {};
        while (i != (uint32_t)work.me && weft_ld_relaxed_sys(&started[i]) < epoch - 1)
            if (!weft_spin(&spin, abort))
                break;
    }
    weft_block_sync();
}

/* Sends to all other members, and stores this member's own copy. */
WEFT_DEVICE void spread(const struct weft_ll_work &work, const struct ll_place &place) {
    WEFT_ROLLED
    for (uint32_t unit = place.first; unit < place.end; unit += place.tile) {
        uint64_t data = load(work, 0, unit);
        if (place.group == 0)
            store(work, 0, unit, data);
        WEFT_ROLLED
        for (uint32_t d = 1 + place.group; d < (uint32_t)work.n; d += place.groups)
            send(work, place, member_at(work, d), unit, data);
    }
}

/* All threads receive units, whatever their groups. */
WEFT_DEVICE void take(const struct weft_ll_work &work, const struct ll_place &place,
                      struct weft_gpu_abort abort) {
    uint64_t data;
    WEFT_ROLLED
    for (uint32_t unit = place.begin + weft_block_thread(); unit < place.end;
         unit += weft_block_threads())
        if (receive(&data, work, place, (uint32_t)work.root, unit, abort))
            store(work, 0, unit, data);
}

extern "C" __global__ void __launch_bounds__(WEFT_GPU_CHANNEL_THREADS, 1)
    weftk_ll_broadcast(struct weft_gpu_abort abort, struct weft_ll_work work) {
    weft_dependency_wait();
    struct ll_place place = place_in(work);
    begin(&place, work, weft_ld_relaxed_sys(place.word));
    if (work.me == work.root) {
        await_started(work, place.epoch, abort);
        spread(work, place);
    } else {
        if (weft_block_thread() == 0)
            weft_st_relaxed_sys(word_at(work.started, work), place.epoch);
        take(work, place, abort);
    }
    weft_block_sync();
    end(work, place);
}

/* --- Reductions ------------------------------------------------------------------------------ */

enum { FOLD_AHEAD = 4 };

/* Folds the units of `count` members, a tile apart, into so_far; `first`: member 0 is the first of
 * them. */
template <class Operation, class T> struct ll_fold {
    typedef weft_unpacked<T, uint64_t> folded;

    WEFT_DEVICE void round(folded *so_far, const struct weft_ll_work &, const uint64_t *units,
                           uint32_t tile, uint32_t count, bool first) {
        WEFT_ROLLED
        for (uint32_t k = 0; k < count; k += FOLD_AHEAD) {
            uint64_t next[FOLD_AHEAD];
            WEFT_UNROLL
            for (uint32_t i = 0; i < FOLD_AHEAD; i++)
                next[i] = units[(k + i < count ? k + i : k) * tile];
            WEFT_UNROLL
            for (uint32_t i = 0; i < FOLD_AHEAD; i++)
                if (first && k + i == 0)
                    *so_far = unpack<T>(next[i]);
                else if (k + i < count)
                    fold_word<Operation>(so_far, next[i]);
        }
    }
    WEFT_DEVICE uint64_t end(const struct weft_ll_work &work, folded so_far) {
        return pack<Operation, T, uint64_t>(so_far, work.divisor);
    }
};

template <class Operation, class T> WEFT_DEVICE uint64_t fold_two(uint64_t a, uint64_t b) {
    weft_unpacked<T, uint64_t> so_far = unpack<T>(a);
    fold_word<Operation>(&so_far, b);
    return pack<Operation, T, uint64_t>(so_far, 0);
}

#define CASE(X, family, op, number, OP, NUMBER)               \
    case WEFT_NUMBERS *WEFT_FOLD_##OP + WEFT_NUMBER_##NUMBER: \
        return fold_two<fold_##op, number_##number>(a, b);
WEFT_DEVICE uint64_t fold_by(const struct weft_ll_work &work, uint64_t a, uint64_t b) {
    switch (WEFT_NUMBERS * work.op + work.number) { WEFT_LL_FOLDS(CASE, , ) }
    return a;
}
#undef CASE

/* Folds with the operation and type that the call names. Each step may round, because sums of
 * 16-bit floats, which are rounded once, have kernels of their own. */
struct ll_fold_any {
    typedef uint64_t folded;

    WEFT_DEVICE void round(folded *so_far, const struct weft_ll_work &work, const uint64_t *units,
                           uint32_t tile, uint32_t count, bool first) {
        WEFT_ROLLED
        for (uint32_t k = 0; k < count; k++)
            *so_far = first && k == 0 ? units[0] : fold_by(work, *so_far, units[k * tile]);
    }
    WEFT_DEVICE uint64_t end(const struct weft_ll_work &, folded so_far) { return so_far; }
};

/* The threads of the first group fold the units that all threads have received. */
template <class Fold>
WEFT_DEVICE void fold_single(const struct weft_ll_work &work, const struct ll_place &place,
                             uint64_t *received, const struct ll_single &it) {
    uint32_t unit = it.unit - place.begin;
    received[(it.member << work.tile_shift) + unit] = it.data;
    weft_block_sync();
    if (place.group != 0 || it.unit >= place.end)
        return;
    typename Fold::folded so_far = {};
    Fold::round(&so_far, work, received + unit, place.tile, (uint32_t)work.n, true);
    store(work, 0, it.unit, Fold::end(work, so_far));
}

/* The threads of a tile's first group fold the units that all groups have received, in the order of
 * the members. A round has as many members as there are groups; rounds alternate between the two
 * halves of the block's memory. */
template <class Fold>
WEFT_DEVICE void fold_rounds(const struct weft_ll_work &work, const struct ll_place &place,
                             uint64_t *received, struct weft_gpu_abort abort) {
    uint32_t half = 0, n = (uint32_t)work.n, id = weft_block_thread();
    WEFT_ROLLED
    for (uint32_t tile = place.begin; tile < place.end; tile += place.tile) {
        uint32_t unit = tile + (place.first - place.begin);
        bool folds = place.group == 0 && unit < place.end;
        typename Fold::folded so_far = {};
        WEFT_ROLLED
        for (uint32_t first = 0; first < n; first += place.groups) {
            uint32_t source = first + place.group, left = n - first;
            uint64_t *round = received + half, data = 0;
            if (unit < place.end && source < n) {
                obtain(&data, work, place, source, unit, abort);
                round[id] = data;
            }
            weft_block_sync();
            if (folds)
                Fold::round(&so_far, work, round + id, place.tile,
                            left < place.groups ? left : place.groups, first == 0);
            half ^= WEFT_GPU_CHANNEL_THREADS;
        }
        if (folds)
            store(work, 0, unit, Fold::end(work, so_far));
    }
}

/* When the last round is folded, all threads have received all their units. */
template <class Fold>
WEFT_DEVICE void reduce(struct weft_gpu_abort abort, const struct weft_ll_work &work) {
    WEFT_SHARED(uint64_t, received, 2 * WEFT_GPU_CHANNEL_THREADS);
    struct ll_place place = place_in(work);
    if (work.single) {
        struct ll_single it = pass(&place, work, abort);
        fold_single<Fold>(work, place, received, it);
    } else {
        send_all(&place, work);
        fold_rounds<Fold>(work, place, received, abort);
    }
    end(work, place);
}

#define SUM(X, family, op, number, OP, NUMBER)                                            \
    extern "C" __global__ void __launch_bounds__(WEFT_GPU_CHANNEL_THREADS, 1)             \
        weftk_ll_##op##_##number(struct weft_gpu_abort abort, struct weft_ll_work work) { \
        weft_dependency_wait();                                                           \
        reduce<ll_fold<fold_##op, number_##number>>(abort, work);                         \
    }
WEFT_LL_SUMS(SUM, , )
#undef SUM

extern "C" __global__ void __launch_bounds__(WEFT_GPU_CHANNEL_THREADS, 1)
    weftk_ll_fold(struct weft_gpu_abort abort, struct weft_ll_work work) {
    weft_dependency_wait();
    reduce<ll_fold_any>(abort, work);
}
