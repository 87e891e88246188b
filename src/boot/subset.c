/* SPDX-License-Identifier: BSD-3-Clause */
/* An exchange among some PEs: the members connect to the first of them, which is the root for as
 * long as the call lasts. It opens a listening socket, an abstract one with a random name, and
 * writes the name beside the subset's number into its entry of the control page, where the others,
 * its peers, look for it. When all have connected, the root closes the listening socket, and sends
 * each peer the contributions of all over its connection. So the same works under every launcher,
 * subsets do not meet each other, and descriptors move only in a call that every member is in.
 *
 * A peer trusts the page no more than any other memory of the job: the process that listens has to
 * be this user's. The root takes only peers that send the subset's number. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/futex.h"
#include "base/hash.h"
#include "base/machine.h"
#include "boot/attachment.h"
#include "boot/boot.h"
#include "boot/guard.h"
#include "boot/late.h"
#include "boot/listener.h"
#include "boot/rendezvous.h"

enum { LOOK_MS = 20, LAST_WORDS_MS = 2000 };

/* The message by which a peer enters the exchange: its contribution. */
struct call {
    uint64_t subset;
    unsigned char mine[WEFT_BOOT_BLOB_MAX];
};
#define CALL_BYTES(bytes) (offsetof(struct call, mine) + (bytes))

static _Thread_local struct weft_late late; /* a thread is in one exchange at a time */

/* Called in every turn of every wait, so that none outlasts the job. */
static void abort_check(const struct weft_boot_subset *subset) {
    weft_late_turn(&late);
    weft_guard_look();
    if (!weft_control_aborted(weft_attachment.control))
        return;
    if (subset->over)
        subset->over();
    weft_boot_end_self("");
}

static struct weft_control_pe *control_entry(int pe) {
    return &weft_attachment.control->pe[pe];
}

/* Whether it has left, or is on its way: in shmem_finalize, where it waits for all. */
static bool member_is_gone(int pe) {
    const struct weft_control_pe *it = control_entry(pe), *me = control_entry(weft_attachment.pe);
    return atomic_load(&it->state) == WEFT_PE_LEFT ||
           atomic_load(&it->departures) > atomic_load(&me->departures);
}

static int members_check(const struct weft_boot_subset *subset) {
    for (int i = 0; i < subset->count; i++)
        if (member_is_gone(subset->pes[i]))
            return weft_fail(-ECONNABORTED, "PE %d has finalized and comes no more",
                             subset->pes[i]);
    return 0;
}

/* --- The listening socket in the control page ------------------------------------------------- */

static _Atomic bool used[WEFT_CONTROL_LISTENERS];

/* Waits for a place if more threads than there are places are roots: one will be done. */
static int place_claim(const struct weft_boot_subset *subset) {
    int place = 0;
    while (atomic_exchange(&used[place], true))
        if (++place == WEFT_CONTROL_LISTENERS) {
            abort_check(subset);
            weft_clock_sleep_ms(1);
            place = 0;
        }
    return place;
}

static void place_post(int place, uint64_t subset, uint64_t name) {
    struct weft_control_pe *me = control_entry(weft_attachment.pe);
    atomic_store(&me->listening[place].name, name);
    atomic_store(&me->listening[place].subset, subset);
    atomic_fetch_add(&me->openings, 1);
    weft_futex_wake(&me->openings, WEFT_FUTEX_ALL);
}

static void place_unpost(int place) {
    atomic_store(&control_entry(weft_attachment.pe)->listening[place].subset, 0);
    atomic_store(&used[place], false);
}

static bool listener_find(int pe, uint64_t subset, uint64_t *name) {
    struct weft_control_pe *entry = control_entry(pe);
    for (int i = 0; i < WEFT_CONTROL_LISTENERS; i++)
        if (atomic_load(&entry->listening[i].subset) == subset) {
            *name = atomic_load(&entry->listening[i].name);
            return true;
        }
    return false;
}

/* --- The root --------------------------------------------------------------------------------- */

struct root {
    const struct weft_boot_subset *subset;
    uint64_t number;
    struct weft_exchange *exchange;
    struct weft_listener listener;
    int arrived;
    int status; /* what has gone wrong, for all to hear */
    int *peer;  /* by member; -1: not here */
};

