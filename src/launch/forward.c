/* SPDX-License-Identifier: BSD-3-Clause */
/* Each stream is a pipe with one end in the daemon and one in a PE. Input waits in a buffer until
 * PE 0 reads it. A PE 0 that has ended or closed its standard input counts as having read
 * everything. */
#include "launch/forward.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "boot/hosts.h"
#include "boot/tree.h"
#include "launch/failure.h"

enum {
    HOSTS_A_RELAY = 32
}; /* output of these hosts may wait in the relay while the front takes none */

struct forward_stream {
    int source, feed; /* ends of the pipe: the PE writes to `feed`; -1: closed */
    int pe, which;    /* descriptor in the PE: 1 or 2 */
};

struct weft_forward {
    struct weft_forward_above above;
    size_t under_way, output_max; /* output sent and not yet acknowledged, and its limit */
    struct {
        int source, feed; /* ends of PE 0's pipe: the daemon writes to `feed`; -1: closed */
        bool ends;
        size_t begin, end;
        char *waiting; /* WEFT_TREE_INPUT_MAX bytes; NULL: PE 0 is on another host */
    } input;
    int nstreams;
    struct forward_stream stream[];
};

/* Makes a pipe whose end in the daemon is non-blocking. The PE's end blocks, as programs expect. */
static int pipe_make(int *ours, int *theirs, bool we_read) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return weft_failure_say(-errno, "pipe2, for input and output of PEs");
    *ours = ends[we_read ? 0 : 1];
    *theirs = ends[we_read ? 1 : 0];
    fcntl(*ours, F_SETFL, O_NONBLOCK); /* cannot fail on a pipe */
    return 0;
}

static int input_open(struct weft_forward *forward) {
    forward->input.source = forward->input.feed = -1;
    if (!weft_boot_is_here(0))
        return 0;
    forward->input.waiting = malloc(WEFT_TREE_INPUT_MAX);
    if (!forward->input.waiting)
        return weft_failure_say(-ENOMEM, "malloc, for the standard input");
    return pipe_make(&forward->input.feed, &forward->input.source, false);
}

int weft_forward_open(struct weft_forward **opened, int npes,
                      const struct weft_forward_above *above) {
    size_t most = 2 * (size_t)npes;
    struct weft_forward *forward = calloc(1, sizeof *forward + most * sizeof *forward->stream);
    if (!forward)
        return weft_failure_say(-ENOMEM, "malloc, for the output of %d PEs", npes);
    forward->above = *above;
    forward->output_max = WEFT_TREE_OUTPUT_MAX / (1 + weft_boot_nhosts() / HOSTS_A_RELAY);
    int error = input_open(forward);
    for (int i = 0; error == 0 && i < 2 * npes; i++) {
        struct forward_stream *stream = &forward->stream[forward->nstreams];
        if (!weft_boot_is_here(i / 2))
            continue;
        *stream = (struct forward_stream){.pe = i / 2, .which = 1 + i % 2};
        error = pipe_make(&stream->source, &stream->feed, true);
        forward->nstreams++;
    }
    *opened = forward;
    return error; /* the daemon then exits, so nothing is undone */
}

void weft_forward_redirect(const struct weft_forward *forward, int pe) {
    for (int i = 0; i < forward->nstreams; i++)
        if (forward->stream[i].pe == pe)
            dup2(forward->stream[i].feed, forward->stream[i].which);
    if (pe == 0)
        dup2(forward->input.source, STDIN_FILENO);
}

