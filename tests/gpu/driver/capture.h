/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures under way: streams whose works go into a graph.
 *
 * A stream joins a capture by waiting for an event recorded in it. Which works of which lanes come
 * before a work is told by a clock, which streams and events carry. */
#ifndef TESTS_GPU_DRIVER_CAPTURE_H
#define TESTS_GPU_DRIVER_CAPTURE_H

#include "stream.h"

/* Appends the work, which it owns then, to the graph of the stream's capture. */
int capture_add(struct CUstream_st *stream, struct work *work);

/* An error, with the captures invalidated that forbid it, where a call that would disturb captures
 * is made in a thread whose mode does not allow that. */
int capture_forbids(void);

/* An error, with the capture invalidated, if the stream is being captured. */
int capture_refuses(struct CUstream_st *stream);

/* An identity for events; 0 if the stream is not being captured. */
uint64_t capture_id(const struct CUstream_st *stream);

/* Makes the stream follow the work that an event recorded in a capture. */
int capture_join(struct CUstream_st *stream, uint64_t id, const struct clock *clock);

/* Ends a capture that an operation has made invalid. */
int capture_invalidate(struct capture *capture, int error);

/* The stream is being destroyed. */
void capture_forget(struct CUstream_st *stream);

#endif
