/* SPDX-License-Identifier: BSD-3-Clause */
/* The PE's side of an exchange: give once, then take until every PE's contribution is here. If PE 0
 * serves the hub, as it does without oshrun, it serves the others in between. */
#include "boot/exchange.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/machine.h"
#include "boot/attachment.h"
#include "boot/end.h"
#include "boot/guard.h"
#include "boot/hub.h"
#include "boot/late.h"
#include "boot/root.h"

enum { MANY_DESCRIPTORS = 256, LOOK_MS = 100, LOOK_AT_ABORT_MS = 20 };

/* A program that closes descriptors which it has not opened may have closed the hub's. */
static int hub_check(void) {
    if (weft_descriptor_is_ours(weft_attachment.hub))
        return 0;
    weft_log("%s: the program has closed descriptor %d, by which this PE speaks with its job: "
             "close only descriptors that the program has opened",
             weft_current_call, weft_attachment.hub);
    return -EBADF;
}

static int exchange_give(const struct weft_exchange *exchange) {
    struct weft_wire_header header = {.kind = WEFT_WIRE_GIVE,
                                      .bytes = (uint32_t)exchange->bytes,
                                      .nfds = (uint32_t)exchange->nfds};
    struct weft_wire_body body = {exchange->mine, exchange->bytes, exchange->fds, exchange->nfds};
    for (;;) {
        int error = weft_wire_send(weft_attachment.hub, &header, &body, 0);
        if (error == -EPIPE)
            weft_boot_lost();
        if (error != -ETOOMANYREFS)
            return error;
        /* Too many descriptors are under way; the kernel counts them against the limit on open
         * ones. Others will take theirs. */
        weft_machine_raise_descriptors();
        weft_clock_sleep_ms(1);
    }
}

/* The descriptors that belong to the next `count` contributions, each; -1: those come from here and
 * from elsewhere, which one message does not have. */
static int share_fds(const struct weft_exchange *exchange, uint32_t count) {
    bool here = !exchange->over_hosts || weft_boot_is_here(exchange->arrived);
    for (uint32_t i = 1; i < count && exchange->over_hosts && exchange->nfds; i++)
        if (weft_boot_is_here(exchange->arrived + (int)i) != here)
            return -1;
    return here ? exchange->nfds : 0;
}

static bool share_fits(const struct weft_exchange *exchange,
                       const struct weft_wire_message *message, size_t payload) {
    const struct weft_wire_header *header = &message->header;
    uint32_t missing = (uint32_t)(exchange->members - exchange->arrived);
    return header->kind == WEFT_WIRE_SHARE && header->bytes == exchange->bytes &&
           header->first == (uint32_t)exchange->arrived && header->count >= 1 &&
           header->count <= missing && payload == header->count * exchange->bytes &&
           (int)header->nfds == share_fds(exchange, header->count) &&
           (size_t)message->nfds == (size_t)header->count * header->nfds;
}

int weft_exchange_take(struct weft_exchange *exchange, int socket) {
    struct weft_wire_message message = {0};
    const struct weft_wire_header *header = &message.header;
    size_t at = (size_t)exchange->arrived;
    ssize_t payload =
        weft_wire_receive(socket, &message, weft_exchange_at(exchange, at),
                          ((size_t)exchange->members - at) * exchange->bytes, MSG_DONTWAIT);
    if (payload < 0)
        return (int)payload;
    if (!share_fits(exchange, &message, (size_t)payload)) {
        weft_wire_close(&message);
        exchange->refused = header->kind == WEFT_WIRE_FAIL && header->status < 0;
        return exchange->refused ? header->status : -EPROTO;
    }
    if (message.nfds)
        memcpy(exchange->all_fds + at * (size_t)exchange->nfds, message.fd,
               (size_t)message.nfds * sizeof(int));
    exchange->arrived += (int)header->count;
    return 0;
}

void weft_exchange_drop(struct weft_exchange *exchange) {
    for (int i = 0; i < exchange->members * exchange->nfds; i++) {
        if (exchange->all_fds[i] >= 0)
            close(exchange->all_fds[i]);
        exchange->all_fds[i] = -1;
    }
    exchange->arrived = 0;
}

int weft_exchange_alone(struct weft_exchange *exchange) {
    if (exchange->bytes)
        memcpy(exchange->all, exchange->mine, exchange->bytes);
    for (int i = 0; i < exchange->nfds; i++) {
        exchange->all_fds[i] = fcntl(exchange->fds[i], F_DUPFD_CLOEXEC, 0);
        if (exchange->all_fds[i] >= 0)
            continue;
        int code = -errno;
        weft_exchange_drop(exchange);
        return code;
    }
    return 0;
}

