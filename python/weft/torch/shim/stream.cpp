/* SPDX-License-Identifier: BSD-3-Clause */
#include "stream.h"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>

namespace weft {

/* Returns a function of the driver. Looked up after PyTorch has used a GPU, and so has loaded the
 * driver. */
template <typename Function> static Function *driver(const char *name) {
    static void *const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    return library ? reinterpret_cast<Function *>(dlsym(library, name)) : nullptr;
}

/* --- Contexts --------------------------------------------------------------------------------- */

c10::Device open_device(c10::DeviceType type, int index) {
    if (type == c10::DeviceType::CPU)
        return c10::Device(type);
    at::globalContext().lazyInitDevice(type);
    return index < 0 ? c10::impl::VirtualGuardImpl(type).getDevice()
                     : c10::Device(type, static_cast<c10::DeviceIndex>(index));
}

static bool make_current(int index) {
    static const auto get_device = driver<int(int *, int)>("cuDeviceGet");
    static const auto get_current = driver<int(int *)>("cuCtxGetDevice");
    static const auto retain = driver<int(void **, int)>("cuDevicePrimaryCtxRetain");
    static const auto set_current = driver<int(void *)>("cuCtxSetCurrent");
    void *context;
    int wanted, is;
    if (!get_device || !get_current || !retain || !set_current || get_device(&wanted, index) != 0)
        return false;
    return (get_current(&is) == 0 && is == wanted) ||
           (retain(&context, wanted) == 0 && set_current(context) == 0);
}

/* A thread that has not used a GPU has no context: PyTorch assumes device 0 as its current device
 * then, and a guard for device 0 does nothing. The context retained here lasts until the process
 * exits, like PyTorch's own. */
OnDevice::OnDevice(c10::Device device) {
    if (is_host(device))
        return;
    guard_.reset_device(device);
    TORCH_CHECK(make_current(device.index()), "weft: CUDA has no context on ", device);
}

/* --- Streams ---------------------------------------------------------------------------------- */

bool is_capturing(c10::Device device) {
    enum { NONE = 0, IMPLICIT = 906 };
    if (is_host(device))
        return false;
    static const auto ask = driver<int(void *, int *)>("cuStreamIsCapturing");
    int status = NONE;
    int rc = ask ? ask(current_stream(device), &status) : 0;
    return rc == IMPLICIT || (rc == 0 && status != NONE);
}

shmemx_stream_t current_stream(c10::Device device) {
    if (is_host(device))
        return SHMEMX_STREAM_HOST;
    c10::impl::VirtualGuardImpl guard(device.type());
    return static_cast<shmemx_stream_t>(guard.getStreamNativeHandle(guard.getStream(device)));
}

SideStream::SideStream(c10::Device device) {
    if (!is_host(device))
        guard_.reset_stream(
            c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device));
}

} // namespace weft
