/* SPDX-License-Identifier: BSD-3-Clause */
#include "handle.h"

#include "count.h"
#include "gil.h"
#include "stream.h"

#include <c10/util/Exception.h>

#include <weft.h>

namespace weft {

void Handle::check_channel(int channel) const {
    TORCH_CHECK(channel >= 0,
                "channel for barrier(), put_signal() and wait_signal() must be greater than or "
                "equal to 0 (got ",
                channel, ")");
    size_t channels = block_->pad_bytes() / sizeof(uint32_t) / static_cast<size_t>(peers_->size());
    TORCH_CHECK(static_cast<size_t>(channel) < channels,
                "The maximum supported channel for barrier(), put_signal() and wait_signal() is ",
                static_cast<int64_t>(channels) - 1, " (got ", channel, ")");
}

void Handle::check_rank(const char *argument, int rank) const {
    TORCH_CHECK(rank >= 0 && rank < peers_->size(), argument, " must be in [0, ", peers_->size(),
                ") (got ", rank, ")");
}

/* The array where the pads are known to whoever waits: a kernel, or this thread. */
uint32_t *const *Handle::pads() const {
    return reinterpret_cast<uint32_t *const *>(peers_->pads_on_device());
}

static void check(int rc) {
    TORCH_CHECK(rc == 0, "weft: ", weft_last_error());
}

void Handle::barrier(int channel, size_t timeout_ms) {
    check_channel(channel);
    auto stream = current_stream(get_device());
    counts.barriers++;
    WithoutGil waiting;
    check(shmemx_pad_barrier_on_stream(pads(), get_rank(), get_world_size(), channel, timeout_ms,
                                       stream));
}

void Handle::put_signal(int dst_rank, int channel, size_t timeout_ms) {
    check_channel(channel);
    check_rank("dst_rank", dst_rank);
    auto stream = current_stream(get_device());
    counts.put_signals++;
    WithoutGil waiting;
    check(shmemx_pad_put_on_stream(pads(), get_rank(), get_world_size(), dst_rank, channel,
                                   timeout_ms, stream));
}

void Handle::wait_signal(int src_rank, int channel, size_t timeout_ms) {
    check_channel(channel);
    check_rank("src_rank", src_rank);
    auto stream = current_stream(get_device());
    counts.wait_signals++;
    WithoutGil waiting;
    check(shmemx_pad_wait_on_stream(pads(), get_rank(), get_world_size(), src_rank, channel,
                                    timeout_ms, stream));
}

} // namespace weft