/* True if the message is of this subset and of a member that is still missing. Another is from a
 * member that is too early for its next exchange, or from a stranger; a member will come again. */
static bool call_belongs(const struct root *root, const struct weft_wire_header *header,
                         const struct call *call, ssize_t bytes) {
    bool whole = bytes == -EMFILE || bytes >= (ssize_t)CALL_BYTES(0);
    return whole && header->kind == WEFT_WIRE_CALL && call->subset == root->number &&
           header->first >= 1 && header->first < (uint32_t)root->subset->count &&
           root->peer[header->first] < 0;
}

static int call_keep(struct root *root, struct weft_wire_message *message, const struct call *call,
                     ssize_t bytes) {
    const struct weft_exchange *exchange = root->exchange;
    size_t at = message->header.first, nfds = (size_t)exchange->nfds;
    if (bytes < 0)
        return (int)bytes;
    if ((size_t)bytes != CALL_BYTES(exchange->bytes) || message->nfds != exchange->nfds)
        return -EPROTO;
    if (exchange->bytes)
        memcpy(weft_exchange_at(exchange, at), call->mine, exchange->bytes);
    if (nfds)
        memcpy(exchange->all_fds + at * nfds, message->fd, nfds * sizeof(int));
    message->nfds = 0; /* the exchange owns them now */
    return 0;
}

static bool call_hear(void *owner, int peer, pid_t pid) {
    struct root *root = owner;
    struct weft_wire_message message = {0};
    struct call call = {0};
    (void)pid;
    ssize_t bytes = weft_wire_receive(peer, &message, &call, sizeof call, MSG_DONTWAIT);
    if (bytes == -EAGAIN)
        return false;
    if (call_belongs(root, &message.header, &call, bytes)) {
        int error = call_keep(root, &message, &call, bytes);
        root->status = root->status ? root->status : error;
        root->peer[message.header.first] = peer;
        root->arrived++;
    } else {
        close(peer);
    }
    if (bytes >= 0)
        weft_wire_close(&message);
    return true;
}

static int root_gather(struct root *root) {
    struct pollfd polls[WEFT_LISTENER_POLLS];
    while (root->arrived < root->subset->count - 1) {
        abort_check(root->subset);
        int error = members_check(root->subset);
        if (error)
            return error;
        weft_listener_poll(&root->listener, polls, 0, LOOK_MS);
        weft_listener_turn(&root->listener, polls);
    }
    return 0;
}

/* Ends the job, because the other members cannot be told and would wait for ever. */
static int subset_give_up(int error, const char *what) {
    weft_log("%s: cannot %s: %s", weft_current_call, what, strerror(-error));
    weft_boot_end_job(WEFT_STATUS_ERROR, true);
    return error;
}

/* Sends a peer what it can take now; true once it has all. *position is the number of contributions
 * that it has. A peer that is gone counts as done: its death is noticed elsewhere. */
static bool peer_serve(const struct root *root, int peer, int *position) {
    const struct weft_exchange *exchange = root->exchange;
    struct weft_wire_header header = {.kind = WEFT_WIRE_FAIL, .status = root->status};
    if (root->status) {
        int error = weft_wire_send(peer, &header, NULL, MSG_DONTWAIT);
        if (error && error != -EAGAIN && error != -EPIPE)
            subset_give_up(error, "refuse a member");
        return error != -EAGAIN;
    }
    struct weft_wire_shares shares = {exchange->members, exchange->bytes, exchange->nfds,
                                      exchange->all, exchange->all_fds};
    int error = weft_wire_share(peer, &shares, position);
    if (error == -EAGAIN || error == -ETOOMANYREFS)
        return false;
    if (error && error != -EPIPE)
        subset_give_up(error, "answer a member");
    return true;
}

/* Serves all peers in turns, so that one that takes nothing holds up no other. It sleeps between
 * rounds, because poll does not tell when the kernel lets more descriptors be under way. */
