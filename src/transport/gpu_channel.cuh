/* SPDX-License-Identifier: BSD-3-Clause */
/* The epochs of channels in kernels: one of the words of a channel's head, in this member's GPU
 * memory, counts the calls, so that graphs replay. All threads of the channel's block work with the
 * call's epoch, and the block counts it at the end. A kernel of several calls takes the later ones
 * by weft_gpu_epoch_after, syncs between two, and ends the last.
 *
 * Within a call a channel's blocks meet by rows of words: each tells the others the epoch to which
 * it has come, in its word at each of them, and waits for theirs. */
#ifndef WEFT_TRANSPORT_GPU_CHANNEL_CUH
#define WEFT_TRANSPORT_GPU_CHANNEL_CUH

#include "transport/gpu_channel.h"
#include "base/gpu.cuh"
#include "transport/gpu_kernel.h"

/* The epoch of this call. Nothing waits for the load before the result is used. */
WEFT_DEVICE uint64_t weft_channel_epoch_begin(const uint64_t *word) {
    return weft_gpu_epoch_after(weft_ld_relaxed_sys(word));
}

/* Counts the call, by the block's first thread, behind a sync that all have come to with their
 * epoch in hand. The kernel's end orders the store. */
WEFT_DEVICE void weft_channel_epoch_store(uint64_t *word, uint64_t epoch) {
    if (weft_block_thread() == 0)
        weft_st_relaxed_sys(word, epoch);
}

/* The same with the sync. */
WEFT_DEVICE void weft_channel_epoch_end(uint64_t *word, uint64_t epoch) {
    weft_block_sync();
    weft_channel_epoch_store(word, epoch);
}

/* --- Meeting: by all threads of the channel's block --------------------------------------------
 */

/* Waits until all members have told `epoch`, or a later one, in a row here. What they did before
 * they told it by weft_channel_tell_done is seen by all threads then. False on all threads if the
 * job is over. */
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

/* Tells the members that this one's stream has come to the call: its arrays may be written. */
WEFT_DEVICE void weft_channel_tell_ready(const struct weft_gpu_channels *channels, uint32_t channel,
                                         uint64_t epoch) {
    for (int i = (int)weft_block_thread(); i < channels->n; i += (int)weft_block_threads())
        if (i != channels->me)
            weft_st_relaxed_sys(
                &weft_gpu_channel_row(channels, i, channel, WEFT_GPU_CHANNEL_READY)[channels->me],
                epoch);
}

/* Tells them that all that the block has stored is there. */
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
