/* SPDX-License-Identifier: BSD-3-Clause */
/* Barriers. On a channel one group of threads of each member (usually block b of its grid on
 * channel b) synchronises with the groups of the other members. Each stores its epoch into its own
 * word at every member, and waits for the epochs of all in its own memory. A barrier takes one trip
 * over the link and no atomic. Epochs are counted in GPU memory, so that graphs can replay; they
 * have 64 bits and never wrap around.
 *
 * All members make the calls on a channel in the same order; one may use a thread and another a
 * block. Two groups of one member may use the same channel only with a sync of both in between. */
#ifndef WEFT_DEVICE_BARRIER_CUH
#define WEFT_DEVICE_BARRIER_CUH

#include "weft/device/check.cuh"
#include "weft/device/group.cuh"
#include "weft/device/spin.cuh"

/* The order that a barrier gives: none, or release and acquire. */
enum weft_barrier_kind { WEFT_BARRIER_RELAXED, WEFT_BARRIER_ORDERED };

WEFT_DEVICE uint64_t *weft_barrier_epoch(const weft_device_team *t, uint32_t channel,
                                         enum weft_barrier_kind kind) {
    struct weft_device_channel *own = weft_device_channel_of(t, channel, t->me);
    return kind == WEFT_BARRIER_ORDERED ? &own->barriers : &own->syncs;
}

/* Returns member m's words of a channel. */
WEFT_DEVICE uint64_t *weft_barrier_row(const weft_device_team *t, uint32_t channel,
                                       enum weft_barrier_kind kind, int m) {
    return kind == WEFT_BARRIER_ORDERED ? weft_device_arrived(t, channel, m)
                                        : weft_device_synced(t, channel, m);
}

/* Stores this group's epoch at the other members. Returns the epoch, or 0 if the handle has been
 * freed: its words may then belong to another handle. The first thread counts, after all threads
 * have loaded the epoch. The fence releases the stores of all threads before the sync; it overlaps
 * with the loads. */
WEFT_DEVICE uint64_t weft_barrier_tell(const weft_device_team *t, uint32_t channel,
                                       enum weft_barrier_kind kind, enum weft_scope scope) {
    struct weft_thread_group group = weft_scope_group(scope);
    uint64_t *word = weft_barrier_epoch(t, channel, kind);
    uint64_t before = weft_ld_relaxed_sys_u64(word), epoch;
    uint32_t generation = weft_device_generation(t);
    weft_scope_sync(scope);
    if (kind == WEFT_BARRIER_ORDERED && (int)group.id < t->n)
        weft_fence_sys();
    if (!weft_device_check_generation(t, generation))
        return 0;
    epoch = before + 1;
    if (group.id == 0)
        weft_st_relaxed_sys_u64(word, epoch);
    for (int m = (int)group.id; m < t->n; m += (int)group.count)
        if (m != t->me)
            weft_st_relaxed_sys_u64(&weft_barrier_row(t, channel, kind, m)[t->me], epoch);
    return epoch;
}

WEFT_DEVICE uint64_t weft_barrier_look(const uint64_t *word, enum weft_barrier_kind kind) {
    return kind == WEFT_BARRIER_ORDERED ? weft_poll_acquire_u64(word) : weft_poll_relaxed_u64(word);
}

