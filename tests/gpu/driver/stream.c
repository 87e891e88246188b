/* SPDX-License-Identifier: BSD-3-Clause */
#include "stream.h"
#include "capture.h"
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct item {
    struct work *work;
    struct item *next;
};

/* Some stream has done something, or a context has failed. */
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;

/* --- The thread of a stream --------------------------------------------------------------------
 */

bool stream_dither(struct CUstream_st *stream) {
    static long delay_us_max = -1;
    if (delay_us_max < 0)
        delay_us_max = call_setting("WEFT_FAKE_DELAY_US", 0);
    if (delay_us_max <= 0)
        return false;
    stream->random = stream->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    unsigned drawn = (unsigned)(stream->random >> 33);
    if (drawn & 1)
        usleep(drawn / 2 % (unsigned)delay_us_max);
    else
        sched_yield();
    return true;
}

/* The first of the queue, which stays there until it is done; NULL at the end of the stream. */
static struct work *next_work(struct CUstream_st *stream) {
    while (!stream->first && !stream->closing)
        pthread_cond_wait(&stream->arrival, &driver_lock);
    return stream->first ? stream->first->work : NULL;
}

/* A thread that waits for the last work of a stream waits for all of its writes. */
static int settle_last(struct CUstream_st *stream) {
    if (!stream->unordered || stream->first->next)
        return 0;
    pthread_mutex_unlock(&driver_lock);
    int error = stream->settle(stream);
    pthread_mutex_lock(&driver_lock);
    return error;
}

/* In a failed context works are passed over. */
static void run(struct CUstream_st *stream, struct work *work) {
    if (stream->context->failed)
        return;
    pthread_mutex_unlock(&driver_lock);
    stream_dither(stream);
    int error = stream->unordered && !work->passes_writes ? stream->settle(stream) : 0;
    error = error ? error : work->run(work, stream);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    pthread_mutex_lock(&driver_lock);
    error = error ? error : settle_last(stream);
    if (error && !stream->context->failed)
        __atomic_store_n(&stream->context->failed, error, __ATOMIC_RELAXED);
}

static void remove_first(struct CUstream_st *stream) {
    struct item *item = stream->first;
    stream->first = item->next;
    if (!stream->first)
        stream->last = &stream->first;
    work_drop(item->work);
    free(item);
    stream->done++;
    pthread_cond_broadcast(&progress);
}

static void *serve(void *argument) {
    struct CUstream_st *stream = argument;
    struct work *work;
    pthread_mutex_lock(&driver_lock);
    while ((work = next_work(stream))) {
        run(stream, work);
        remove_first(stream);
    }
    stream_drop(stream);
    pthread_mutex_unlock(&driver_lock);
    return NULL;
}

/* Signals are for the program's own threads. */
static bool start_thread(struct CUstream_st *stream) {
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread, NULL, serve, stream) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_detach(thread);
    return started;
}

/* --- Life --------------------------------------------------------------------------------------
 */

struct CUstream_st *stream_new(struct CUctx_st *context, bool blocking) {
    static uint64_t count;
    struct CUstream_st *stream = calloc(1, sizeof *stream);
    stream->id = ++count;
    stream->context = context;
    stream->blocking = blocking;
    stream->holds = 2; /* whose handle it is, and the thread */
    stream->last = &stream->first;
    stream->random =
        (uint64_t)call_setting("WEFT_FAKE_SEED", 0) * 1000003 + (uint64_t)getpid() * 257 + count;
    pthread_cond_init(&stream->arrival, NULL);
    if (start_thread(stream))
        return stream;
    free(stream);
    return NULL;
}

void stream_hold(struct CUstream_st *stream) {
    stream->holds++;
}

void stream_drop(struct CUstream_st *stream) {
    if (--stream->holds)
        return;
    pthread_cond_destroy(&stream->arrival);
    free(stream->unordered);
    free(stream);
}

void stream_close(struct CUstream_st *stream) {
    capture_forget(stream);
    stream->closing = true;
    pthread_cond_signal(&stream->arrival);
    stream_drop(stream);
}

void stream_close_all(struct CUctx_st *context) {
    while (context->streams) {
        struct CUstream_st *stream = context->streams;
        context->streams = stream->next;
        stream_close(stream);
    }
    context->legacy = NULL;
}

static struct CUstream_st *stream_open(struct CUctx_st *context, bool blocking) {
    struct CUstream_st *stream = stream_new(context, blocking);
    if (stream) {
        stream->next = context->streams;
        context->streams = stream;
    }
    return stream;
}

static struct CUstream_st *legacy_stream(struct CUctx_st *context) {
    if (!context->legacy)
        context->legacy = stream_open(context, true);
    return context->legacy;
}

struct CUstream_st *stream_of(weft_cu_stream handle) {
    if (!handle || handle == WEFT_CU_STREAM_LEGACY)
        return legacy_stream(context_current());
    struct CUctx_st *context;
    for (int gpu = 0; (context = context_of(gpu)); gpu++)
        for (struct CUstream_st *stream = context->streams; stream; stream = stream->next)
            if (stream == handle)
                return stream;
    return NULL;
}