static void root_distribute(struct root *root) {
    int count = root->subset->count, position[count], waiting = count - 1;
    memset(position, 0, sizeof position);
    for (bool again = false; waiting > 0; again = true) {
        abort_check(root->subset);
        if (again)
            weft_clock_sleep_ms(1);
        for (int i = 1; i < count; i++)
            if (root->peer[i] >= 0 && peer_serve(root, root->peer[i], &position[i])) {
                close(root->peer[i]);
                root->peer[i] = -1;
                waiting--;
            }
    }
}

static int root_exchange(const struct weft_boot_subset *subset, uint64_t number,
                         struct weft_exchange *exchange) {
    int peer[subset->count];
    uint64_t name;
    memset(peer, 0xff, sizeof peer);
    struct root root = {.subset = subset, .number = number, .exchange = exchange, .peer = peer};
    root.status = weft_exchange_alone(exchange);
    int error =
        weft_listener_open(&root.listener, weft_rendezvous_listen_private(&name), call_hear, &root);
    if (error) {
        subset_give_up(error, "open a socket for the other members");
    } else {
        int place = place_claim(subset);
        place_post(place, number, name);
        error = root_gather(&root);
        place_unpost(place);
        weft_listener_close(&root.listener);
    }
    if (error == 0)
        root_distribute(&root);
    for (int i = 0; i < subset->count; i++)
        if (peer[i] >= 0)
            close(peer[i]);
    error = error ? error : root.status;
    if (error)
        weft_exchange_drop(exchange);
    return error;
}

/* --- A peer ---------------------------------------------------------------------------------- */

static int call_send(const struct weft_boot_subset *subset, int root, uint64_t number,
                     uint32_t member, const struct weft_exchange *exchange) {
    struct weft_wire_header header = {.kind = WEFT_WIRE_CALL, .first = member};
    struct call call = {.subset = number};
    if (exchange->bytes)
        memcpy(call.mine, exchange->mine, exchange->bytes);
    struct weft_wire_body body = {&call, CALL_BYTES(exchange->bytes), exchange->fds,
                                  exchange->nfds};
    for (;;) {
        int error = weft_wire_send(root, &header, &body, MSG_DONTWAIT);
        if (error != -ETOOMANYREFS && error != -EAGAIN)
            return error;
        abort_check(subset);
        weft_machine_raise_descriptors();
        weft_clock_sleep_ms(1);
    }
}

/* Receives all contributions. -EPIPE: the root has closed the listening socket before it came to
 * this peer, or refused it, or is dead. */
static int peer_take_all(const struct weft_boot_subset *subset, int root,
                         struct weft_exchange *exchange) {
    struct pollfd line = {.fd = root, .events = POLLIN};
    int error = 0;
    while (error == 0 && exchange->arrived < exchange->members) {
        abort_check(subset);
        poll(&line, 1, LOOK_MS);
        error = weft_exchange_take(exchange, root);
        error = error == -EAGAIN ? 0 : error;
    }
    return error;
}

static int root_reach(const struct weft_boot_subset *subset, uint64_t number) {
    struct weft_control_pe *root = control_entry(subset->pes[0]);
    for (;;) {
        uint64_t name;
        uint32_t seen = atomic_load(&root->openings);
        int socket = -EACCES;
        abort_check(subset);
        if (listener_find(subset->pes[0], number, &name))
            socket = weft_rendezvous_connect_private(name);
        if (socket != -EACCES)
            return socket < 0 ? subset_give_up(socket, "go to the first member") : socket;
        int error = members_check(subset);
        if (error)
            return error;
        weft_futex_sleep(&root->openings, seen, WEFT_FUTEX_ALL, LOOK_MS); /* for another one */
    }
}

/* Waits for the end of the job after the root has stopped in the middle of sending. If none comes,
 * the root is in a state that nobody will ever notice, and this peer ends the job. */
static int abort_await(const struct weft_boot_subset *subset) {
    for (int waited_ms = 0; waited_ms < LAST_WORDS_MS; waited_ms++) {
        abort_check(subset);
        weft_clock_sleep_ms(1);
    }
    return subset_give_up(-EPIPE, "hear the first member to the end");
}

