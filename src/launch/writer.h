/* SPDX-License-Identifier: BSD-3-Clause */
/* The output of a job on several hosts, in the front. Data from daemons is queued, and a thread
 * writes it in whole lines, so that a slow reader delays only the output. The queue is bounded by
 * the amount that daemons may send without an acknowledgment. */
#ifndef WEFT_LAUNCH_WRITER_H
#define WEFT_LAUNCH_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_writer;

struct weft_writer_options {
    int npes, nhosts;
    const int32_t *host_of; /* of each PE */
    const char **name;      /* of each host */
    bool tag, tag_host;
};

/* Starts the thread. The arrays must outlive the writer. Returns 0, or -errno after logging the
 * reason. */
int weft_writer_open(struct weft_writer **writer, const struct weft_writer_options *options);

/* Queues what PE `pe` has written to its descriptor `stream`, 1 or 2. A count of 0 means that the
 * PE has closed it. Returns 0 or -ENOMEM. */
int weft_writer_give(struct weft_writer *writer, int pe, int stream, const void *bytes,
                     size_t count);

/* Returns a descriptor to poll for POLLIN: bytes have been written, or a stream has lost its
 * reader. */
int weft_writer_descriptor(struct weft_writer *writer);

/* Returns the number of a host's bytes that were written since the last call. */
int32_t weft_writer_taken(struct weft_writer *writer, int host);

/* Returns true once if stream 1 or 2 of this process has no reader any more. */
bool weft_writer_lost(struct weft_writer *writer, int stream);

/* Writes what is queued and ends the thread. Returns 0; -ETIMEDOUT if that takes longer than
 * patience_ms, after which it may be called again; or another -errno if output was lost, which has
 * been logged. */
int weft_writer_finish(struct weft_writer *writer, int patience_ms);

#endif
