/* SPDX-License-Identifier: BSD-3-Clause */
#include "line.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

struct weft_tls {
    unsigned char *bytes; /* [begin, end) are unread */
    size_t begin, end;
    bool open, ended;
};

static struct weft_tls lines[LINES_MAX];

struct weft_tls *line_open(int line) {
    weft_tls_close(&lines[line]);
    lines[line] = (struct weft_tls){.open = true};
    return &lines[line];
}

void line_say(int line, const void *bytes, size_t count) {
    struct weft_tls *tls = &lines[line];
    if (!tls->open || tls->ended || count == 0)
        return;
    tls->bytes = realloc(tls->bytes, tls->end + count);
    if (!tls->bytes)
        abort();
    memcpy(tls->bytes + tls->end, bytes, count);
    tls->end += count;
}

void line_end(int line) {
    lines[line].ended = true;
}

/* --- The interface of boot/tls.h -------------------------------------------------------------- */

ssize_t weft_tls_read(struct weft_tls *tls, void *to, size_t bytes) {
    size_t left = tls->end - tls->begin, count = bytes < left ? bytes : left;
    if (left == 0)
        return tls->ended ? -EPIPE : -EAGAIN;
    memcpy(to, tls->bytes + tls->begin, count);
    tls->begin += count;
    return (ssize_t)count;
}

ssize_t weft_tls_write(struct weft_tls *tls, const void *from, size_t bytes) {
    (void)from;
    return tls->ended ? -EPIPE : (ssize_t)bytes;
}

void weft_tls_close(struct weft_tls *tls) {
    if (!tls)
        return;
    free(tls->bytes);
    *tls = (struct weft_tls){.open = false};
}

void weft_tls_keep(struct weft_tls *tls) {
    (void)tls;
}

int weft_tls_socket(const struct weft_tls *tls) {
    (void)tls;
    return -1;
}

short weft_tls_events(const struct weft_tls *tls) {
    (void)tls;
    return POLLIN;
}

const char *weft_tls_why(const struct weft_tls *tls) {
    (void)tls;
    return "it has closed the connection";
}

const char *weft_tls_peer(const struct weft_tls *tls) {
    (void)tls;
    return NULL;
}

const char *weft_tls_claim(const struct weft_tls *tls) {
    (void)tls;
    return "";
}

/* There are no connections over a network. */

int weft_tls_load(void) {
    return -ENOSYS;
}

int weft_tls_connect(struct weft_tls **tls, int socket, const char *identity,
                     const unsigned char key[WEFT_TLS_KEY_BYTES]) {
    (void)tls, (void)socket, (void)identity, (void)key;
    return -ENOSYS;
}

int weft_tls_accept(struct weft_tls **tls, int socket, weft_tls_key_of *key_of, void *owner) {
    (void)tls, (void)socket, (void)key_of, (void)owner;
    return -ENOSYS;
}

int weft_tls_shake(struct weft_tls *tls) {
    (void)tls;
    return -ENOSYS;
}

int weft_tls_derive(unsigned char key[WEFT_TLS_KEY_BYTES],
                    const unsigned char secret[WEFT_TLS_KEY_BYTES], const char *label,
                    uint32_t index) {
    (void)key, (void)secret, (void)label, (void)index;
    return -ENOSYS;
}
