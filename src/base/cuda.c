/* SPDX-License-Identifier: BSD-3-Clause */
/* LD_LIBRARY_PATH selects libcuda.so.1, as for every program that links it. */
#include "base/cuda.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include "base/library.h"
#include "base/log.h"

struct weft_cuda weft_cuda;

/* The first load's outcome, which later loads repeat. */
static struct {
    pthread_once_t once;
    int error;
    char text[256];
} loaded = {.once = PTHREAD_ONCE_INIT};

#define CALL(name, exported, arguments) {exported, &weft_cuda.name},
static const struct weft_library_call calls[] = {WEFT_CUDA_CALLS(CALL)};
#undef CALL

/* Returns the driver's name and description of its error, such as "CUDA_ERROR_INVALID_VALUE:
 * invalid argument". The text is valid until the thread's next call. */
static const char *error_text(int error) {
    static _Thread_local char text[128];
    const char *name = NULL, *meaning = NULL;
    weft_cuda.cuGetErrorName(error, &name);
    weft_cuda.cuGetErrorString(error, &meaning);
    snprintf(text, sizeof text, "%s: %s", name ? name : "unknown error", meaning ? meaning : "");
    return text;
}

static int driver_start(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver) {
        snprintf(loaded.text, sizeof loaded.text, "there is no CUDA driver here (%s)", dlerror());
        return -ENODEV;
    }
    const char *missing = weft_library_find(driver, calls, sizeof calls / sizeof *calls);
    if (missing) {
        snprintf(loaded.text, sizeof loaded.text,
                 "the CUDA driver lacks %s: install one for CUDA 12.4 or later", missing);
        return -ENOSYS;
    }
    int count = 0, error = weft_cuda.cuInit(0);
    if (error == WEFT_CU_SUCCESS)
        error = weft_cuda.cuDeviceGetCount(&count);
    if (error != WEFT_CU_SUCCESS && error != WEFT_CU_NO_DEVICE) {
        snprintf(loaded.text, sizeof loaded.text, "the CUDA driver does not start: %s",
                 error_text(error));
        return -EIO;
    }
    if (count > 0)
        return 0;
    snprintf(loaded.text, sizeof loaded.text,
             "the CUDA driver sees no GPU (is CUDA_VISIBLE_DEVICES right?)");
    return -ENODEV;
}

static void driver_load(void) {
    loaded.error = driver_start();
}

int weft_cuda_load(void) {
    pthread_once(&loaded.once, driver_load);
    return loaded.error < 0 ? weft_fail_bare(loaded.error, "%s", loaded.text) : 0;
}

int weft_cuda_check(int error, const char *what) {
    if (error == WEFT_CU_SUCCESS)
        return 0;
    int code = error == WEFT_CU_OUT_OF_MEMORY ? -ENOMEM : -EIO;
    return weft_fail(code, "%s: %s", what, error_text(error));
}
