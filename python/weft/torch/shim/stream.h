/* SPDX-License-Identifier: BSD-3-Clause */
/* A device: its context, and PyTorch's current stream on it. Uses PyTorch's interface for any
 * device, which needs no CUDA header, and the driver's for the rest. */
#pragma once

#include <c10/core/Device.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <shmemx.h>

namespace weft {

inline bool is_host(c10::Device device) {
    return device.is_cpu();
}

/* Returns PyTorch's device with this index; -1 is the current one. */
c10::Device open_device(c10::DeviceType type, int index);

/* Makes the device PyTorch's current one, and its context current in the calling thread, until
 * destroyed. Weft learns from the first guard which GPU is this PE's, and from each guard on which
 * GPU the default stream is, whose number is the same on all GPUs. */
class OnDevice {
  public:
    explicit OnDevice(c10::Device device);

  private:
    c10::OptionalDeviceGuard guard_;
};

/* Returns the stream for work on this device; for the host, the calling thread. */
shmemx_stream_t current_stream(c10::Device device);

/* Returns whether that stream is being captured into a graph, so that waiting is not allowed. */
bool is_capturing(c10::Device device);

/* A separate stream for the copies of a rendezvous: the current stream may be waiting for a member
 * that is in the rendezvous, too. */
class SideStream {
  public:
    explicit SideStream(c10::Device device);

  private:
    c10::OptionalStreamGuard guard_;
};

} // namespace weft
