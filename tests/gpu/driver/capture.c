/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture.h"
#include "graph.h"
#include <stdlib.h>

static struct capture {
    uint64_t id;
    struct CUgraph_st *graph;
    int mode;
    pthread_t thread;
    bool invalid;
    struct CUstream_st
        *lanes[LANES_MAX]; /* the first is where the capture began; NULL: destroyed */
    struct capture *next;
} * captures;

enum { MODE_GLOBAL, MODE_THREAD_LOCAL, MODE_RELAXED };
static _Thread_local int thread_mode = MODE_GLOBAL;

int capture_invalidate(struct capture *capture, int error) {
    capture->invalid = true;
    return error;
}

uint64_t capture_id(const struct CUstream_st *stream) {
    return stream->capture ? stream->capture->id : 0;
}

static struct capture *capture_of(uint64_t id) {
    struct capture *capture = captures;
    while (capture && capture->id != id)
        capture = capture->next;
    return capture;
}

/* --- Calls that are allowed meanwhile --------------------------------------------------------- */

static bool forbids(const struct capture *capture) {
    if (capture->mode == MODE_RELAXED || thread_mode == MODE_RELAXED)
        return false;
    if (pthread_equal(capture->thread, pthread_self()))
        return true;
    return capture->mode == MODE_GLOBAL && thread_mode == MODE_GLOBAL;
}

int capture_forbids(void) {
    int error = 0;
    for (struct capture *capture = captures; capture; capture = capture->next)
        if (forbids(capture))
            error = capture_invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return error;
}

int capture_refuses(struct CUstream_st *stream) {
    if (!stream->capture)
        return 0;
    return capture_invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

static int exchange_mode(int *mode) {
    if (*mode < MODE_GLOBAL || *mode > MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    int before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return 0;
}

int cuThreadExchangeStreamCaptureMode(int *mode) {
    CALL(INITIALISED, exchange_mode(mode));
}

/* --- Begin, grow, end --------------------------------------------------------------------------
 */

static void enter(struct CUstream_st *stream, struct capture *capture, int lane) {
    stream->capture = capture;
    stream->lane = lane;
    stream->clock = (struct clock){{0}};
    capture->lanes[lane] = stream;
    capture->graph->nlanes = lane + 1;
    capture->graph->contexts[lane] = stream->context;
}

static int begin(struct CUstream_st *stream, int mode) {
    static uint64_t count;
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (stream == stream->context->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (mode < MODE_GLOBAL || mode > MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    struct capture *capture = calloc(1, sizeof *capture);
    capture->id = ++count;
    capture->graph = graph_new();
    capture->mode = mode;
    capture->thread = pthread_self();
    capture->next = captures;
    captures = capture;
    enter(stream, capture, 0);
    return 0;
}

int cuStreamBeginCapture(weft_cu_stream stream, int mode) {
    CALL(CONTEXT, begin(stream_of(stream), mode));
}

int capture_add(struct CUstream_st *stream, struct work *work) {
    struct capture *capture = stream->capture;
    if (capture->invalid) {
        work_drop(work);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    struct node node = {work, stream->lane, stream->clock};
    graph_add(capture->graph, &node);
    stream->clock.before[stream->lane]++;
    return 0;
}

int capture_join(struct CUstream_st *stream, uint64_t id, const struct clock *clock) {
    struct capture *capture = capture_of(id);
    if (!capture)
        return CUDA_ERROR_CAPTURED_EVENT;
    if (capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->capture && stream->capture != capture)
        return capture_invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    if (stream == stream->context->legacy)
        return capture_invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    if (!stream->capture && capture->graph->nlanes == LANES_MAX)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!stream->capture)
        enter(stream, capture, capture->graph->nlanes);
    for (int lane = 0; lane < LANES_MAX; lane++)
        if (stream->clock.before[lane] < clock->before[lane])
            stream->clock.before[lane] = clock->before[lane];
    return 0;
}

static void capture_free(struct capture *capture) {
    struct capture **slot = &captures;
    while (*slot != capture)
        slot = &(*slot)->next;
    *slot = capture->next;
    for (int lane = 0; lane < LANES_MAX; lane++)
        if (capture->lanes[lane])
            capture->lanes[lane]->capture = NULL;
    free(capture);
}

void capture_forget(struct CUstream_st *stream) {
    struct capture *capture = stream->capture;
    if (!capture)
        return;
    capture->invalid = true;
    capture->lanes[stream->lane] = NULL;
    if (stream->lane != 0)
        return;
    graph_free(capture->graph);
    capture_free(capture);
}

/* Returns whether the last work of every other lane precedes the present end of the first lane. */
static bool joined(const struct capture *capture) {
    const struct clock *clock = &capture->lanes[0]->clock;
    for (int lane = 1; lane < capture->graph->nlanes; lane++)
        if (capture->lanes[lane] && capture->lanes[lane]->clock.before[lane] != clock->before[lane])
            return false;
    return true;
}

static int end(struct CUstream_st *stream, struct CUgraph_st **graph) {
    struct capture *capture = stream ? stream->capture : NULL;
    if (!capture)
        return stream ? CUDA_ERROR_ILLEGAL_STATE : CUDA_ERROR_INVALID_HANDLE;
    if (stream->lane != 0)
        return capture_invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    if (capture->mode != MODE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    int error = capture->invalid   ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                : !joined(capture) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                   : 0;
    *graph = error ? NULL : capture->graph;
    if (error)
        graph_free(capture->graph);
    capture_free(capture);
    return error;
}

int cuStreamEndCapture(weft_cu_stream stream, weft_cu_graph *graph) {
    CALL(CONTEXT, end(stream_of(stream), graph));
}

static int tell_status(struct CUstream_st *stream, int *status) {
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    *status = !stream->capture ? WEFT_CU_CAPTURE_NONE : stream->capture->invalid ? 2 : 1;
    return 0;
}

static int tell_id(struct CUstream_st *stream, int *status, uint64_t *id) {
    int error = tell_status(stream, status);
    if (!error && stream->capture)
        *id = stream->capture->id;
    return error;
}

/* Does not report the graph or the nodes that the next work follows. */
int cuStreamGetCaptureInfo_v3(weft_cu_stream stream, int *status, uint64_t *id,
                              weft_cu_graph *graph, const void *nodes, const void *edges,
                              size_t *count) {
    CALL(CONTEXT, graph || nodes || edges || count ? CUDA_ERROR_INVALID_VALUE
                                                   : tell_id(stream_of(stream), status, id));
}

int cuStreamIsCapturing(weft_cu_stream stream, int *status) {
    CALL(CONTEXT, tell_status(stream_of(stream), status));
}
