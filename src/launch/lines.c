/* SPDX-License-Identifier: BSD-3-Clause */
/* A tag and its text are written with one call of write, and so are several lines without tags. */
#include "launch/lines.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAG_BYTES = 96 };

/* Returns 0, or the errno with which writing failed. */
static int write_all(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t written = write(fd, bytes, length);
        if (written < 0 && errno == EAGAIN) /* another process made the terminal non-blocking */
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else if (written < 0 && errno != EINTR)
            return errno;
        bytes += written > 0 ? written : 0;
        length -= written > 0 ? (size_t)written : 0;
    }
    return 0;
}

/* A closed reader is not an error of the launcher: the PE gets SIGPIPE, as if it wrote to the
 * launcher's stdout itself. */
static int sink_write(struct weft_sink *sink, const char *bytes, size_t length) {
    int error = sink->error ? 0 : write_all(sink->fd, bytes, length);
    if (error && error != EPIPE) {
        sink->error = error;
        fprintf(stderr, "oshrun: cannot write to %s: %s; further output of PEs to it is lost\n",
                sink->name, strerror(error));
    }
    return -error;
}

static int tag_print(const struct weft_lines *lines, char *text) {
    if (lines->pe < 0 || lines->inside)
        return 0;
    return lines->host ? snprintf(text, TAG_BYTES, "[%d %s] ", lines->pe, lines->host)
                       : snprintf(text, TAG_BYTES, "[%d] ", lines->pe);
}

static int piece_write(struct weft_lines *lines, const char *text, size_t length) {
    char piece[TAG_BYTES + WEFT_LINES_BYTES];
    int tag = tag_print(lines, piece);
    memcpy(piece + tag, text, length);
    lines->inside = text[length - 1] != '\n';
    return sink_write(lines->sink, piece, (size_t)tag + length);
}

/* Returns the end of the last complete line in the buffer (of the first line if lines are tagged),
 * or NULL if no line is complete. */
static const char *line_end(const struct weft_lines *lines, const char *text, size_t length) {
    return lines->pe < 0 ? memrchr(text, '\n', length) : memchr(text, '\n', length);
}

/* Writes all complete lines. A full buffer without a complete line is written as it is. */
static int lines_pass(struct weft_lines *lines) {
    size_t begin = 0;
    const char *end;
    int error = 0;
    while ((end = line_end(lines, lines->line + begin, lines->used - begin)) && error == 0) {
        size_t length = (size_t)(end - lines->line) + 1 - begin;
        error = piece_write(lines, lines->line + begin, length);
        begin += length;
    }
    if (begin == 0 && lines->used == WEFT_LINES_BYTES) {
        error = piece_write(lines, lines->line, lines->used);
        begin = lines->used;
    }
    lines->used -= begin;
    memmove(lines->line, lines->line + begin, lines->used);
    return error;
}

int weft_lines_add(struct weft_lines *lines, const char *bytes, size_t count) {
    int error = 0;
    if (!lines->line)
        lines->line = malloc(WEFT_LINES_BYTES);
    if (!lines->line) /* lines of different PEs may then mix */
        return sink_write(lines->sink, bytes, count);
    while (count > 0 && error == 0) {
        size_t room = WEFT_LINES_BYTES - lines->used, part = count < room ? count : room;
        memcpy(lines->line + lines->used, bytes, part);
        lines->used += part;
        bytes += part;
        count -= part;
        error = lines_pass(lines);
    }
    return error;
}

int weft_lines_flush(struct weft_lines *lines) {
    if (lines->used == 0 || lines->pe >= 0)
        return 0;
    int error = piece_write(lines, lines->line, lines->used);
    lines->used = 0;
    return error;
}

int weft_lines_end(struct weft_lines *lines) {
    if (lines->pe >= 0 && (lines->used > 0 || lines->inside))
        return weft_lines_add(lines, "\n", 1);
    return weft_lines_flush(lines);
}