int weft_exchange_begin(struct weft_exchange *exchange, int members) {
    if (exchange->bytes > WEFT_BOOT_BLOB_MAX || exchange->nfds < 0 ||
        exchange->nfds > WEFT_BOOT_FDS_MAX)
        return -EINVAL;
    if (!weft_attachment.valid)
        return -ENOTCONN; /* a forked child, or before the first join */
    exchange->members = members;
    exchange->over_hosts = false;
    if (members * exchange->nfds > MANY_DESCRIPTORS)
        weft_machine_raise_descriptors();
    for (int i = 0; i < members * exchange->nfds; i++)
        exchange->all_fds[i] = -1;
    return 0;
}

/* --- PE 0 as the root of the hub -------------------------------------------------------------- */

/* Where no launcher of ours is, and no other host, PE 0 serves the hub while it is in the exchange
 * itself. Descriptors move only in a call that every PE is in, so no thread and no process is
 * needed for it. */

/* Waits until a PE has sent something or can be sent more, or something is there for PE 0 itself,
 * or a moment is over; then serves all. */
static void root_turn(void) {
    int npes = weft_attachment.npes;
    struct weft_hub *hub = weft_attachment.served;
    struct pollfd polls[npes + 1];
    for (int pe = 0; pe < npes; pe++)
        polls[pe] =
            (struct pollfd){.fd = weft_hub_socket(hub, pe), .events = weft_hub_events(hub, pe)};
    polls[npes] = (struct pollfd){.fd = weft_attachment.hub, .events = POLLIN};
    int ready = poll(polls, (nfds_t)npes + 1, weft_hub_crowded(hub) ? 1 : LOOK_AT_ABORT_MS);
    for (int pe = 0; ready > 0 && pe < npes; pe++)
        if (polls[pe].revents)
            weft_root_serve(hub, pe);
    weft_hub_retry(hub);
    weft_root_check_lost(hub);
}

static bool root_is_delivering(void) {
    for (int pe = 0; pe < weft_attachment.npes; pe++)
        if (weft_hub_socket(weft_attachment.served, pe) >= 0 &&
            weft_hub_events(weft_attachment.served, pe) & POLLOUT)
            return true;
    return weft_hub_crowded(weft_attachment.served);
}

/* Serves until every PE has been sent all of the rounds that are complete. */
static void root_finish(void) {
    while (root_is_delivering() && !weft_control_aborted(weft_attachment.control))
        root_turn();
}

/* --- All -------------------------------------------------------------------------------------- */

/* Waits until there is something to take or a moment is over; PE 0 serves the others meanwhile. A
 * launcher that is stopped sends nothing, not even the end of the job, so the PE looks for itself.
 */
static void hub_await(struct weft_late *late) {
    struct pollfd hub = {.fd = weft_attachment.hub, .events = POLLIN};
    if (weft_attachment.served)
        root_turn();
    else if (poll(&hub, 1, LOOK_MS) > 0)
        return;
    weft_late_turn(late);
    weft_guard_look();
    if (weft_control_aborted(weft_attachment.control))
        weft_boot_lost();
}

static int exchange_all(struct weft_exchange *exchange) {
    const char *root = exchange->over_hosts ? "the first PE of this host" : "PE 0";
    struct weft_late late = {.count = exchange->members,
                             .server = weft_attachment.launched ? "oshrun" : root};
    int error = hub_check();
    error = error ? error : exchange_give(exchange);
    while (error == 0 && exchange->arrived < exchange->members) {
        error = weft_exchange_take(exchange, weft_attachment.hub);
        if (error == -EPIPE)
            weft_boot_lost();
        if (error == -EAGAIN) {
            hub_await(&late);
            error = 0;
        }
    }
    if (error == 0 && weft_attachment.served)
        root_finish();
    weft_late_end(&late);
    if (error)
        weft_exchange_drop(exchange);
    return error;
}

int weft_boot_exchange(struct weft_exchange *exchange) {
    int npes = weft_attachment.npes, error = weft_exchange_begin(exchange, npes);
    exchange->over_hosts = weft_boot_nhosts() > 1;
    if (error == 0)
        error = npes == 1 ? weft_exchange_alone(exchange) : exchange_all(exchange);
    if (error && error != -EBADF)
        weft_log("%s: exchange of %zu bytes and %d descriptors with %d PEs: %s", weft_current_call,
                 exchange->bytes, exchange->nfds, npes, strerror(-error));
    return error;
}
