/* SPDX-License-Identifier: BSD-3-Clause */
/* Events are recorded and waited for under the lock, because threads may share a lane. An event
 * belongs to the context in which it is recorded: "here" is the program's stream, "there" the lane.
 *
 * The pieces of a lane are free again after the join of a call, by the order of the program's
 * stream alone. So no call waits for events of another call, which captures would forbid. */
#include "transport/gpu_lane.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include "base/size.h"
#include "transport/gpu_slice.h"
#include "transport/gpu_word.h"

enum { PIECE_BYTES = 1 << 20, PIECES = 2, JOINT = PIECES, EVENTS };
#define STREAM_PER_THREAD ((weft_cu_stream)2) /* one handle, a stream for each thread */

struct lane {
    weft_cu_stream of, stream;
    const struct weft_gpu *gpu;  /* owner of the stream: an agent, or this PE's GPU */
    pthread_t thread;            /* owner of the STREAM_PER_THREAD */
    weft_cu_event here[EVENTS];  /* one per piece, and one for the fork */
    weft_cu_event there[EVENTS]; /* one per piece, and one for the join */
    char *pieces;                /* NULL until it is needed */
    struct lane *next;
};

/* Host memory through which GPUs copy. */
struct buffer {
    char *at;
    struct buffer *next;
};

static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static struct lane *lanes;
static struct buffer *buffers;

/* --- Creation --------------------------------------------------------------------------------- */

static char *buffer_make(size_t bytes) {
    struct buffer *buffer = malloc(sizeof *buffer);
    char *at = aligned_alloc(weft_page_bytes(), weft_page_up(bytes));
    if (!buffer || !at)
        weft_fail(-ENOMEM, "no memory to copy through");
    else if (weft_gpu_register(at, weft_page_up(bytes)) == 0) {
        *buffer = (struct buffer){at, buffers};
        buffers = buffer;
        return at;
    }
    free(buffer);
    free(at);
    return NULL;
}

static int events_create(weft_cu_event *events) {
    int error = 0;
    for (int i = 0; i < EVENTS && error == 0; i++)
        error = weft_cuda.cuEventCreate(&events[i], WEFT_CU_EVENT_NO_TIMING);
    return error;
}

static void events_destroy(weft_cu_event *events) {
    for (int i = 0; i < EVENTS; i++)
        if (events[i])
            weft_cuda.cuEventDestroy(events[i]);
}

static void lane_destroy(struct lane *lane) {
    events_destroy(lane->here);
    struct weft_gpu_scope scope = weft_gpu_enter(lane->gpu);
    events_destroy(lane->there);
    if (lane->stream)
        weft_cuda.cuStreamDestroy(lane->stream);
    weft_gpu_leave(scope);
    free(lane);
}

static int lane_create(struct lane *lane) {
    struct weft_gpu_scope scope = weft_gpu_enter(lane->gpu);
    int error = weft_cuda.cuStreamCreateWithPriority(&lane->stream, WEFT_CU_STREAM_NON_BLOCKING, 0);
    if (error == 0)
        error = events_create(lane->there);
    weft_gpu_leave(scope);
    return error ? error : events_create(lane->here);
}

static struct lane *lane_add(const struct weft_gpu *gpu, weft_cu_stream of) {
    struct lane *lane = calloc(1, sizeof *lane);
    if (!lane) {
        weft_fail(-ENOMEM, "no memory");
        return NULL;
    }
    *lane = (struct lane){.of = of, .gpu = gpu, .thread = pthread_self(), .next = lanes};
    int error = weft_cuda_check(lane_create(lane), "creating a lane of a stream");
    if (error) {
        lane_destroy(lane);
        return NULL;
    }
    return lanes = lane;
}

static struct lane *lane_find(const struct weft_gpu *gpu, weft_cu_stream of) {
    for (struct lane *lane = lanes; lane; lane = lane->next)
        if (lane->of == of && lane->gpu == gpu &&
            (of != STREAM_PER_THREAD || pthread_equal(lane->thread, pthread_self())))
            return lane;
    return lane_add(gpu, of);
}

/* --- Steps ------------------------------------------------------------------------------------ */

/* A call. It keeps the first error, and enqueues no work after that, only the join. */
struct passage {
    struct lane *lane;
    char *pieces;
    int error; /* 0 or -errno */
};

static void passage_note(struct passage *p, int error) {
    if (p->error == 0)
        p->error = weft_cuda_check(error, "work on a lane of a stream");
}

