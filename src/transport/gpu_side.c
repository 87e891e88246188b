/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream that was destroyed may leave its entry to one with the same handle: that does no harm.
 */
#include "transport/gpu_side.h"
#include <pthread.h>

enum { SIDES_MAX = 16 };

static struct {
    pthread_mutex_t changing;
    struct weft_gpu_side list[SIDES_MAX];
    int count;
} sides = {.changing = PTHREAD_MUTEX_INITIALIZER};

static int create(struct weft_gpu_side *side, weft_cu_stream of, const char *call) {
    *side = (struct weft_gpu_side){.of = of};
    int error = weft_cuda.cuStreamCreateWithPriority(&side->stream, WEFT_CU_STREAM_NON_BLOCKING, 0);
    if (error == 0)
        error = weft_cuda.cuEventCreate(&side->forked, WEFT_CU_EVENT_NO_TIMING);
    if (error == 0)
        error = weft_cuda.cuEventCreate(&side->joined, WEFT_CU_EVENT_NO_TIMING);
    return weft_cuda_check(error, call, "creating a side stream");
}

static int find(struct weft_gpu_side *side, weft_cu_stream of, const char *call) {
    for (int i = 0; i < sides.count; i++)
        if (sides.list[i].of == of) {
            *side = sides.list[i];
            return 0;
        }
    *side = (struct weft_gpu_side){.of = of, .stream = of};
    if (sides.count == SIDES_MAX)
        return 0;
    int error = create(side, of, call);
    if (error == 0)
        sides.list[sides.count++] = *side;
    return error;
}

int weft_gpu_fork(struct weft_gpu_side *side, weft_cu_stream stream, const char *call) {
    pthread_mutex_lock(&sides.changing);
    int error = find(side, stream, call);
    pthread_mutex_unlock(&sides.changing);
    if (error || side->stream == stream)
        return error;
    error = weft_cuda.cuEventRecord(side->forked, stream);
    if (error == 0)
        error = weft_cuda.cuStreamWaitEvent(side->stream, side->forked, 0);
    return weft_cuda_check(error, call, "forking a stream");
}

int weft_gpu_join(const struct weft_gpu_side *side, const char *call) {
    if (side->stream == side->of)
        return 0;
    int error = weft_cuda.cuEventRecord(side->joined, side->stream);
    if (error == 0)
        error = weft_cuda.cuStreamWaitEvent(side->of, side->joined, 0);
    return weft_cuda_check(error, call, "joining a stream");
}

void weft_gpu_sides_close(void) {
    for (int i = 0; i < sides.count; i++) {
        weft_cuda.cuStreamDestroy(sides.list[i].stream);
        weft_cuda.cuEventDestroy(sides.list[i].forked);
        weft_cuda.cuEventDestroy(sides.list[i].joined);
    }
    sides.count = 0;
}