static void end_close(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void weft_forward_free(struct weft_forward *forward) {
    for (int i = 0; i < forward->nstreams; i++) {
        end_close(&forward->stream[i].source);
        end_close(&forward->stream[i].feed);
    }
    end_close(&forward->input.source);
    end_close(&forward->input.feed);
    free(forward->input.waiting);
    free(forward);
}

void weft_forward_start(struct weft_forward *forward) {
    for (int i = 0; i < forward->nstreams; i++)
        end_close(&forward->stream[i].feed);
    end_close(&forward->input.source);
}

int weft_forward_count(const struct weft_forward *forward) {
    return forward->nstreams + 1;
}

/* The last entry is that of the input, whose state poll also reports when PE 0 has closed its end.
 */
void weft_forward_polls(const struct weft_forward *forward, struct pollfd *polls) {
    bool room = forward->under_way < forward->output_max;
    bool waiting = forward->input.begin < forward->input.end || forward->input.ends;
    for (int i = 0; i < forward->nstreams; i++)
        polls[i] = (struct pollfd){.fd = room ? forward->stream[i].source : -1, .events = POLLIN};
    polls[forward->nstreams] =
        (struct pollfd){.fd = waiting ? forward->input.feed : -1, .events = POLLOUT};
}

/* --- Output ---------------------------------------------------------------------------------- */

/* Reads and sends one piece of output. Returns whether there was any. */
static bool stream_read(struct weft_forward *forward, struct forward_stream *stream) {
    char piece[WEFT_TREE_PIECE_MAX];
    size_t room = forward->output_max - forward->under_way;
    if (stream->source < 0 || forward->under_way >= forward->output_max)
        return false;
    ssize_t count = read(stream->source, piece, room < sizeof piece ? room : sizeof piece);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (count <= 0)
        end_close(&stream->source);
    count = count < 0 ? 0 : count;
    forward->under_way += (size_t)count;
    forward->above.output(forward->above.owner, stream->pe, stream->which, piece, (size_t)count);
    return count > 0;
}

void weft_forward_taken(struct weft_forward *forward, size_t count) {
    forward->under_way -= count < forward->under_way ? count : forward->under_way;
}

void weft_forward_close(struct weft_forward *forward, int which) {
    for (int i = 0; i < forward->nstreams; i++)
        if (forward->stream[i].which == which)
            end_close(&forward->stream[i].source);
}

bool weft_forward_finish(struct weft_forward *forward) {
    bool all = true;
    for (int i = 0; i < forward->nstreams; i++) {
        while (stream_read(forward, &forward->stream[i]))
            continue;
        all &= forward->under_way < forward->output_max;
    }
    return all;
}

/* --- Input ----------------------------------------------------------------------------------- */

static void input_close(struct weft_forward *forward) {
    size_t left = forward->input.end - forward->input.begin;
    end_close(&forward->input.feed);
    forward->input.begin = forward->input.end = 0;
    if (left)
        forward->above.taken(forward->above.owner, left);
}

static void input_write(struct weft_forward *forward) {
    size_t count = forward->input.end - forward->input.begin;
    ssize_t written = 0;
    if (count && forward->input.feed >= 0)
        written = write(forward->input.feed, forward->input.waiting + forward->input.begin, count);
    if (written < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (written > 0) {
        forward->input.begin += (size_t)written;
        forward->above.taken(forward->above.owner, (size_t)written);
    }
    bool through = forward->input.begin == forward->input.end && forward->input.ends;
    if (written < 0 || through || forward->input.feed < 0)
        input_close(forward);
}

int weft_forward_input(struct weft_forward *forward, const void *bytes, size_t count) {
    size_t waiting = forward->input.end - forward->input.begin;
    if (!forward->input.waiting || waiting + count > WEFT_TREE_INPUT_MAX || forward->input.ends)
        return -EPROTO;
    if (forward->input.begin) {
        memmove(forward->input.waiting, forward->input.waiting + forward->input.begin, waiting);
        forward->input.begin = 0;
        forward->input.end = waiting;
    }
    if (count)
        memcpy(forward->input.waiting + forward->input.end, bytes, count);
    forward->input.end += count;
    forward->input.ends = count == 0;
    input_write(forward);
    return 0;
}

void weft_forward_serve(struct weft_forward *forward, const struct pollfd *polls) {
    for (int i = 0; i < forward->nstreams; i++)
        if (polls[i].revents)
            stream_read(forward, &forward->stream[i]);
    if (polls[forward->nstreams].revents)
        input_write(forward);
}
