/* SPDX-License-Identifier: BSD-3-Clause */
#include "call.h"
#include "capture.h"
#include "gpu.h"
#include <stdlib.h>

pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;
_Thread_local bool call_in_host_function;

/* Makes a missing call of the table an error when this library is linked. */
__attribute__((used)) static void *const all[] = {
#define REFERENCE(name, exported, arguments) (void *)(uintptr_t)name,
    WEFT_CUDA_CALLS(REFERENCE)
#undef REFERENCE
};

static int refuse(enum need need) {
    if (need != NOTHING && !gpu_initialised())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (call_in_host_function)
        return CUDA_ERROR_NOT_PERMITTED;
    if (need < CONTEXT)
        return 0;
    struct CUctx_st *context = context_current();
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!context->retained)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (context->failed)
        return context->failed;
    return need == NO_CAPTURE ? capture_forbids() : 0;
}

int call_begin(enum need need) {
    pthread_mutex_lock(&driver_lock);
    return refuse(need);
}

int call_end(int error) {
    pthread_mutex_unlock(&driver_lock);
    return error;
}

long call_setting(const char *name, long preset) {
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 10) : preset;
}
