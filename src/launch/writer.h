/* SPDX-License-Identifier: BSD-3-Clause */
/* The output of a job on several hosts, at its front: what daemons send waits in a queue, and a
 * thread writes it in lines, so that a reader who does not read delays nothing but the output. The
 * queue is as long as daemons may send without hearing that something was taken. */
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

/* Starts the thread. The arrays outlive the writer. 0 or -errno, not logged. */
int weft_writer_open(struct weft_writer **writer, const struct weft_writer_options *options);

/* Queues what PE `pe` has written to its descriptor `stream`, 1 or 2; no bytes: it has closed it. 0
 * or -ENOMEM. */
int weft_writer_give(struct weft_writer *writer, int pe, int stream, const void *bytes,
                     size_t count);

/* To be polled for POLLIN: then something was taken, or a stream has lost its reader. */
int weft_writer_descriptor(struct weft_writer *writer);

/* Bytes of a host's that were taken since the last call. */
int32_t weft_writer_taken(struct weft_writer *writer, int host);

/* True once if nobody reads this stream of ours, 1 or 2, any more. */
bool weft_writer_lost(struct weft_writer *writer, int stream);

/* Writes out what has come and ends the thread. 0; -ETIMEDOUT: that takes longer than patience_ms,
 * and may be asked for again; another -errno, said: output was lost. */
int weft_writer_finish(struct weft_writer *writer, int patience_ms);

#endif
