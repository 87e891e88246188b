/* SPDX-License-Identifier: BSD-3-Clause */
/* A device as Weft sees it: its space, and PyTorch's current stream there. All through PyTorch's
 * interface for any device, so that no header of CUDA's is needed. */
#pragma once

#include <c10/core/Device.h>
#include <c10/core/StreamGuard.h>
#include <shmemx.h>

namespace weft {

inline bool is_host(c10::Device device) {
    return device.is_cpu();
}

inline shmemx_space_t space_of(c10::Device device) {
    return is_host(device) ? SHMEMX_SPACE_HOST : SHMEMX_SPACE_DEVICE;
}

/* PyTorch's device with this index; -1 is the current one. Its context is current in the calling
 * thread then, and tells Weft which GPU this PE has. */
c10::Device open_device(c10::DeviceType type, int index);

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
