/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams: a queue and a thread each. The n-th work pushed has ticket n, and `done` counts.
 *
 * The default stream of a context is a stream like others, made when it is first used; it and the
 * streams that block with it wait for each other by works that wait for tickets. */
#ifndef TESTS_GPU_DRIVER_STREAM_H
#define TESTS_GPU_DRIVER_STREAM_H

#include "gpu.h"
#include "work.h"

/* The maximum number of streams in one capture; each is a lane of the graph. A clock has the number
 * of preceding works of each lane. */
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
    struct CUstream_st *next;                  /* in its context */
};

/* Returns the stream of a handle, in any context; the current context's default stream for NULL.
 * Returns NULL if the handle is invalid. */
struct CUstream_st *stream_of(weft_cu_stream handle);

struct CUstream_st *stream_new(struct CUctx_st *context, bool blocking);
void stream_hold(struct CUstream_st *stream);
void stream_drop(struct CUstream_st *stream);

/* Ends the stream after its pushed works. Releases one hold. */
void stream_close(struct CUstream_st *stream);
void stream_close_all(struct CUctx_st *context);

/* Owns the work from now on: adds it to the graph if the stream is being captured, otherwise after
 * the works that must precede it. */
int stream_enqueue(struct CUstream_st *stream, struct work *work);

/* Its two halves for works that are not captured. */
int stream_order(struct CUstream_st *stream);
uint64_t stream_push(struct CUstream_st *stream, struct work *work);

/* Makes later works wait until `other` has done `ticket`. */
void stream_push_after(struct CUstream_st *stream, struct CUstream_st *other, uint64_t ticket);

/* Waits for a ticket, with driver_lock released meanwhile; the context's failure or 0. */
int stream_finish(struct CUstream_st *stream, uint64_t ticket);
int stream_drain_all(struct CUctx_st *context);

/* Waits a random time, if the tests want that; returns true if they want disorder, too. */
bool stream_dither(struct CUstream_st *stream);

#endif
