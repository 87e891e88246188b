/* SPDX-License-Identifier: BSD-3-Clause */
/* A device as Weft sees it: its context, and PyTorch's current stream there. By PyTorch's interface
 * for any device, so that no header of CUDA's is needed, and the driver's for what that lacks. */
#pragma once

#include <c10/core/Device.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <shmemx.h>

namespace weft {

inline bool is_host(c10::Device device) {
    return device.is_cpu();
}

/* PyTorch's device with this index; -1 is the current one. */
c10::Device open_device(c10::DeviceType type, int index);

/* Within, the device is PyTorch's current one, and its context that of the calling thread: from the
 * first of them Weft learns which GPU is this PE's, and from each on which GPU a default stream is,
 * which is the same number on all. */
class OnDevice {
  public:
    explicit OnDevice(c10::Device device);

  private:
    c10::OptionalDeviceGuard guard_;
};

/* The stream that work on this device goes to; the calling thread itself on the host. */
shmemx_stream_t current_stream(c10::Device device);

/* Whether that stream is being captured into a graph: nothing may be waited for then. */
bool is_capturing(c10::Device device);

/* A stream of its own for what a rendezvous copies: the current one may have to wait for a member
 * that is in the rendezvous, too. */
class SideStream {
  public:
    explicit SideStream(c10::Device device);

  private:
    c10::OptionalStreamGuard guard_;
};

} // namespace weft
