/* SPDX-License-Identifier: BSD-3-Clause */
#include "stream.h"

#include <ATen/Context.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <mutex>

namespace weft {

/* The driver's word on a capture; PyTorch has the driver loaded where it has a CUDA stream. */
static bool driver_captures(void *stream) {
    enum { NONE = 0, IMPLICIT = 906 };
    using IsCapturing = int (*)(void *, int *);
    static const auto ask = [] {
        void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
        return driver ? reinterpret_cast<IsCapturing>(dlsym(driver, "cuStreamIsCapturing"))
                      : nullptr;
    }();
    int status = NONE;
    int rc = ask ? ask(stream, &status) : 0;
    return rc == IMPLICIT || (rc == 0 && status != NONE);
}

bool is_capturing(c10::Device device) {
    return !is_host(device) && driver_captures(current_stream(device));
}

shmemx_stream_t current_stream(c10::Device device) {
    if (is_host(device))
        return SHMEMX_STREAM_HOST;
    c10::impl::VirtualGuardImpl guard(device.type());
    return static_cast<shmemx_stream_t>(guard.getStreamNativeHandle(guard.getStream(device)));
}

/* A context is made by the first call that needs one. Weft looks for it once, so this needs to be
 * done once. */
static void make_context(c10::Device device) {
    static std::once_flag made;
    std::call_once(made, [device] {
        if (!is_capturing(device))
            c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
    });
}

c10::Device open_device(c10::DeviceType type, int index) {
    if (type == c10::DeviceType::CPU)
        return c10::Device(type);
    at::globalContext().lazyInitDevice(type);
    c10::Device device = index < 0 ? c10::impl::VirtualGuardImpl(type).getDevice()
                                   : c10::Device(type, static_cast<c10::DeviceIndex>(index));
    c10::DeviceGuard guard(device);
    make_context(device);
    return device;
}

SideStream::SideStream(c10::Device device) {
    if (!is_host(device))
        guard_.reset_stream(
            c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device));
}

} // namespace weft
