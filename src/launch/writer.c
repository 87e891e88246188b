/* SPDX-License-Identifier: BSD-3-Clause */
/* weft_writer_give appends to the queue under the lock; the thread takes the whole queue and writes
 * it without the lock. An incomplete line is written after a moment of silence, because it may be a
 * prompt. */
#include "launch/writer.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "base/deadline.h"
#include "launch/failure.h"
#include "launch/lines.h"

enum { PROMPT_MS = 100 };

struct piece {
    struct piece *next;
    int stream; /* 2 * PE for stdout, 2 * PE + 1 for stderr */
    size_t count;
    char bytes[];
};

struct weft_writer {
    struct weft_writer_options options;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t came;
    struct piece *first, **last; /* the queue; protected by the lock */
    bool finish;                 /* protected by the lock */
    int told;                    /* eventfd */
    _Atomic int32_t *taken;      /* bytes written, per host */
    _Atomic bool lost[2];        /* this process's stream has no reader */
    bool lost_told[2];           /* the owner knows it */
    struct weft_sink sink[2];
    struct weft_lines *lines;
};

static void lines_prepare(struct weft_writer *writer) {
    const struct weft_writer_options *options = &writer->options;
    writer->sink[0] = (struct weft_sink){.fd = STDOUT_FILENO, .name = "standard output"};
    writer->sink[1] = (struct weft_sink){.fd = STDERR_FILENO, .name = "standard error"};
    for (int i = 0; i < 2 * options->npes; i++) {
        const char *host = options->name[options->host_of[i / 2]];
        writer->lines[i] = (struct weft_lines){.sink = &writer->sink[i % 2],
                                               .pe = options->tag ? i / 2 : -1,
                                               .host = options->tag_host ? host : NULL};
    }
}

static void stream_judge(struct weft_writer *writer, int stream, int error) {
    if (error == -EPIPE)
        atomic_store(&writer->lost[stream % 2], true);
}

static void piece_write(struct weft_writer *writer, const struct piece *piece) {
    struct weft_lines *lines = &writer->lines[piece->stream];
    int error =
        piece->count ? weft_lines_add(lines, piece->bytes, piece->count) : weft_lines_end(lines);
    stream_judge(writer, piece->stream, error);
    int host = writer->options.host_of[piece->stream / 2];
    atomic_fetch_add(&writer->taken[host], (int32_t)piece->count);
    eventfd_write(writer->told, 1);
}

static void streams_flush(struct weft_writer *writer) {
    for (int i = 0; i < 2 * writer->options.npes; i++)
        stream_judge(writer, i, weft_lines_flush(&writer->lines[i]));
}

/* Waits for pieces and returns all, or NULL after a silence or at the end. *idle: nothing has been
 * written since the last silence. */
static struct piece *queue_take(struct weft_writer *writer, bool idle, bool *finish) {
    struct timespec until = weft_deadline_ms(PROMPT_MS);
    pthread_mutex_lock(&writer->lock);
    int late = 0;
    while (!writer->first && !writer->finish && late == 0)
        late = idle ? pthread_cond_wait(&writer->came, &writer->lock)
                    : weft_deadline_wait(&writer->came, &writer->lock, &until);
    struct piece *all = writer->first;
    writer->first = NULL;
    writer->last = &writer->first;
    *finish = writer->finish;
    pthread_mutex_unlock(&writer->lock);
    return all;
}

static void *writer_main(void *argument) {
    struct weft_writer *writer = argument;
    bool idle = true, finish = false;
    struct piece *piece = NULL;
    while (piece || !finish) {
        piece = queue_take(writer, idle, &finish);
        idle = !piece;
        if (idle)
            streams_flush(writer);
        while (piece) {
            struct piece *next = piece->next;
            piece_write(writer, piece);
            free(piece);
            piece = next;
        }
    }
    for (int i = 0; i < 2 * writer->options.npes; i++)
        weft_lines_end(&writer->lines[i]);
    return NULL;
}

int weft_writer_open(struct weft_writer **opened, const struct weft_writer_options *options) {
    struct weft_writer *writer = calloc(1, sizeof *writer);
    size_t streams = 2 * (size_t)options->npes;
    if (!writer)
        return weft_failure_say(-ENOMEM, "malloc, for the output of %d PEs", options->npes);
    writer->options = *options;
    writer->lines = calloc(streams, sizeof *writer->lines);
    writer->taken = calloc((size_t)options->nhosts, sizeof *writer->taken);
    writer->told = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    writer->last = &writer->first;
    if (writer->told < 0) /* oshrun then exits, so nothing is undone */
        return weft_failure_say(-errno, "eventfd, for the output of PEs");
    if (!writer->lines || !writer->taken)
        return weft_failure_say(-ENOMEM, "malloc, for the output of %d PEs", options->npes);
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->came, NULL);
    lines_prepare(writer);
    *opened = writer;
    int error = -pthread_create(&writer->thread, NULL, writer_main, writer);
    return error ? weft_failure_say(error, "pthread_create, to write output") : 0;
}

int weft_writer_give(struct weft_writer *writer, int pe, int stream, const void *bytes,
                     size_t count) {
    struct piece *piece = malloc(sizeof *piece + count);
    if (!piece)
        return -ENOMEM;
    *piece = (struct piece){.stream = 2 * pe + stream - 1, .count = count};
    if (count)
        memcpy(piece->bytes, bytes, count);
    pthread_mutex_lock(&writer->lock);
    *writer->last = piece;
    writer->last = &piece->next;
    pthread_cond_signal(&writer->came);
    pthread_mutex_unlock(&writer->lock);
    return 0;
}

int weft_writer_descriptor(struct weft_writer *writer) {
    return writer->told;
}

int32_t weft_writer_taken(struct weft_writer *writer, int host) {
    eventfd_t count;
    eventfd_read(writer->told, &count);
    return atomic_exchange(&writer->taken[host], 0);
}

bool weft_writer_lost(struct weft_writer *writer, int stream) {
    bool lost = atomic_load(&writer->lost[stream - 1]) && !writer->lost_told[stream - 1];
    writer->lost_told[stream - 1] |= lost;
    return lost;
}

int weft_writer_finish(struct weft_writer *writer, int patience_ms) {
    pthread_mutex_lock(&writer->lock);
    writer->finish = true;
    pthread_cond_signal(&writer->came);
    pthread_mutex_unlock(&writer->lock);
    struct timespec until = weft_deadline_ms(patience_ms);
    if (weft_deadline_join(writer->thread, &until) != 0)
        return -ETIMEDOUT;
    return writer->sink[0].error ? -writer->sink[0].error : -writer->sink[1].error;
}
