/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the host in stream order. They may not call CUDA. */
#include "stream.h"

struct host_call {
    struct work work;
    void (*function)(void *);
    void *argument;
};

static int run(struct work *work, struct CUstream_st *stream) {
    struct host_call *call = (struct host_call *)work;
    (void)stream;
    call_in_host_function = true;
    call->function(call->argument);
    call_in_host_function = false;
    return 0;
}

static int enqueue(struct CUstream_st *stream, void (*function)(void *), void *argument) {
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    struct host_call *call = work_new(sizeof *call, run, NULL);
    call->function = function;
    call->argument = argument;
    return stream_enqueue(stream, &call->work);
}

int cuLaunchHostFunc(weft_cu_stream stream, void (*function)(void *), void *argument) {
    CALL(CONTEXT, enqueue(stream_of(stream), function, argument));
}
