/* SPDX-License-Identifier: BSD-3-Clause */
/* Meetings. Block b of a member meets the blocks of the others that use the same channel; each
 * stores its epoch into its own word at every member, and waits for those of all in its own memory:
 * one way over the link, and no atomic. Epochs are counted in GPU memory, so that graphs replay;
 * they have 64 bits, and never come round. */
#ifndef WEFT_DEVICE_BARRIER_CUH
#define WEFT_DEVICE_BARRIER_CUH

#include "weft/device/spin.cuh"

/* --- Rows of words -------------------------------------------------------------------------------
 */

/* Waits until all n members but `me` have told `epoch`, or a later one, in a row of words here; by
 * all threads of a block, of which this is number `id` of `count`. What they did before they told
 * it by a release is seen by all threads then. 0 on all threads if the job is over. */
WEFT_DEVICE int weft_row_await(struct weft_gpu_abort abort, const uint64_t *row, int me, int n,
                               uint64_t epoch, uint32_t id, uint32_t count) {
    struct weft_spin spin = {0, 0, 0, 0};
    int over = 0;
    for (int i = (int)id; i < n; i += (int)count)
        while (i != me && !over && weft_ld_acquire_sys_u64(&row[i]) < epoch)
            over = !weft_spin(&spin, abort);
    return !weft_block_sync_any((uint32_t)over);
}

/* --- By channels ---------------------------------------------------------------------------------
 */

/* All of a block's threads have stored what comes before; then a word to each of the others. The
 * first thread counts: the others have loaded the epoch before they came to the sync. */
WEFT_DEVICE uint64_t weft_barrier_tell(const weft_device_team *t, uint32_t channel) {
    uint64_t *word = &weft_device_channel_of(t, channel, t->me)->barriers;
    uint32_t id = weft_block_rank(), count = weft_block_size();
    uint64_t epoch = weft_ld_relaxed_sys_u64(word) + 1;
    weft_block_sync();
    if (id == 0)
        weft_st_relaxed_sys_u64(word, epoch);
    if ((int)id < t->n)
        weft_fence_sys();
    for (int m = (int)id; m < t->n; m += (int)count)
        if (m != t->me)
            weft_st_relaxed_sys_u64(&weft_device_arrived(t, channel, m)[t->me], epoch);
    return epoch;
}

WEFT_DEVICE int weft_barrier_await(const weft_device_team *t, uint32_t channel, uint64_t epoch) {
    return weft_row_await(weft_abort_of(t), weft_device_arrived(t, channel, t->me), t->me, t->n,
                          epoch, weft_block_rank(), weft_block_size());
}

/* A barrier of two halves, by all threads of the channel's block: arrive tells the others that this
 * block has come, and does not wait; depart waits until all have. What any thread of a member's
 * block has stored before it arrived is seen by all threads of the others' behind depart. Between
 * the two the block must not arrive again. depart: 0 if the job is over. */
WEFT_DEVICE void weft_arrive_b(const weft_device_team *t, uint32_t channel) {
    weft_barrier_tell(t, channel);
}
WEFT_DEVICE int weft_depart_b(const weft_device_team *t, uint32_t channel) {
    weft_block_sync(); /* the first thread has counted */
    uint64_t *word = &weft_device_channel_of(t, channel, t->me)->barriers;
    return weft_barrier_await(t, channel, weft_ld_relaxed_sys_u64(word));
}

/* Both halves. */
WEFT_DEVICE int weft_barrier_b(const weft_device_team *t, uint32_t channel) {
    return weft_barrier_await(t, channel, weft_barrier_tell(t, channel));
}

/* Meets as a barrier does, and orders nothing between members: about half a microsecond less. */
WEFT_DEVICE int weft_sync_b(const weft_device_team *t, uint32_t channel) {
    uint64_t *word = &weft_device_channel_of(t, channel, t->me)->syncs;
    const uint64_t *row = weft_device_synced(t, channel, t->me);
    struct weft_spin spin = {0, 0, 0, 0};
    struct weft_gpu_abort abort = weft_abort_of(t);
    uint64_t epoch = weft_ld_relaxed_sys_u64(word) + 1;
    uint32_t id = weft_block_rank(), count = weft_block_size();
    int over = 0;
    weft_block_sync();
    if (id == 0)
        weft_st_relaxed_sys_u64(word, epoch);
    for (int m = (int)id; m < t->n; m += (int)count)
        if (m != t->me)
            weft_st_relaxed_sys_u64(&weft_device_synced(t, channel, m)[t->me], epoch);
    for (int m = (int)id; m < t->n; m += (int)count)
        while (m != t->me && !over && weft_ld_relaxed_sys_u64(&row[m]) < epoch)
            over = !weft_spin(&spin, abort);
    return !weft_block_sync_any((uint32_t)over);
}

/* --- By grids ------------------------------------------------------------------------------------
 */

/* The last block of this grid meets the other members by channel 0, and lets the others go. */
WEFT_DEVICE int weft_grid_release(const weft_device_team *t, struct weft_device_head *head,
                                  uint64_t epoch) {
    weft_st_relaxed_sys_u64(&head->arrived, 0);
    int met = weft_barrier_b(t, 0);
    if (met && weft_block_rank() == 0)
        weft_st_release_sys_u64(&head->epoch, epoch);
    return met;
}

/* A barrier of all threads of all blocks of all members' grids. All of them run at once: each grid
 * fits on its GPU, beside what else is there. Channel 0 is not used by others at the time. The
 * grids may differ in size. 0 if the job is over. */
WEFT_DEVICE int weft_barrier_grid(const weft_device_team *t) {
    struct weft_device_head *head = weft_device_head_of(t, t->me);
    int first = weft_block_rank() == 0;
    uint64_t epoch = 0, before = 0;
    weft_block_sync();
    if (first) {
        epoch = weft_ld_relaxed_sys_u64(&head->epoch) + 1; /* it stays until this block arrives */
        before = weft_atom_add_sys_u64(&head->arrived, 1);
    }
    if (weft_block_sync_any(first && before + 1 == weft_grid_size()))
        return weft_grid_release(t, head, epoch);
    struct weft_spin spin = {0, 0, 0, 0};
    struct weft_gpu_abort abort = weft_abort_of(t);
    int over = 0;
    while (first && !over && weft_ld_acquire_sys_u64(&head->epoch) < epoch)
        over = !weft_spin(&spin, abort);
    return !weft_block_sync_any((uint32_t)over);
}

#endif
