/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the start text from a daemon's standard input, from which a login shell may have read
 * before. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "launch/hosts.h"
#include "launch/start.h"

enum { HEAD_MAX = 48, HINT_MS = 10000 };

#define READERS                                                                                 \
    "a program in the login shell's start-up files (~/.bashrc, ~/.profile, ~/.cshrc) may have " \
    "read it: there, programs have to read from </dev/null"

/* Reads `bytes`, or up to a newline if `line` is set. Returns the number of bytes read, or -errno.
 */
static ssize_t text_read(int fd, char *to, size_t bytes, bool line) {
    size_t have = 0;
    while (have < bytes) {
        ssize_t got = read(fd, to + have, line ? 1 : bytes - have);
        if (got < 0 && errno != EINTR)
            return -errno;
        if (got == 0)
            break;
        have += got > 0 ? (size_t)got : 0;
        if (line && got > 0 && to[have - 1] == '\n')
            break;
    }
    return (ssize_t)have;
}

static int read_refuse(int error, const char *why) {
    fprintf(
        stderr,
        "oshrun: host %s cannot start: oshrun --daemon cannot use the start text that it got on "
        "its standard input: %s\n",
        weft_hosts_own_name(), why);
    return error;
}

/* The start text is the first data that ssh forwards. If its beginning is missing, another program
 * on this host has read from the input. */
static int head_refuse(bool empty) {
    if (!empty)
        return read_refuse(-EINVAL, "its beginning is missing; " READERS);
    fprintf(stderr,
            "oshrun: host %s cannot start: oshrun --daemon got no data on its standard input: the "
            "command of WEFT_SSH may not forward it (ssh -n does not), or " READERS "\n",
            weft_hosts_own_name());
    return -EINVAL;
}

/* Waits for input. A shell may have read all of the text, and the input does not end while oshrun
 * waits. */
static void head_await(int fd) {
    struct pollfd poll_it = {.fd = fd, .events = POLLIN};
    if (poll(&poll_it, 1, HINT_MS) == 0)
        fprintf(stderr,
                "oshrun: host %s: oshrun --daemon has got no data on its standard input for %d "
                "s; " READERS "\n",
                weft_hosts_own_name(), HINT_MS / 1000);
}

int weft_start_read(int fd, struct weft_start *start) {
    char head[HEAD_MAX] = "";
    unsigned layout = 0;
    size_t bytes = 0;
    const char *why = "no memory";
    head_await(fd);
    ssize_t got = text_read(fd, head, sizeof head - 1, true);
    if (got < 0 || sscanf(head, "weft-start %u %9zu\n", &layout, &bytes) != 2)
        return head_refuse(got == 0);
    if (layout != WEFT_TREE_LAYOUT)
        return read_refuse(-EPROTO, "Weft has other versions on the two hosts");
    if (bytes > WEFT_START_BYTES_MAX)
        return read_refuse(-EMSGSIZE, "it is too long");
    char *text = malloc(bytes + 1);
    if (!text)
        return read_refuse(-ENOMEM, why);
    got = text_read(fd, text, bytes, false);
    if (got != (ssize_t)bytes)
        return read_refuse(-EPIPE, "its end is missing");
    int error = weft_start_parse(text, bytes, start, &why);
    return error ? read_refuse(error, why) : 0;
}