/* Waits until all other members have stored this epoch. */
WEFT_DEVICE int weft_barrier_await(const weft_device_team *t, uint32_t channel,
                                   enum weft_barrier_kind kind, enum weft_scope scope,
                                   uint64_t epoch) {
    WEFT_CHECK_WAIT(check);
    struct weft_thread_group group = weft_scope_group(scope);
    struct weft_spin spin = {0, 0, 0, 0};
    struct weft_gpu_abort abort = weft_abort_of(t);
    const uint64_t *row = weft_barrier_row(t, channel, kind, t->me);
    int over = epoch == 0;
    for (int m = (int)group.id; m < t->n; m += (int)group.count)
        while (m != t->me && !over && weft_barrier_look(&row[m], kind) < epoch)
            over = !weft_spin(&spin, abort) ||
                   !WEFT_CHECK_TURN(check, t,
                                    kind == WEFT_BARRIER_ORDERED ? "weft_barrier" : "weft_sync",
                                    "member %d on channel %u: this is epoch %llu, and it has "
                                    "reached %llu",
                                    m, channel, (unsigned long long)epoch,
                                    (unsigned long long)weft_ld_relaxed_sys_u64(&row[m]));
    if (kind == WEFT_BARRIER_ORDERED && (int)group.id < t->n)
        weft_polled_acquire();
    return !weft_scope_sync_any(scope, over);
}

/* Waits for the epoch that the first thread has counted. */
WEFT_DEVICE int weft_barrier_depart(const weft_device_team *t, uint32_t channel,
                                    enum weft_scope scope) {
    weft_scope_sync(scope);
    const uint64_t *word = weft_barrier_epoch(t, channel, WEFT_BARRIER_ORDERED);
    return weft_barrier_await(t, channel, WEFT_BARRIER_ORDERED, scope,
                              weft_ld_relaxed_sys_u64(word));
}

WEFT_DEVICE int weft_barrier_by(const weft_device_team *t, uint32_t channel,
                                enum weft_barrier_kind kind, enum weft_scope scope) {
    uint64_t epoch = weft_barrier_tell(t, channel, kind, scope);
    return weft_barrier_await(t, channel, kind, scope, epoch);
}

/* --- By channels ------------------------------------------------------------------------------ */

/* arrive and depart are the halves of a barrier. arrive reports to the others that this group has
 * arrived, and does not wait; depart waits until all have arrived. After depart all threads of a
 * group see what any thread of another member's group stored before it arrived. Between the two, a
 * group must not arrive again on this channel. sync synchronises without a fence: it orders no
 * stores between members.
 *
 * All threads of the group call the function and get the same result: 1, or 0 if the job is over.
 */
WEFT_DEVICE void weft_arrive_t(const weft_device_team *t, uint32_t channel) {
    WEFT_CHECK_CHANNEL(t, channel);
    weft_barrier_tell(t, channel, WEFT_BARRIER_ORDERED, WEFT_SCOPE_t);
}
WEFT_DEVICE int weft_depart_t(const weft_device_team *t, uint32_t channel) {
    WEFT_CHECK_CHANNEL(t, channel);
    return weft_barrier_depart(t, channel, WEFT_SCOPE_t);
}
WEFT_DEVICE int weft_barrier_t(const weft_device_team *t, uint32_t channel) {
    WEFT_CHECK_CHANNEL(t, channel);
    return weft_barrier_by(t, channel, WEFT_BARRIER_ORDERED, WEFT_SCOPE_t);
}
WEFT_DEVICE int weft_sync_t(const weft_device_team *t, uint32_t channel) {
    WEFT_CHECK_CHANNEL(t, channel);
    return weft_barrier_by(t, channel, WEFT_BARRIER_RELAXED, WEFT_SCOPE_t);
}

WEFT_DEVICE void weft_arrive_w(const weft_device_team *t, uint32_t channel) {
    WEFT_CHECK_CHANNEL(t, channel);
    weft_barrier_tell(t, channel, WEFT_BARRIER_ORDERED, WEFT_SCOPE_w);
}
WEFT_DEVICE int weft_depart_w(const weft_device_team *t, uint32_t channel) {
    WEFT_CHECK_CHANNEL(t, channel);
    return weft_barrier_depart(t, channel, WEFT_SCOPE_w);
}
WEFT_DEVICE int weft_barrier_w(const weft_device_team *t, uint32_t channel) {
    WEFT_CHECK_CHANNEL(t, channel);
    return weft_barrier_by(t, channel, WEFT_BARRIER_ORDERED, WEFT_SCOPE_w);
}
WEFT_DEVICE int weft_sync_w(const weft_device_team *t, uint32_t channel) {
    WEFT_CHECK_CHANNEL(t, channel);
    return weft_barrier_by(t, channel, WEFT_BARRIER_RELAXED, WEFT_SCOPE_w);
}

