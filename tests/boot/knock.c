/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a stranger with a key, for tests/hosts/attacks.t; not a test itself. "knock ADDRESS
 * PORT IDENTITY KEY" connects to the listener of a job as a daemon does, and prints the result:
 * "refused: WORDS", "in", or "in, and out: WORDS" if the connection was closed within a second.
 * PEs: none */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "boot/tls_listener.h"

enum { WAIT_MS = 6000, STAY_MS = 1000 };

/* Waits for the connection's next event; returns false after the time limit. */
static bool event_await(const struct weft_tls *tls, int wait_ms) {
    struct pollfd poll_of = {.fd = weft_tls_socket(tls), .events = weft_tls_events(tls)};
    return poll(&poll_of, 1, wait_ms) > 0;
}

int main(int argc, char **argv) {
    unsigned char key[WEFT_TLS_KEY_BYTES] = {0};
    struct weft_tls *tls;
    char word[64];
    int error = -EAGAIN;
    ssize_t got = -EAGAIN;
    if (argc != 5)
        return 2;
    for (size_t i = 0; i < sizeof key && strlen(argv[4]) == 2 * sizeof key; i++)
        sscanf(argv[4] + 2 * i, "%2hhx", &key[i]);
    int fd = weft_tls_listener_connect(argv[1], (uint16_t)atoi(argv[2]), WAIT_MS);
    if (fd < 0) {
        printf("refused: %s\n", strerror(-fd));
        return 0;
    }
    if (weft_tls_connect(&tls, fd, argv[3], key) < 0)
        return 1;
    while ((error = weft_tls_shake(tls)) == -EAGAIN && event_await(tls, WAIT_MS))
        ;
    if (error) {
        printf("refused: %s\n", weft_tls_why(tls));
    } else {
        while ((got = weft_tls_read(tls, word, sizeof word)) == -EAGAIN &&
               event_await(tls, STAY_MS))
            ;
        if (got < 0 && got != -EAGAIN)
            printf("in, and out: %s\n", weft_tls_why(tls));
        else
            printf("in\n");
    }
    weft_tls_close(tls);
    return 0;
}