static int peer_exchange(const struct weft_boot_subset *subset, uint64_t number, uint32_t member,
                         struct weft_exchange *exchange) {
    for (;;) {
        int root = root_reach(subset, number);
        if (root < 0)
            return root;
        int sent = call_send(subset, root, number, member, exchange);
        int error = sent ? sent : peer_take_all(subset, root, exchange);
        close(root);
        if (error == 0)
            return 0;
        bool begun = exchange->arrived > 0, no_room = exchange->nfds > 0 && error == -EMFILE;
        weft_exchange_drop(exchange);
        if (exchange->refused || (sent == 0 && no_room))
            return error;
        if (error != -EPIPE)
            return subset_give_up(error, "hear the first member");
        if (begun)
            return abort_await(subset);
        weft_clock_sleep_ms(1);
    }
}

/* --- All -------------------------------------------------------------------------------------- */

/* The place of this PE in the list, or -EINVAL. */
static int subset_check(const struct weft_boot_subset *subset) {
    bool named[WEFT_WIRE_PES_MAX] = {false};
    int member = -EINVAL;
    for (int i = 0; i < subset->count; i++) {
        int pe = subset->pes[i];
        if (pe < 0 || pe >= weft_attachment.npes || named[pe])
            return weft_fail(-EINVAL, "PE %d is none of %d, or named twice", pe,
                             weft_attachment.npes);
        named[pe] = true;
        if (pe == weft_attachment.pe)
            member = i;
    }
    return member >= 0 ? member : weft_fail(member, "this PE is no member");
}

static uint64_t subset_number(const struct weft_boot_subset *subset) {
    uint64_t sum = weft_hash(WEFT_HASH_BASIS, &subset->tag, sizeof subset->tag);
    sum = weft_hash(sum, subset->pes, (size_t)subset->count * sizeof *subset->pes);
    return sum ? sum : 1;
}

static _Atomic(weft_boot_courier *) courier;

void weft_boot_set_courier(weft_boot_courier *to) {
    atomic_store(&courier, to);
}

/* The first member on another host, or -1. */
static int member_elsewhere(const struct weft_boot_subset *subset) {
    for (int i = 0; i < subset->count; i++)
        if (!weft_boot_is_here(subset->pes[i]))
            return subset->pes[i];
    return -1;
}

static int hosts_exchange(const struct weft_boot_subset *subset, uint64_t number,
                          struct weft_exchange *exchange, int elsewhere) {
    weft_boot_courier *carry = atomic_load(&courier);
    if (carry && exchange->nfds == 0)
        return carry(subset, number, exchange);
    return weft_fail(-ENOTSUP,
                     "PE %d%s is on another host than PE %d, and shares no memory with it",
                     elsewhere, weft_boot_on(elsewhere).text, weft_attachment.pe);
}

int weft_boot_exchange_among(const struct weft_boot_subset *subset,
                             struct weft_exchange *exchange) {
    int error = weft_exchange_begin(exchange, subset->count);
    int member = error ? error : subset_check(subset);
    if (error || member < 0)
        return error ? weft_fail(error, "an exchange: %s", strerror(-error)) : member;
    uint64_t number = subset_number(subset);
    int elsewhere = member_elsewhere(subset);
    late = (struct weft_late){.pes = subset->pes,
                              .count = subset->count,
                              .which = (uint32_t)number,
                              .server = "its first PE"};
    if (subset->count == 1)
        error = weft_exchange_alone(exchange);
    else if (elsewhere >= 0)
        error = hosts_exchange(subset, number, exchange, elsewhere);
    else if (member == 0)
        error = root_exchange(subset, number, exchange);
    else
        error = peer_exchange(subset, number, (uint32_t)member, exchange);
    weft_late_end(&late);
    if (error && error != -ECONNABORTED && error != -ENOTSUP)
        weft_fail(error, "an exchange among %d PEs: %s", subset->count, strerror(-error));
    return error;
}

int weft_boot_agree_among(const struct weft_boot_subset *subset, int own) {
    int all[subset->count], first = 0;
    struct weft_exchange exchange = {.mine = &own, .bytes = sizeof own, .all = all};
    int error = weft_boot_exchange_among(subset, &exchange);
    while (error == 0 && first < subset->count && all[first] == 0)
        first++;
    if (error || first == subset->count)
        return error;
    if (own == 0)
        weft_fail(all[first], "PE %d could not: %s", subset->pes[first], strerror(-all[first]));
    return all[first];
}
