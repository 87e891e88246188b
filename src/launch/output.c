/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread reads the pipes of all PEs and writes their output in whole lines (launch/lines.h). */
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
#include "base/deadline.h"
#include "base/machine.h"
#include "launch/failure.h"
#include "launch/lines.h"

struct stream {
    int source, feed; /* ends of the pipe: the PE writes to `feed`; -1: closed */
    struct weft_lines lines;
};

struct weft_output {
    int nstreams;
    int finish; /* eventfd */
    pthread_t thread;
    bool running;
    struct pollfd *polls;
    struct weft_sink sink[2];
    struct stream stream[];
};

int weft_output_open(struct weft_output **opened, int npes, const char *host) {
    size_t nstreams = 2 * (size_t)npes;
    struct weft_output *output = calloc(1, sizeof *output + nstreams * sizeof *output->stream);
    struct pollfd *polls = calloc(nstreams + 1, sizeof *polls);
    if (!output || !polls)
        return weft_failure_say(-ENOMEM, "malloc, for the output of %d PEs", npes);
    output->nstreams = (int)nstreams;
    output->polls = polls;
    output->finish = eventfd(0, EFD_CLOEXEC);
    output->sink[0] = (struct weft_sink){.fd = STDOUT_FILENO, .name = "standard output"};
    output->sink[1] = (struct weft_sink){.fd = STDERR_FILENO, .name = "standard error"};
    for (size_t i = 0; i < nstreams; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0)
            return weft_failure_say(-errno, "pipe2, for the output of PE %zu", i / 2);
        struct stream *stream = &output->stream[i];
        stream->source = ends[0];
        stream->feed = ends[1];
        stream->lines =
            (struct weft_lines){.sink = &output->sink[i % 2], .pe = (int)i / 2, .host = host};
        fcntl(stream->source, F_SETFL, O_NONBLOCK); /* only the launcher's end */
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

/* Reads and writes one piece of output. Returns whether there may be more. If the launcher's own
 * stream has no reader any more, the pipe is closed and the PE gets SIGPIPE. */
static bool stream_pump(struct stream *stream) {
    char bytes[WEFT_LINES_BYTES];
    ssize_t count = read(stream->source, bytes, sizeof bytes);
    if (count < 0)
        return errno == EINTR;
    if (count > 0 && weft_lines_add(&stream->lines, bytes, (size_t)count) != -EPIPE)
        return true;
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
        weft_lines_end(&stream->lines);
    }
    return NULL;
}

int weft_output_start(struct weft_output *output) {
    for (int i = 0; i < output->nstreams; i++)
        close(output->stream[i].feed);
    int result = pthread_create(&output->thread, NULL, output_main, output);
    output->running = result == 0;
    return result ? weft_failure_say(-result, "pthread_create, to write output") : 0;
}

int weft_output_finish(struct weft_output *output, int patience_ms) {
    if (!output->running)
        return 0;
    eventfd_write(output->finish, 1);
    struct timespec until = weft_deadline_ms(patience_ms);
    if (patience_ms < 0)
        pthread_join(output->thread, NULL);
    else
        weft_deadline_join(output->thread, &until);
    return output->sink[0].error ? -output->sink[0].error : -output->sink[1].error;
}

/* --- Files ----------------------------------------------------------------------------------- */

enum { FOLDER_MODE = 0777, FILE_MODE = 0666 }; /* restricted by umask */

static int file_refuse(const char *action, const char *path) {
    int code = -errno;
    fprintf(stderr, "oshrun: cannot %s %s: %s%s\n", action, path, strerror(-code),
            code == -EACCES ? "" : weft_remedy(code).text);
    return code;
}

/* Creates all folders in `path` before its last slash. `path` is unchanged on return. */
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
