/* SPDX-License-Identifier: BSD-3-Clause */
/* The epochs of channels in kernels. A word of a channel's head, in this member's GPU memory,
 * counts the calls, so that graphs can replay. All threads of the channel's block use the call's
 * epoch, and the block stores it at the end. A kernel with several calls computes the later epochs
 * with weft_gpu_epoch_after, syncs between two calls, and stores the last.
 *
 * Within a call the blocks of a channel synchronise with rows of words: each block stores the epoch
 * that it has reached to its own word at each other member, and waits for theirs. */
#ifndef WEFT_TRANSPORT_GPU_CHANNEL_CUH
#define WEFT_TRANSPORT_GPU_CHANNEL_CUH

#include "transport/gpu_channel.h"
#include "base/gpu.cuh"
#include "transport/gpu_kernel.h"

/* Returns the epoch of this call. The load is only waited for when the result is used. */
WEFT_DEVICE uint64_t weft_channel_epoch_begin(const uint64_t *word) {
    return weft_gpu_epoch_after(weft_ld_relaxed_sys(word));
}

/* Stores the epoch, by the block's first thread. All threads must have read it and synced before.
 * The end of the kernel orders the store. */
WEFT_DEVICE void weft_channel_epoch_store(uint64_t *word, uint64_t epoch) {
    if (weft_block_thread() == 0)
        weft_st_relaxed_sys(word, epoch);
}

/* Like weft_channel_epoch_store, with the sync before it. */
WEFT_DEVICE void weft_channel_epoch_end(uint64_t *word, uint64_t epoch) {
    weft_block_sync();
    weft_channel_epoch_store(word, epoch);
}

/* --- Synchronisation, called by all threads of the channel's block ---------------------------- */

/* Waits until all members have stored `epoch`, or a later one, in a row of this member. Afterwards
 * all threads see everything that the members did before weft_channel_tell_done. Returns false on
 * all threads if the job is over. */
WEFT_DEVICE bool weft_channel_await(struct weft_gpu_abort abort,
                                    const struct weft_gpu_channels *channels, uint32_t channel,
                                    enum weft_gpu_channel_row row, uint64_t epoch) {
    const uint64_t *told = weft_gpu_channel_row(channels, channels->me, channel, row);
    struct weft_spin spin = {};
    bool over = false;
    for (int i = (int)weft_block_thread(); i < channels->n; i += (int)weft_block_threads())
        while (i != channels->me && !over && weft_ld_acquire_sys(&told[i]) < epoch)
            over = !weft_spin(&spin, abort);
    return !weft_block_sync_any(over);
}

/* Reports to the members that this member's stream has reached the call, so that its arrays may be
 * written. */
WEFT_DEVICE void weft_channel_tell_ready(const struct weft_gpu_channels *channels, uint32_t channel,
                                         uint64_t epoch) {
    for (int i = (int)weft_block_thread(); i < channels->n; i += (int)weft_block_threads())
        if (i != channels->me)
            weft_st_relaxed_sys(
                &weft_gpu_channel_row(channels, i, channel, WEFT_GPU_CHANNEL_READY)[channels->me],
                epoch);
}

/* Reports to the members that everything that the block has stored is visible. */
WEFT_DEVICE void weft_channel_tell_done(const struct weft_gpu_channels *channels, uint32_t channel,
                                        uint64_t epoch) {
    weft_block_sync();
    for (int i = (int)weft_block_thread(); i < channels->n; i += (int)weft_block_threads())
        if (i != channels->me)
            weft_st_release_sys(
                &weft_gpu_channel_row(channels, i, channel, WEFT_GPU_CHANNEL_DONE)[channels->me],
                epoch);
}

#endif
