/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/hangup.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/machine.h"
#include "boot/wire.h"

static int *kept, nkept;

/* The kernel counts descriptors in transit against the limit of open ones, until the peer has
 * received them. */
int weft_hangup_send(int peer, const int *connections, int count) {
    struct weft_wire_header header = {.kind = WEFT_WIRE_CONNECTIONS};
    int error = 0;
    for (int sent = 0, piece; error == 0 && sent < count; sent += piece) {
        piece = count - sent < WEFT_WIRE_FDS_MAX ? count - sent : WEFT_WIRE_FDS_MAX;
        struct weft_wire_body body = {.fds = connections + sent, .nfds = piece};
        while ((error = weft_wire_send(peer, &header, &body, 0)) == -ETOOMANYREFS) {
            weft_machine_raise_descriptors();
            weft_clock_sleep_ms(1);
        }
    }
    return error;
}

int weft_hangup_receive(int root, int count) {
    struct weft_wire_message message = {0};
    if (count >= WEFT_WIRE_FDS_MAX)
        weft_machine_raise_descriptors();
    weft_hangup_forget();
    free(kept);
    kept = calloc((size_t)count + 1, sizeof *kept);
    if (!kept)
        return -ENOMEM;
    while (nkept < count) {
        ssize_t bytes = weft_wire_receive(root, &message, NULL, 0, 0);
        if (bytes < 0)
            return (int)bytes;
        if (message.header.kind != WEFT_WIRE_CONNECTIONS || message.nfds > count - nkept ||
            message.nfds == 0) {
            weft_wire_close(&message);
            return -EPROTO;
        }
        for (int i = 0; i < message.nfds; i++)
            kept[nkept++] = weft_descriptor_keep(message.fd[i]);
    }
    return 0;
}

/* shutdown ends a connection for all processes that hold it. */
void weft_hangup(void) {
    for (int i = 0; i < nkept; i++)
        if (weft_descriptor_is_ours(kept[i]))
            shutdown(kept[i], SHUT_RDWR);
}

void weft_hangup_forget(void) {
    for (int i = 0; i < nkept; i++)
        weft_descriptor_close(kept[i]);
    nkept = 0;
}
