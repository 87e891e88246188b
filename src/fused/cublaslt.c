/* SPDX-License-Identifier: BSD-3-Clause */
/* LD_LIBRARY_PATH selects the library. If the process has opened a cuBLASLt already, as PyTorch
 * does, that library is used. */
#include "fused/cublaslt.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include "base/library.h"
#include "base/log.h"

struct weft_cublaslt weft_cublaslt;

/* The first load's outcome, which later loads repeat. */
static struct {
    pthread_once_t once;
    int error;
    char text[256];
} loaded = {.once = PTHREAD_ONCE_INIT};

#define CALL(name, arguments) {#name, &weft_cublaslt.name},
static const struct weft_library_call calls[] = {
    WEFT_LT_CALLS(CALL){"cublasLtGetStatusString", &weft_cublaslt.cublasLtGetStatusString},
    {"cublasLtGetVersion", &weft_cublaslt.cublasLtGetVersion}};
#undef CALL

/* The newest first. Version 13 needs a driver for CUDA 13. */
static const char *const names[] = {"libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.13",
                                    "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.12"};
enum { NAMES = sizeof names / sizeof *names, NAMES_OF_13 = 2, CUDA_13 = 13000 };

static void *open_first(void) {
    int version = 0, error = weft_cuda.cuDriverGetVersion(&version);
    void *library = NULL;
    for (int i = 0; i < NAMES && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    for (int i = error || version < CUDA_13 ? NAMES_OF_13 : 0; i < NAMES && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static void load(void) {
    void *library = open_first();
    const char *missing =
        library ? weft_library_find(library, calls, sizeof calls / sizeof *calls) : NULL;
    if (library && !missing)
        return;
    loaded.error = -ENOTSUP;
    snprintf(loaded.text, sizeof loaded.text,
             "there is no cuBLASLt here%s%s: install CUDA 12.4 or later, or PyPI's nvidia-cublas, "
             "and name its folder in LD_LIBRARY_PATH",
             missing ? " with " : "", missing ? missing : "");
}

int weft_cublaslt_load(void) {
    pthread_once(&loaded.once, load);
    return loaded.error ? weft_fail_bare(loaded.error, "%s", loaded.text) : 0;
}

int weft_cublaslt_check(int status, const char *what) {
    if (status == WEFT_LT_SUCCESS)
        return 0;
    int error = status == WEFT_LT_ALLOC_FAILED    ? -ENOMEM
                : status == WEFT_LT_NOT_SUPPORTED ? -ENOTSUP
                                                  : -EIO;
    return weft_fail(error, "%s: %s", what, weft_cublaslt.cublasLtGetStatusString(status));
}
