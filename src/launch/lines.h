/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes what a PE writes to a stream to the launcher's stdout or stderr in whole lines, so that
 * lines of different PEs do not mix. With tags, each line begins with its PE. A line longer than
 * the buffer is written in pieces, with one tag before the first. If writing fails, as on a full
 * disk, one error line is logged and further output is dropped, so that PEs go on. */
#ifndef WEFT_LAUNCH_LINES_H
#define WEFT_LAUNCH_LINES_H

#include <stdbool.h>
#include <stddef.h>

struct weft_sink {
    int fd;
    const char *name;
    int error; /* an errno: nothing more is written */
};

enum { WEFT_LINES_BYTES = 8192 };

struct weft_lines {
    struct weft_sink *sink;
    int pe;           /* for tags; -1: no tags */
    const char *host; /* in tags; NULL: none */
    bool inside;      /* a piece of the current line has been written */
    size_t used;
    char *line; /* the incomplete current line; allocated on first use */
};

/* weft_lines_add takes what the PE has written. weft_lines_end takes the end of the stream: with
 * tags, a last line without a newline gets one, as otherwise another PE's output would continue it.
 * Both return 0; -EPIPE if the sink has no reader; or another -errno after logging it. */
int weft_lines_add(struct weft_lines *lines, const char *bytes, size_t count);
int weft_lines_end(struct weft_lines *lines);

/* Without tags, writes the incomplete line, which may be a prompt. Returns as above. */
int weft_lines_flush(struct weft_lines *lines);

#endif
