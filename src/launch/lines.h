/* SPDX-License-Identifier: BSD-3-Clause */
/* What a PE writes to one of its streams, passed on to the launcher's own stdout or stderr in whole
 * lines, so that lines of several PEs do not mix; with tags, each has its PE in front. A line
 * longer than the buffer is passed on in pieces, with one tag in front of the first. If the
 * launcher's stream takes no more, as on a full disk, that is said once, and from then on what
 * comes is dropped, so that PEs go on. */
#ifndef WEFT_LAUNCH_LINES_H
#define WEFT_LAUNCH_LINES_H

#include <stdbool.h>
#include <stddef.h>

struct weft_sink {
    int fd;
    const char *name;
    int error; /* an errno: nothing is written any more */
};

enum { WEFT_LINES_BYTES = 8192 };

struct weft_lines {
    struct weft_sink *sink;
    int pe;           /* for tags; -1: none are written */
    const char *host; /* in tags; NULL: not */
    bool inside;      /* a piece of the current line has been written already */
    size_t used;
    char *line; /* what has come of the current line; made when it is first needed */
};

/* Take what the PE has written; the second, that no more will come: with tags the last line gets
 * the end that it may lack, or the next PE's would continue it. 0; -EPIPE: nobody reads the sink
 * any more; another -errno has been said. */
int weft_lines_add(struct weft_lines *lines, const char *bytes, size_t count);
int weft_lines_end(struct weft_lines *lines);

/* Without tags, writes the part of a line that has come, for prompts. As above. */
int weft_lines_flush(struct weft_lines *lines);

#endif
