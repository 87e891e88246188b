/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/uplink.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include "base/clock.h"
#include "launch/failure.h"

enum {
    CONNECT_MS = 2000,
    CALLS_MAX = 100, /* per address */
    CALL_AGAIN_MS = 20,
};

/* Tries to connect once. The end of standard input, which has no more data, ends the attempt,
 * because it is the end of the front. A connection that is closed in the handshake is logged only
 * at the last attempt. */
static int address_call(const struct weft_start *start, const char *address, bool last,
                        struct weft_tls **tls) {
    struct weft_host_call call = {.address = address,
                                  .port = (uint16_t)start->port,
                                  .connect_ms = CONNECT_MS,
                                  .number = start->host,
                                  .key = start->key,
                                  .ends = STDIN_FILENO};
    int error = weft_host_link_call(tls, &call);
    if (error && call.why[0] && (error != -EPIPE || last))
        fprintf(stderr, "oshrun: host %s cannot reach the launcher at %s\n",
                start->name[start->host], call.why);
    return error;
}

static int addresses_try(const struct weft_start *start, struct weft_tls **tls) {
    int error = -ENOENT;
    for (int i = 0; error && i < start->naddresses; i++) {
        error = -EPIPE;
        for (int left = CALLS_MAX; error == -EPIPE && left > 0; left--) {
            error = address_call(start, start->address[i], left == 1, tls);
            if (error == -EPIPE)
                weft_clock_sleep_ms(CALL_AGAIN_MS);
        }
    }
    return error;
}

int weft_uplink_open(struct weft_uplink *uplink, const struct weft_start *start) {
    struct weft_tls *tls = NULL;
    int error = weft_tls_load();
    error = error ? error : addresses_try(start, &tls);
    if (error)
        return error;
    weft_network_find(&uplink->network, weft_tls_socket(tls), NULL);
    weft_address_print(uplink->address, (const struct sockaddr *)&uplink->network.own);
    error = weft_host_link_open(&uplink->link, tls, start->silence_ms / 1e3, start->by_front);
    return error ? weft_failure_say(error, "malloc, for the connection to the launcher") : 0;
}

void weft_uplink_polls(const struct weft_uplink *uplink, struct pollfd polls[WEFT_UPLINK_POLLS]) {
    polls[0] = weft_host_link_poll(&uplink->link);
    polls[1] = (struct pollfd){.fd = uplink->link.end ? -1 : STDIN_FILENO, .events = POLLIN};
}

int weft_uplink_patience_ms(const struct weft_uplink *uplink) {
    uint64_t now_ns = weft_clock_ns(),
             due_ns = uplink->link.beat_ns + WEFT_TREE_BEAT_MS * WEFT_NS_PER_MS;
    return now_ns < due_ns ? (int)((due_ns - now_ns) / WEFT_NS_PER_MS) + 1 : 0;
}

/* Handles input after the start text: its end, or data that a correct front does not send. */
static void stdin_look(struct weft_uplink *uplink) {
    char byte;
    ssize_t count = read(STDIN_FILENO, &byte, 1);
    if (count > 0)
        weft_host_link_refuse(&uplink->link, "it has sent more than the start text");
    else if (count == 0 || errno != EINTR)
        weft_host_link_refuse(&uplink->link, "it has ended");
}

void weft_uplink_turn(struct weft_uplink *uplink, const struct pollfd polls[WEFT_UPLINK_POLLS]) {
    weft_host_link_turn(&uplink->link, polls[0].revents);
    if (polls[1].revents && !uplink->link.end)
        stdin_look(uplink);
}
