/* SPDX-License-Identifier: BSD-3-Clause */
/* The epochs of channels in kernels: one of the words of a channel's head, in this member's GPU
 * memory, counts the calls, so that graphs replay. All threads of the channel's block work with the
 * call's epoch, and the block counts it at the end. A kernel of several calls takes the later ones
 * by weft_gpu_epoch_after, syncs between two, and ends the last. */
#ifndef WEFT_TRANSPORT_GPU_CHANNEL_CUH
#define WEFT_TRANSPORT_GPU_CHANNEL_CUH

#include "transport/gpu_channel.h"
#include "base/gpu.cuh"

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

#endif
