/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream that was destroyed may leave its entry to one with the same handle: that does no harm.
 * Threads may share an entry: those of CUDA's stream per thread have one handle for them all. So
 * nobody records an event between another's record and wait. */
#include "transport/gpu_side.h"
#include <pthread.h>

enum { SIDES_MAX = 16 };

static struct {
    pthread_mutex_t changing;
    struct weft_gpu_side list[SIDES_MAX];
    int count;
} sides = {.changing = PTHREAD_MUTEX_INITIALIZER};

static void side_destroy(const struct weft_gpu_side *side) {
    weft_cuda.cuStreamDestroy(side->stream);
    if (side->forked)
        weft_cuda.cuEventDestroy(side->forked);
    if (side->joined)
        weft_cuda.cuEventDestroy(side->joined);
}

static int side_create(struct weft_gpu_side *side, weft_cu_stream of) {
    *side = (struct weft_gpu_side){.of = of};
    int error = weft_cuda.cuStreamCreateWithPriority(&side->stream, WEFT_CU_STREAM_NON_BLOCKING, 0);
    if (error)
        return weft_cuda_check(error, "creating a side stream");
    error = weft_cuda.cuEventCreate(&side->forked, WEFT_CU_EVENT_NO_TIMING);
    if (error == 0)
        error = weft_cuda.cuEventCreate(&side->joined, WEFT_CU_EVENT_NO_TIMING);
    if (error)
        side_destroy(side);
    return weft_cuda_check(error, "creating the events of a side stream");
}

static int side_find(struct weft_gpu_side *side, weft_cu_stream of) {
    for (int i = 0; i < sides.count; i++)
        if (sides.list[i].of == of) {
            *side = sides.list[i];
            return 0;
        }
    *side = (struct weft_gpu_side){.of = of, .stream = of};
    if (sides.count == SIDES_MAX)
        return 0;
    int error = side_create(side, of);
    if (error == 0)
        sides.list[sides.count++] = *side;
    return error;
}

/* Makes later work of `stream` follow the work that is on `first` now. */
static int stream_follow(weft_cu_stream stream, weft_cu_stream first, weft_cu_event event) {
    if (stream == first)
        return 0;
    int error = weft_cuda.cuEventRecord(event, first);
    if (error == 0)
        error = weft_cuda.cuStreamWaitEvent(stream, event, 0);
    return weft_cuda_check(error, "ordering a side stream");
}

int weft_gpu_fork(struct weft_gpu_side *side, weft_cu_stream stream) {
    pthread_mutex_lock(&sides.changing);
    int error = side_find(side, stream);
    if (error == 0)
        error = stream_follow(side->stream, stream, side->forked);
    pthread_mutex_unlock(&sides.changing);
    return error;
}

int weft_gpu_join(const struct weft_gpu_side *side) {
    pthread_mutex_lock(&sides.changing);
    int error = stream_follow(side->of, side->stream, side->joined);
    pthread_mutex_unlock(&sides.changing);
    return error;
}

void weft_gpu_sides_close(void) {
    for (int i = 0; i < sides.count; i++)
        side_destroy(&sides.list[i]);
    sides.count = 0;
}
