/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams: a queue and a thread each. The n-th work pushed has ticket n, and `done` counts.
 *
 * The default stream of a context is a stream like others, made when it is first used; it and the
 * streams that block with it wait for each other by works that wait for tickets. */
#ifndef TESTS_GPU_DRIVER_STREAM_H
#define TESTS_GPU_DRIVER_STREAM_H

#include "gpu.h"
#include "work.h"

/* Streams that can take part in one capture; each is a lane of the graph. A clock says how many
 * works of each lane come before. */
#define LANES_MAX 16
struct clock {
    unsigned before[LANES_MAX];
};

struct CUstream_st {
    struct CUctx_st *context;
    bool blocking; /* with the default stream */
    bool closing;
    unsigned holds; /* handle, thread, works and events of others */
    uint64_t id;    /* never used again */
    uint64_t pushed, done;
    struct item *first, **last;
    pthread_cond_t arrival;
    uint64_t random;
    struct capture *capture; /* being captured, or NULL */
    int lane;
    struct clock clock;
    struct unordered *unordered;               /* writes that have not been made yet, or NULL */
    int (*settle)(struct CUstream_st *stream); /* makes them, without driver_lock */
    struct CUstream_st *next;                  /* of its context */
};

/* That of a handle, in any context; the current context's default stream for NULL. NULL where the
 * handle is none. */
struct CUstream_st *stream_of(weft_cu_stream handle);

struct CUstream_st *stream_new(struct CUctx_st *context, bool blocking);
void stream_hold(struct CUstream_st *stream);
void stream_drop(struct CUstream_st *stream);

/* No more will be pushed; what has been is done first. Gives one hold back. */
void stream_close(struct CUstream_st *stream);
void stream_close_all(struct CUctx_st *context);

/* Takes the work over: into the graph if the stream is being captured, else behind what it has to
 * come behind. */
int stream_enqueue(struct CUstream_st *stream, struct work *work);

/* Its two halves for works that are not captured. */
int stream_order(struct CUstream_st *stream);
uint64_t stream_push(struct CUstream_st *stream, struct work *work);

/* What is pushed later waits until `other` has done `ticket`. */
void stream_push_after(struct CUstream_st *stream, struct CUstream_st *other, uint64_t ticket);

/* Waits for a ticket, with driver_lock released meanwhile; the context's failure or 0. */
int stream_finish(struct CUstream_st *stream, uint64_t ticket);
int stream_drain_all(struct CUctx_st *context);

/* A moment at random, if the tests want that; true where it wants disorder, too. */
bool stream_dither(struct CUstream_st *stream);

#endif
