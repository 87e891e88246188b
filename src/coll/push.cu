/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges of blocks: the members meet, push, and meet again (coll/push.h).
 *
 * A thread has units of 16 bytes for several members in flight, for the next member first, so that
 * no two members push to the same one. The first units are loaded before the members have met. If
 * the dests are ready, the members do not wait for each other before they push. Stores are aligned;
 * loads have the alignment of the block. */
#define WEFT_KERNEL_THREADS
#include "transport/gpu_channel.cuh"

enum { UNITS = 2, MEMBERS = 4 }; /* in flight in a thread */

/* The blocks that this member pushes: bytes up to an aligned address, units, the remaining
 * bytes. */
struct exchange {
    const struct weft_gpu_channels *channels;
    const struct weft_gpu_collective *task;
    int members; /* receivers: the members after this one, then itself */
    size_t nunits;
    uint32_t head, tail; /* bytes */
    bool from_aligned;   /* the units of all source blocks */
};

/* The position of the loop: units `unit`, unit + all threads, ..., for members from this distance
 * on. */
struct push_place {
    size_t unit;
    int distance;
};

struct push_flight {
    weft_bytes16 of[UNITS][MEMBERS];
};

WEFT_DEVICE int member_at(const struct exchange &push, int distance) {
    return weft_gpu_member_after(push.channels->me, push.channels->n, distance);
}

WEFT_DEVICE const char *block_from(const struct exchange &push, int member) {
    return push.task->source + (size_t)member * push.task->source_step;
}

WEFT_DEVICE char *block_to(const struct exchange &push, int member) {
    return weft_array_of(&push.task->dests, member) +
           (size_t)push.channels->me * push.task->dest_step;
}

/* Returns the number of receivers: 0 if another member is the root; all others, if this member's
 * block is already in place. */
WEFT_DEVICE int count_members(const struct exchange &push) {
    int me = push.channels->me;
    if (push.task->dest_step == 0 && push.task->root != me)
        return 0;
    return block_to(push, me) == block_from(push, me) ? push.channels->n - 1 : push.channels->n;
}

WEFT_DEVICE struct exchange push_of(const struct weft_gpu_channels *channels,
                                    const struct weft_gpu_collective *task) {
    struct exchange push = {};
    push.channels = channels;
    push.task = task;
    push.members = count_members(push);
    push.head = -(uint32_t)(uintptr_t)block_to(push, channels->me) % 16;
    if (push.head > task->bytes)
        push.head = (uint32_t)task->bytes;
    push.nunits = push.members ? (task->bytes - push.head) / 16 : 0;
    push.tail = (uint32_t)(task->bytes - push.head) % 16;
    push.from_aligned = (((uintptr_t)task->source + push.head) | task->source_step) % 16 == 0;
    return push;
}

/* --- Units ----------------------------------------------------------------------------------- */

WEFT_DEVICE void load_flight(struct push_flight *flight, const struct exchange &push,
                             struct push_place at) {
    WEFT_UNROLL
    for (int i = 0; i < MEMBERS; i++) {
        if (at.distance + i > push.members)
            continue;
        const char *from = block_from(push, member_at(push, at.distance + i)) + push.head;
        WEFT_UNROLL
        for (int k = 0; k < UNITS; k++) {
            size_t unit = at.unit + k * weft_thread_count();
            if (unit < push.nunits)
                flight->of[k][i] = push.from_aligned
                                       ? weft_ld_weak((const weft_bytes16 *)(from + unit * 16))
                                       : weft_unit_of_words(from + unit * 16);
        }
    }
}

WEFT_DEVICE void store_flight(const struct push_flight &flight, const struct exchange &push,
                              struct push_place at) {
    WEFT_UNROLL
    for (int i = 0; i < MEMBERS; i++) {
        if (at.distance + i > push.members)
            continue;
        char *to = block_to(push, member_at(push, at.distance + i)) + push.head;
        WEFT_UNROLL
        for (int k = 0; k < UNITS; k++) {
            size_t unit = at.unit + k * weft_thread_count();
            if (unit < push.nunits)
                weft_st_weak((weft_bytes16 *)(to + unit * 16), flight.of[k][i]);
        }
    }
}

WEFT_DEVICE struct push_place place_after(const struct exchange &push, struct push_place at) {
    at.distance += MEMBERS;
    if (at.distance <= push.members)
        return at;
    return {at.unit + UNITS * weft_thread_count(), 1};
}

/* --- The call -------------------------------------------------------------------------------- */

/* Pushes the bytes at both ends that are less than a unit. */
WEFT_DEVICE void push_ends(const struct exchange &push) {
    uint32_t ends = push.head + push.tail, index = (uint32_t)weft_thread_index();
    for (uint32_t i = index; i < ends * (uint32_t)push.members;
         i += (uint32_t)weft_thread_count()) {
        int member = member_at(push, 1 + (int)(i / ends));
        size_t at = i % ends < push.head ? i % ends : i % ends + push.nunits * 16;
        weft_st_weak(block_to(push, member) + at, weft_ld_weak(block_from(push, member) + at));
    }
}

/* Pushes all units. Returns false if the job is over before the members have met. */
WEFT_DEVICE bool push_units(struct weft_gpu_abort abort, const struct exchange &push,
                            uint64_t epoch) {
    struct push_place at = {weft_thread_index(), 1};
    for (bool met = push.task->ready;; at = place_after(push, at)) {
        struct push_flight flight;
        load_flight(&flight, push, at);
        if (!met && !weft_channel_await(abort, push.channels, weft_block_index(),
                                        WEFT_GPU_CHANNEL_READY, epoch))
            return false;
        met = true;
        if (at.unit >= push.nunits)
            return true;
        store_flight(flight, push, at);
    }
}

extern "C" __global__ void __launch_bounds__(WEFT_GPU_CHANNEL_THREADS, 1)
    weftk_push_exchange(struct weft_gpu_abort abort, struct weft_gpu_channels channels,
                        struct weft_gpu_collective task) {
    weft_dependency_wait();
    uint32_t channel = weft_block_index();
    uint64_t *word = &weft_gpu_channel_head(&channels, channels.me, channel)->epoch;
    uint64_t epoch = weft_channel_epoch_begin(word);
    struct exchange push = push_of(&channels, &task);
    weft_channel_tell_ready(&channels, channel, epoch);
    if (!push_units(abort, push, epoch))
        return;
    push_ends(push);
    weft_channel_tell_done(&channels, channel, epoch);
    if (weft_channel_await(abort, &channels, channel, WEFT_GPU_CHANNEL_DONE, epoch))
        weft_channel_epoch_store(word, epoch);
}