/* Makes the lane wait for the present end of the program's stream. */
static void passage_lead_there(struct passage *p, int event) {
    passage_note(p, weft_cuda.cuEventRecord(p->lane->here[event], p->lane->of));
    struct weft_gpu_scope scope = weft_gpu_enter(p->lane->gpu);
    if (p->error == 0)
        passage_note(p, weft_cuda.cuStreamWaitEvent(p->lane->stream, p->lane->here[event], 0));
    weft_gpu_leave(scope);
}

/* Makes the program's stream wait for the lane. */
static void passage_lead_here(struct passage *p, int event) {
    struct weft_gpu_scope scope = weft_gpu_enter(p->lane->gpu);
    passage_note(p, weft_cuda.cuEventRecord(p->lane->there[event], p->lane->stream));
    weft_gpu_leave(scope);
    passage_note(p, weft_cuda.cuStreamWaitEvent(p->lane->of, p->lane->there[event], 0));
}

static void passage_copy_here(struct passage *p, void *to, const void *from, size_t bytes,
                              enum weft_direction direction) {
    if (p->error == 0)
        p->error = weft_gpu_copy(to, from, bytes, direction, p->lane->of);
}

static void passage_copy_there(struct passage *p, void *to, const void *from, size_t bytes) {
    struct weft_gpu_scope scope = weft_gpu_enter(p->lane->gpu);
    if (p->error == 0)
        p->error = weft_gpu_copy(to, from, bytes, WEFT_BY_AGENT, p->lane->stream);
    weft_gpu_leave(scope);
}

static char *passage_piece(const struct passage *p, size_t turn) {
    return p->pieces + turn % PIECES * PIECE_BYTES;
}

static size_t piece_part(size_t bytes, size_t at) {
    return bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
}

/* --- Passages --------------------------------------------------------------------------------- */

/* Copies to the agent's memory. A piece is filled again here after it has been emptied there, two
 * turns before. */
static void passage_pass_there(struct passage *p, char *to, const char *from, size_t bytes) {
    for (size_t at = 0, turn = 0; at < bytes && p->error == 0; at += PIECE_BYTES, turn++) {
        int event = (int)(turn % PIECES);
        size_t part = piece_part(bytes, at);
        if (turn >= PIECES)
            passage_note(p, weft_cuda.cuStreamWaitEvent(p->lane->of, p->lane->there[event], 0));
        passage_copy_here(p, passage_piece(p, turn), from + at, part, WEFT_TO_HOST);
        passage_lead_there(p, event);
        passage_copy_there(p, to + at, passage_piece(p, turn), part);
        struct weft_gpu_scope scope = weft_gpu_enter(p->lane->gpu);
        passage_note(p, weft_cuda.cuEventRecord(p->lane->there[event], p->lane->stream));
        weft_gpu_leave(scope);
    }
}

static void passage_pass_here(struct passage *p, char *to, const char *from, size_t bytes) {
    for (size_t at = 0, turn = 0; at < bytes && p->error == 0; at += PIECE_BYTES, turn++) {
        int event = (int)(turn % PIECES);
        size_t part = piece_part(bytes, at);
        struct weft_gpu_scope scope = weft_gpu_enter(p->lane->gpu);
        if (turn >= PIECES)
            passage_note(p, weft_cuda.cuStreamWaitEvent(p->lane->stream, p->lane->here[event], 0));
        weft_gpu_leave(scope);
        passage_copy_there(p, passage_piece(p, turn), from + at, part);
        passage_lead_here(p, event);
        passage_copy_here(p, to + at, passage_piece(p, turn), part, WEFT_FROM_HOST);
        passage_note(p, weft_cuda.cuEventRecord(p->lane->here[event], p->lane->of));
    }
}

/* Takes pieces for the copy; a captured copy gets pieces of its own. */
static int passage_take_pieces(struct passage *p, size_t bytes) {
    size_t whole = (size_t)PIECES * PIECE_BYTES;
    if (weft_gpu_capturing(p->lane->of))
        p->pieces = buffer_make(bytes < whole ? bytes : whole);
    else if (!p->lane->pieces)
        p->pieces = p->lane->pieces = buffer_make(whole);
    else
        p->pieces = p->lane->pieces;
    return p->pieces ? 0 : -ENOMEM;
}

/* Runs work on a lane between fork and join. The join must follow every fork, because a capture
 * requires it. */
static int lane_work(const struct weft_gpu *gpu, weft_cu_stream stream,
                     void (*work)(struct passage *p, const void *argument), const void *argument) {
    pthread_mutex_lock(&changing);
    struct passage p = {.lane = lane_find(gpu, stream)};
    if (p.lane) {
        passage_lead_there(&p, JOINT);
        work(&p, argument);
        passage_lead_here(&p, JOINT);
    }
    pthread_mutex_unlock(&changing);
    return p.lane ? p.error : -ENODEV;
}

