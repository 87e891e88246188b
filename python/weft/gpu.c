/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu.h"
#include "error.h"
#include "session.h"

int pyweft_gpu(const char *call) {
    if (pyweft_session.device >= 0)
        return pyweft_session.device;
    int error = shmemx_device(&pyweft_session.device);
    if (error)
        pyweft_error_raise(call, error);
    return error ? -1 : pyweft_session.device;
}
