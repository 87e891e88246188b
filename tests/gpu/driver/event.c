/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: a ticket of a stream, or a clock of a capture, and the time when it was reached. */
#include "capture.h"
#include "link.h"
#include "stream.h"
#include <stdlib.h>
#include <time.h>

enum { NO_TIMING = WEFT_CU_EVENT_NO_TIMING, FLAGS = 7 };

struct CUevent_st {
    struct link link;
    unsigned flags;
    unsigned holds;
    struct CUctx_st *context;   /* made in it, and recorded in its streams alone */
    struct CUstream_st *stream; /* NULL: never recorded */
    uint64_t ticket;
    int64_t ns;
    uint64_t capture; /* not 0: recorded in that capture */
    struct clock clock;
};
static struct link *events;

static struct CUevent_st *event_of(weft_cu_event handle) {
    return link_find(events, handle);
}

static void event_drop(struct CUevent_st *event) {
    if (--event->holds)
        return;
    if (event->stream)
        stream_drop(event->stream);
    free(event);
}

static int create(struct CUevent_st **made, unsigned flags) {
    struct CUevent_st *event = calloc(1, sizeof *event);
    event->flags = flags;
    event->context = context_current();
    event->holds = 1;
    *made = link_add(&events, event);
    return 0;
}

int cuEventCreate(weft_cu_event *event, unsigned flags) {
    CALL(CONTEXT, flags & ~(unsigned)FLAGS ? CUDA_ERROR_INVALID_VALUE : create(event, flags));
}

static int destroy(struct CUevent_st *event) {
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    link_remove(&events, event);
    event_drop(event);
    return 0;
}

int cuEventDestroy(weft_cu_event event) {
    CALL(CONTEXT, destroy(event_of(event)));
}

/* --- Recording ---------------------------------------------------------------------------------
 */

struct record {
    struct work work;
    struct CUevent_st *event;
};

static int run_record(struct work *work, struct CUstream_st *stream) {
    struct timespec now;
    (void)stream;
    clock_gettime(CLOCK_MONOTONIC, &now);
    __atomic_store_n(&((struct record *)work)->event->ns,
                     (int64_t)now.tv_sec * 1000000000 + now.tv_nsec, __ATOMIC_RELAXED);
    return 0;
}

static void drop_record(struct work *work) {
    event_drop(((struct record *)work)->event);
}

static int record_now(struct CUevent_st *event, struct CUstream_st *stream) {
    struct record *record = work_new(sizeof *record, run_record, drop_record);
    record->event = event;
    event->holds++;
    int error = stream_enqueue(stream, &record->work);
    if (error)
        return error;
    stream_hold(stream);
    if (event->stream)
        stream_drop(event->stream);
    event->stream = stream;
    event->ticket = stream->pushed;
    event->capture = 0;
    return 0;
}

static int record(struct CUevent_st *event, struct CUstream_st *stream) {
    if (!event || !stream || event->context != stream->context)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!stream->capture)
        return record_now(event, stream);
    event->capture = capture_id(stream);
    event->clock = stream->clock;
    return 0;
}

int cuEventRecord(weft_cu_event event, weft_cu_stream stream) {
    CALL(CONTEXT, record(event_of(event), stream_of(stream)));
}

/* --- Looking -----------------------------------------------------------------------------------
 */

static bool over(const struct CUevent_st *event) {
    return !event->stream || event->stream->done >= event->ticket;
}

static int query(const struct CUevent_st *event) {
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (event->capture)
        return CUDA_ERROR_CAPTURED_EVENT;
    return over(event) ? 0 : CUDA_ERROR_NOT_READY;
}

int cuEventQuery(weft_cu_event event) {
    CALL(NO_CAPTURE, query(event_of(event)));
}

static int synchronize(struct CUevent_st *event) {
    int error = query(event);
    return error == CUDA_ERROR_NOT_READY ? stream_finish(event->stream, event->ticket) : error;
}

int cuEventSynchronize(weft_cu_event event) {
    CALL(NO_CAPTURE, synchronize(event_of(event)));
}

static int elapsed(float *milliseconds, const struct CUevent_st *begin,
                   const struct CUevent_st *end) {
    if (!begin || !end || !begin->stream || !end->stream || (begin->flags | end->flags) & NO_TIMING)
        return CUDA_ERROR_INVALID_HANDLE;
    int error = query(begin) ? query(begin) : query(end);
    if (!error)
        *milliseconds = (float)(end->ns - begin->ns) / 1e6F;
    return error;
}

int cuEventElapsedTime(float *milliseconds, weft_cu_event begin, weft_cu_event end) {
    CALL(CONTEXT, elapsed(milliseconds, event_of(begin), event_of(end)));
}

static int await(struct CUstream_st *stream, struct CUevent_st *event) {
    if (!stream || !event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (event->capture)
        return capture_join(stream, event->capture, &event->clock);
    if (stream->capture)
        return event->stream
                   ? capture_invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
                   : 0;
    int error = stream_order(stream);
    if (!error && event->stream)
        stream_push_after(stream, event->stream, event->ticket);
    return error;
}

int cuStreamWaitEvent(weft_cu_stream stream, weft_cu_event event, unsigned flags) {
    CALL(CONTEXT, flags > 1 ? CUDA_ERROR_INVALID_VALUE : await(stream_of(stream), event_of(event)));
}