/* Copies between the agent's memory and another side: this GPU's memory, which needs pieces, or the
 * host's. */
static void passage_pass(struct passage *p, const void *transfer) {
    const struct weft_transfer *t = transfer;
    bool through = weft_gpu_memory_kind(t->put ? t->from : t->to) == WEFT_MEMORY_DEVICE;
    if (!through)
        passage_copy_there(p, t->to, t->from, t->bytes);
    else if (p->error == 0 && (p->error = passage_take_pieces(p, t->bytes)) == 0)
        (t->put ? passage_pass_there : passage_pass_here)(p, t->to, t->from, t->bytes);
}

int weft_gpu_lane_copy(const struct weft_gpu *agent, const struct weft_transfer *transfer,
                       weft_cu_stream stream) {
    return lane_work(agent, stream, passage_pass, transfer);
}

/* --- Signals ---------------------------------------------------------------------------------- */

struct signal64 {
    uint64_t *word, value;
    bool add;
};

/* Sets the word or adds to it. Setting needs no kernel, which would have to take turns on that GPU
 * with the kernels of the GPU's PE. */
static int lane_change_word(const struct lane *lane, const struct signal64 *s) {
    union weft_cu_word_op op = {.operation = WEFT_CU_OP_WRITE_64,
                                .address = (weft_cu_address)s->word,
                                .value64 = s->value,
                                .flags = WEFT_CU_WRITE_ORDERED};
    int error =
        s->add ? WEFT_CU_NOT_SUPPORTED : weft_cuda.cuStreamBatchMemOp(lane->stream, 1, &op, 0);
    if (error != WEFT_CU_NOT_SUPPORTED)
        return weft_cuda_check(error, "cuStreamBatchMemOp");
    return weft_gpu_signal(s->word, s->value, s->add, lane->stream);
}

static void passage_signal(struct passage *p, const void *signal) {
    struct weft_gpu_scope scope = weft_gpu_enter(p->lane->gpu);
    if (p->error == 0)
        p->error = lane_change_word(p->lane, signal);
    weft_gpu_leave(scope);
}

int weft_gpu_lane_signal(const struct weft_gpu *agent, uint64_t *word, uint64_t value, bool add,
                         weft_cu_stream stream) {
    return lane_work(agent, stream, passage_signal, &(struct signal64){word, value, add});
}

static void passage_signal32(struct passage *p, const void *signal) {
    const struct weft_gpu_signal32 *s = signal;
    struct weft_gpu_scope scope = weft_gpu_enter(p->lane->gpu);
    if (p->error == 0)
        p->error = s->add ? weft_gpu_signal32(s, p->lane->stream)
                          : weft_gpu_write32(s->word.words + s->word.index.value,
                                             (int32_t)s->value.value, p->lane->stream);
    weft_gpu_leave(scope);
}

int weft_gpu_lane_signal32(const struct weft_gpu *agent, const struct weft_gpu_signal32 *s,
                           weft_cu_stream stream) {
    return lane_work(agent, stream, passage_signal32, s);
}

/* --- Fork and join ---------------------------------------------------------------------------- */

int weft_gpu_lane_fork(const struct weft_gpu *gpu, weft_cu_stream stream, weft_cu_stream *beside) {
    pthread_mutex_lock(&changing);
    struct passage p = {.lane = lane_find(gpu, stream)};
    if (p.lane) {
        passage_lead_there(&p, JOINT);
        *beside = p.lane->stream;
    }
    pthread_mutex_unlock(&changing);
    return p.lane ? p.error : -ENODEV;
}

int weft_gpu_lane_join(const struct weft_gpu *gpu, weft_cu_stream stream) {
    pthread_mutex_lock(&changing);
    struct passage p = {.lane = lane_find(gpu, stream)};
    if (p.lane)
        passage_lead_here(&p, JOINT);
    pthread_mutex_unlock(&changing);
    return p.lane ? p.error : -ENODEV;
}

void weft_gpu_lanes_close(const struct weft_gpu *kept) {
    pthread_mutex_lock(&changing);
    for (struct lane **at = &lanes, *lane; (lane = *at);) {
        if (lane->gpu == kept) {
            at = &lane->next;
            continue;
        }
        *at = lane->next;
        lane_destroy(lane);
    }
    while (buffers) {
        struct buffer *buffer = buffers;
        buffers = buffer->next;
        weft_gpu_unregister(buffer->at);
        free(buffer->at);
        free(buffer);
    }
    pthread_mutex_unlock(&changing);
}
