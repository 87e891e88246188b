/* SPDX-License-Identifier: BSD-3-Clause */
/* With tags, each stream collects bytes up to a line's end. A line longer than the buffer is passed
 * on in pieces, with one tag in front of the first. If the launcher's own stdout or stderr takes no
 * more, as on a full disk, it says so, and from then on reads and drops what the PEs write, so that
 * they go on. */
#include "launch/output.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"

enum { LINE_BYTES = 8192, TAG_BYTES = 16 };

struct sink {
    int fd;
    const char *name;
    int error; /* an errno: nothing is written any more */
};

struct stream {
    int source, feed; /* the pipe: what the PE writes to `feed` comes out of `source`; -1: closed */
    struct sink *sink;
    int pe;
    bool inside; /* a piece of the current line has been written already */
    size_t used;
    char line[LINE_BYTES];
};

struct weft_output {
    int nstreams;
    int finish; /* eventfd */
    pthread_t thread;
    bool running;
    struct pollfd *polls;
    struct sink sink[2];
    struct stream stream[];
};

int weft_output_open(struct weft_output **opened, int npes) {
    size_t nstreams = 2 * (size_t)npes;
    struct weft_output *output = calloc(1, sizeof *output + nstreams * sizeof *output->stream);
    struct pollfd *polls = calloc(nstreams + 1, sizeof *polls);
    if (!output || !polls)
        return -ENOMEM; /* oshrun gives up: nothing to take back */
    output->nstreams = (int)nstreams;
    output->polls = polls;
    output->finish = eventfd(0, EFD_CLOEXEC);
    output->sink[0] = (struct sink){.fd = STDOUT_FILENO, .name = "standard output"};
    output->sink[1] = (struct sink){.fd = STDERR_FILENO, .name = "standard error"};
    for (size_t i = 0; i < nstreams; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0)
            return -errno;
        struct stream *stream = &output->stream[i];
        stream->source = ends[0];
        stream->feed = ends[1];
        stream->sink = &output->sink[i % 2];
        stream->pe = (int)i / 2;
        fcntl(stream->source, F_SETFL, O_NONBLOCK); /* of our end only */
    }
    *opened = output;
    return 0;
}

void weft_output_redirect(const struct weft_output *output, int pe) {
    dup2(output->stream[2 * pe].feed, STDOUT_FILENO);
    dup2(output->stream[2 * pe + 1].feed, STDERR_FILENO);
}

static void stream_close(struct stream *stream) {
    close(stream->source);
    stream->source = -1;
}

/* 0, or why not all of it was written: an errno. */
static int write_all(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t written = write(fd, bytes, length);
        if (written < 0 && errno == EAGAIN) /* someone made our terminal non-blocking */
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else if (written < 0 && errno != EINTR)
            return errno;
        bytes += written > 0 ? written : 0;
        length -= written > 0 ? (size_t)written : 0;
    }
    return 0;
}

/* A reader that has gone is no failure: the PE learns it as from our closed stdout, by SIGPIPE. */
static void stream_broken(struct stream *stream, int error) {
    if (error == EPIPE && stream->source >= 0) {
        stream_close(stream);
    } else if (error != EPIPE) {
        stream->sink->error = error;
        fprintf(stderr, "oshrun: cannot write to %s: %s; what PEs write there is lost from here\n",
                stream->sink->name, strerror(error));
    }
}

/* One write for tag and text, so that lines of several PEs do not mix. */
static void write_piece(struct stream *stream, const char *text, size_t length) {
    char piece[TAG_BYTES + LINE_BYTES];
    int tag = stream->inside ? 0 : snprintf(piece, TAG_BYTES, "[%d] ", stream->pe);
    memcpy(piece + tag, text, length);
    stream->inside = text[length - 1] != '\n';
    if (stream->sink->error)
        return;
    int error = write_all(stream->sink->fd, piece, (size_t)tag + length);
    if (error)
        stream_broken(stream, error);
}