WEFT_DEVICE void weft_arrive_b(const weft_device_team *t, uint32_t channel) {
    WEFT_CHECK_CHANNEL(t, channel);
    weft_barrier_tell(t, channel, WEFT_BARRIER_ORDERED, WEFT_SCOPE_b);
}
WEFT_DEVICE int weft_depart_b(const weft_device_team *t, uint32_t channel) {
    WEFT_CHECK_CHANNEL(t, channel);
    return weft_barrier_depart(t, channel, WEFT_SCOPE_b);
}
WEFT_DEVICE int weft_barrier_b(const weft_device_team *t, uint32_t channel) {
    WEFT_CHECK_CHANNEL(t, channel);
    return weft_barrier_by(t, channel, WEFT_BARRIER_ORDERED, WEFT_SCOPE_b);
}
WEFT_DEVICE int weft_sync_b(const weft_device_team *t, uint32_t channel) {
    WEFT_CHECK_CHANNEL(t, channel);
    return weft_barrier_by(t, channel, WEFT_BARRIER_RELAXED, WEFT_SCOPE_b);
}

/* --- By grids --------------------------------------------------------------------------------- */

/* Called by the last block of its grid to arrive. It has acquired the stores of the other blocks,
 * since atomics that acquire and release count `arrived`. The fence of the barrier then releases
 * these stores to the system, because causality is transitive. So one system fence is enough; three
 * took 1.6 us each. No block counts `arrived` again before the new epoch is stored. */
WEFT_DEVICE int weft_grid_meet(const weft_device_team *t, struct weft_device_head *head,
                               uint64_t epoch) {
    int first = weft_scope_first(WEFT_SCOPE_b), met = weft_barrier_b(t, 0);
    if (met && first) {
        weft_st_relaxed_sys_u64(&head->arrived, 0);
        weft_st_release_gpu_u64(&head->epoch, epoch);
    }
    return met;
}

/* Runs a barrier of all threads of all blocks of all members' grids: the last block of each grid to
 * arrive synchronises with the others' on channel 0, which nothing else may use meanwhile. All
 * blocks must run at once: each grid fits on its GPU beside everything else there, as
 * cudaLaunchCooperativeKernel ensures. Grids may differ in size between members and launches.
 * Returns 1, or 0 if the job is over. */
WEFT_DEVICE int weft_barrier_grid(const weft_device_team *t) {
    WEFT_CHECK_TEAM(t);
    WEFT_CHECK_WAIT(check);
    struct weft_device_head *head = weft_device_head_of(t, t->me);
    struct weft_spin spin = {0, 0, 0, 0};
    struct weft_gpu_abort abort = weft_abort_of(t);
    int first = weft_scope_first(WEFT_SCOPE_b), over = 0;
    uint64_t epoch = 0, before = 0;
    weft_block_sync();
    if (first) {
        epoch = weft_ld_relaxed_sys_u64(&head->epoch) + 1; /* cannot change before this block
                                                            * arrives */
        before = weft_atom_add_gpu_u64(&head->arrived, 1);
    }
    if (weft_block_sync_any(first && before + 1 == weft_grid_size()))
        return weft_grid_meet(t, head, epoch);
    while (first && !over && weft_ld_acquire_gpu_u64(&head->epoch) < epoch)
        over = !weft_spin(&spin, abort) ||
               !WEFT_CHECK_TURN(check, t, __func__,
                                "all blocks of all members: of this grid %llu of %u have reached "
                                "epoch %llu",
                                (unsigned long long)weft_ld_relaxed_sys_u64(&head->arrived),
                                weft_grid_size(), (unsigned long long)epoch);
    return !weft_block_sync_any((uint32_t)over);
}

#endif
