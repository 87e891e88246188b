/* SPDX-License-Identifier: BSD-3-Clause */
#include "handle.h"

#include "call.h"
#include "count.h"
#include "gil.h"
#include "stream.h"

#include <c10/util/Exception.h>

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

/* act(pads, stream): the pads in an array for the side that waits, a kernel or this thread. */
template <typename Act> void Handle::on_pads(size_t timeout_ms, Act act) {
    OnDevice here(get_device());
    auto pads = reinterpret_cast<uint32_t *const *>(peers_->pads_on_device());
    auto stream = current_stream(get_device());
    WithoutGil waiting;
    int rc = guarded([&] { return act(pads, stream); }, timeout_ms != 0);
    TORCH_CHECK(rc == 0, "weft: ", error_text(rc));
}

void Handle::barrier(int channel, size_t timeout_ms) {
    check_channel(channel);
    counts.barriers++;
    on_pads(timeout_ms, [&](auto pads, auto stream) {
        return shmemx_pad_barrier_on_stream(pads, get_rank(), get_world_size(), channel, timeout_ms,
                                            stream);
    });
}

void Handle::put_signal(int dst_rank, int channel, size_t timeout_ms) {
    check_channel(channel);
    check_rank("dst_rank", dst_rank);
    counts.put_signals++;
    on_pads(timeout_ms, [&](auto pads, auto stream) {
        return shmemx_pad_put_on_stream(pads, get_rank(), get_world_size(), dst_rank, channel,
                                        timeout_ms, stream);
    });
}

void Handle::wait_signal(int src_rank, int channel, size_t timeout_ms) {
    check_channel(channel);
    check_rank("src_rank", src_rank);
    counts.wait_signals++;
    on_pads(timeout_ms, [&](auto pads, auto stream) {
        return shmemx_pad_wait_on_stream(pads, get_rank(), get_world_size(), src_rank, channel,
                                         timeout_ms, stream);
    });
}

} // namespace weft