/* Passes on all complete lines. A buffer that is full without one passes on as it is. */
static void write_lines(struct stream *stream) {
    size_t begin = 0;
    char *end;
    while ((end = memchr(stream->line + begin, '\n', stream->used - begin))) {
        size_t length = (size_t)(end - stream->line) + 1 - begin;
        write_piece(stream, stream->line + begin, length);
        begin += length;
    }
    if (begin == 0 && stream->used == LINE_BYTES) {
        write_piece(stream, stream->line, stream->used);
        begin = stream->used;
    }
    stream->used -= begin;
    memmove(stream->line, stream->line + begin, stream->used);
}

/* The last line may lack its end: it gets one, or the next PE's line would continue it. */
static void write_rest(struct stream *stream) {
    if (stream->used == 0 && !stream->inside)
        return;
    if (stream->used == LINE_BYTES)
        write_lines(stream);
    stream->line[stream->used++] = '\n';
    write_piece(stream, stream->line, stream->used);
    stream->used = 0;
}

/* Passes on what is there; whether there may be more. */
static bool stream_pump(struct stream *stream) {
    ssize_t count = read(stream->source, stream->line + stream->used, LINE_BYTES - stream->used);
    if (count < 0)
        return errno == EINTR;
    stream->used += (size_t)count;
    if (count > 0) {
        write_lines(stream);
        return stream->source >= 0;
    }
    stream_close(stream);
    return false;
}

static bool output_poll(struct weft_output *output) {
    int open = 0;
    for (int i = 0; i < output->nstreams; i++) {
        open += output->stream[i].source >= 0;
        output->polls[i] = (struct pollfd){.fd = output->stream[i].source, .events = POLLIN};
    }
    output->polls[output->nstreams] = (struct pollfd){.fd = output->finish, .events = POLLIN};
    if (open > 0)
        poll(output->polls, (nfds_t)output->nstreams + 1, -1);
    return open > 0 && output->polls[output->nstreams].revents == 0;
}

static void *output_main(void *argument) {
    struct weft_output *output = argument;
    while (output_poll(output))
        for (int i = 0; i < output->nstreams; i++)
            if (output->polls[i].revents)
                stream_pump(&output->stream[i]);
    for (int i = 0; i < output->nstreams; i++) {
        struct stream *stream = &output->stream[i];
        while (stream->source >= 0 && stream_pump(stream))
            ;
        write_rest(stream);
    }
    return NULL;
}

int weft_output_start(struct weft_output *output) {
    for (int i = 0; i < output->nstreams; i++)
        close(output->stream[i].feed);
    int result = pthread_create(&output->thread, NULL, output_main, output);
    output->running = result == 0;
    return -result;
}

int weft_output_finish(struct weft_output *output, int patience_ms) {
    if (!output->running)
        return 0;
    eventfd_write(output->finish, 1);
    struct timespec until = weft_clock_deadline_ms(patience_ms);
    if (patience_ms < 0)
        pthread_join(output->thread, NULL);
    else
        pthread_timedjoin_np(output->thread, NULL, &until);
    return output->sink[0].error ? -output->sink[0].error : -output->sink[1].error;
}

/* --- Files ----------------------------------------------------------------------------------- */

enum { FOLDER_MODE = 0777, FILE_MODE = 0666 }; /* less what umask takes away */

static int file_refuse(const char *action, const char *path) {
    int code = -errno;
    fprintf(stderr, "oshrun: cannot %s %s: %s\n", action, path, strerror(-code));
    return code;
}

/* Every folder on the way to the last slash of `path`, which is the same again afterwards. */
static int folders_make(char *path) {
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int code = mkdir(path, FOLDER_MODE) < 0 && errno != EEXIST
                       ? file_refuse("make the folder", path)
                       : 0;
        *slash = '/';
        if (code)
            return code;
    }
    return 0;
}

int weft_output_open_files(const char *folder, int pe, int fds[2]) {
    static const char *const names[] = {"stdout", "stderr"};
    char path[PATH_MAX];
    int code = 0;
    for (int i = 0; code == 0 && i < 2; i++) {
        snprintf(path, sizeof path, "%s/rank.%d/%s", folder, pe, names[i]);
        code = folders_make(path);
        fds[i] = code ? -1 : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, FILE_MODE);
        if (code == 0 && fds[i] < 0)
            code = file_refuse("write", path);
    }
    return code;
}

void weft_output_redirect_to(const int fds[2]) {
    dup2(fds[0], STDOUT_FILENO);
    dup2(fds[1], STDERR_FILENO);
}