static int create(weft_cu_stream *stream, unsigned flags) {
    struct CUstream_st *made =
        stream_open(context_current(), !(flags & WEFT_CU_STREAM_NON_BLOCKING));
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *stream = made;
    return 0;
}

/* A priority out of range is moved into it: nothing to do, for all streams run at once. */
int cuStreamCreateWithPriority(weft_cu_stream *stream, unsigned flags, int priority) {
    (void)priority;
    CALL(CONTEXT, flags & ~(unsigned)WEFT_CU_STREAM_NON_BLOCKING ? CUDA_ERROR_INVALID_VALUE
                                                                 : create(stream, flags));
}

static int destroy(struct CUstream_st *stream) {
    if (!stream || stream == stream->context->legacy)
        return CUDA_ERROR_INVALID_HANDLE;
    struct CUstream_st **slot = &stream->context->streams;
    while (*slot != stream)
        slot = &(*slot)->next;
    *slot = stream->next;
    stream_close(stream);
    return 0;
}

int cuStreamGetId(weft_cu_stream handle, uint64_t *id) {
    struct CUstream_st *stream;
    CALL(CONTEXT,
         !(stream = stream_of(handle)) ? CUDA_ERROR_INVALID_HANDLE : (*id = stream->id, 0));
}

int cuStreamDestroy(weft_cu_stream stream) {
    CALL(CONTEXT, stream ? destroy(stream_of(stream)) : CUDA_ERROR_INVALID_HANDLE);
}

/* --- Order -------------------------------------------------------------------------------------
 */

uint64_t stream_push(struct CUstream_st *stream, struct work *work) {
    struct item *item = malloc(sizeof *item);
    *item = (struct item){work, NULL};
    *stream->last = item;
    stream->last = &item->next;
    pthread_cond_signal(&stream->arrival);
    return ++stream->pushed;
}

struct after {
    struct work work;
    struct CUstream_st *other;
    uint64_t ticket;
};

static int run_after(struct work *work, struct CUstream_st *stream) {
    struct after *after = (struct after *)work;
    (void)stream;
    pthread_mutex_lock(&driver_lock);
    while (after->other->done < after->ticket)
        pthread_cond_wait(&progress, &driver_lock);
    pthread_mutex_unlock(&driver_lock);
    return 0;
}

static void drop_after(struct work *work) {
    stream_drop(((struct after *)work)->other);
}

void stream_push_after(struct CUstream_st *stream, struct CUstream_st *other, uint64_t ticket) {
    if (stream == other || other->done >= ticket)
        return;
    struct after *after = work_new(sizeof *after, run_after, drop_after);
    after->other = other;
    after->ticket = ticket;
    stream_hold(other);
    stream_push(stream, &after->work);
}

/* The default stream follows all blocking streams, and they follow it. */
int stream_order(struct CUstream_st *stream) {
    struct CUctx_st *context = stream->context;
    if (!stream->blocking || !context->legacy)
        return 0;
    if (stream != context->legacy) {
        stream_push_after(stream, context->legacy, context->legacy->pushed);
        return 0;
    }
    for (struct CUstream_st *other = context->streams; other; other = other->next)
        if (other->blocking && other->capture)
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    for (struct CUstream_st *other = context->streams; other; other = other->next)
        if (other->blocking)
            stream_push_after(stream, other, other->pushed);
    return 0;
}

int stream_enqueue(struct CUstream_st *stream, struct work *work) {
    if (stream->capture)
        return capture_add(stream, work);
    int error = stream_order(stream);
    if (error)
        work_drop(work);
    else
        stream_push(stream, work);
    return error;
}

/* --- Waiting -----------------------------------------------------------------------------------
 */

int stream_finish(struct CUstream_st *stream, uint64_t ticket) {
    stream_hold(stream);
    while (stream->done < ticket)
        pthread_cond_wait(&progress, &driver_lock);
    int failed = stream->context->failed;
    stream_drop(stream);
    return failed;
}

static int synchronize(struct CUstream_st *stream) {
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    int error = capture_refuses(stream);
    if (!error)
        error = stream_order(stream);
    return error ? error : stream_finish(stream, stream->pushed);
}

int cuStreamSynchronize(weft_cu_stream stream) {
    CALL(NO_CAPTURE, synchronize(stream_of(stream)));
}

static int query(struct CUstream_st *stream) {
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    int error = capture_refuses(stream);
    if (!error)
        error = stream_order(stream);
    if (!error && stream->done < stream->pushed)
        error = CUDA_ERROR_NOT_READY;
    return error;
}

int cuStreamQuery(weft_cu_stream stream) {
    CALL(NO_CAPTURE, query(stream_of(stream)));
}

/* Streams may be created and destroyed meanwhile: searches for a busy one until there is none. */
int stream_drain_all(struct CUctx_st *context) {
    for (struct CUstream_st *stream = context->streams; stream;) {
        int error = capture_refuses(stream);
        if (error)
            return error;
        bool done = stream->done == stream->pushed;
        if (!done)
            stream_finish(stream, stream->pushed);
        stream = done ? stream->next : context->streams;
    }
    return context->failed;
}
