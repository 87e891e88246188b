/* SPDX-License-Identifier: BSD-3-Clause */
/* The PE's side of exchanges: sends its contribution, then receives the contributions of all
 * members. In an exchange of all PEs they arrive on the PE's socket to the hub. For an exchange of
 * some PEs, this PE makes a pair of sockets and sends one end to the hub with its contribution; the
 * result arrives on the other end, so that exchanges of several threads are not confused. */
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
#include "base/hash.h"
#include "base/machine.h"
#include "boot/attachment.h"
#include "boot/end.h"
#include "boot/exchange_wait.h"
#include "boot/guard.h"

enum { MANY_DESCRIPTORS = 256, LOOK_MS = 100, LOOK_AMONG_MS = 20, LAST_WORDS_MS = 2000 };

/* This PE's part in an exchange. */
struct exchange_part {
    struct weft_exchange *exchange;
    const struct weft_boot_subset *subset; /* NULL: all PEs of the job */
    uint64_t key;
    struct weft_wire_members members; /* of the subset */
    int answer;                       /* socket on which contributions arrive */
    int far_end;                      /* its other end, to be sent to the hub; -1: none */
    struct weft_exchange_wait wait;
};

/* Called in every iteration of every wait, so that no wait outlasts the job. A launcher that is
 * stopped cannot send the end of the job. */
static void call_turn(struct exchange_part *part) {
    weft_exchange_wait_turn(&part->wait);
    weft_guard_look();
    if (!weft_control_aborted(weft_attachment.control))
        return;
    if (!part->subset)
        weft_boot_lost();
    if (part->subset->over)
        part->subset->over();
    weft_boot_end_self("");
}

/* The hub's socket has closed: the job has ended, or the process that serves the hub. */
static _Noreturn void call_lose(struct exchange_part *part) {
    for (int waited_ms = 0; part->subset && waited_ms < LAST_WORDS_MS; waited_ms++) {
        call_turn(part);
        weft_clock_sleep_ms(1);
    }
    weft_boot_lost();
}

/* A program that closes descriptors that it did not open may have closed the hub's socket. */
static int hub_check(void) {
    if (weft_descriptor_is_ours(weft_attachment.hub))
        return 0;
    weft_log("%s: the program has closed descriptor %d, which connects this PE with its job: close "
             "only descriptors that the program has opened",
             weft_current_call, weft_attachment.hub);
    return -EBADF;
}

/* The kernel limits the descriptors in transit to the limit of open descriptors. The send is then
 * repeated, until other PEs have received theirs. */
static int contribution_send(struct exchange_part *part, const struct weft_wire_header *header,
                             const struct weft_wire_body *body) {
    for (;;) {
        int error = weft_wire_send(weft_attachment.hub, header, body, MSG_DONTWAIT);
        if (error == -EPIPE)
            call_lose(part);
        if (error != -ETOOMANYREFS && error != -EAGAIN)
            return error;
        if (error == -ETOOMANYREFS)
            weft_machine_raise_descriptors();
        call_turn(part);
        weft_clock_sleep_ms(1);
    }
}

static int contribution_give(struct exchange_part *part) {
    const struct weft_exchange *exchange = part->exchange;
    size_t bits = weft_wire_members_bytes(weft_attachment.npes), heads = sizeof part->key + bits;
    struct weft_wire_header header = {.kind = WEFT_WIRE_GIVE,
                                      .bytes = (uint32_t)exchange->bytes,
                                      .nfds = (uint32_t)exchange->nfds};
    struct weft_wire_body body = {exchange->mine, exchange->bytes, exchange->fds, exchange->nfds};
    unsigned char payload[sizeof part->key + sizeof part->members.bits + WEFT_BOOT_BLOB_MAX];
    int fds[1 + WEFT_BOOT_FDS_MAX] = {part->far_end};
    if (!part->subset)
        return contribution_send(part, &header, &body);
    header.kind = WEFT_WIRE_GIVE_AMONG;
    memcpy(payload, &part->key, sizeof part->key);
    memcpy(payload + sizeof part->key, part->members.bits, bits);
    if (exchange->bytes)
        memcpy(payload + heads, exchange->mine, exchange->bytes);
    for (int i = 0; i < exchange->nfds; i++)
        fds[1 + i] = exchange->fds[i];
    body = (struct weft_wire_body){payload, heads + exchange->bytes, fds, 1 + exchange->nfds};
    return contribution_send(part, &header, &body);
}

/* Returns the number of descriptors per contribution in a message with the next `count`
 * contributions; -1 if they come from this host and others, which no message contains. */
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
        exchange->gone = (int)header->first;
        return header->kind == WEFT_WIRE_FAIL && header->status < 0 ? header->status : -EPROTO;
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

/* An exchange of one PE, which receives its own contribution. Returns 0 or -errno. */
static int exchange_alone(struct weft_exchange *exchange) {
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

/* --- Taking part ------------------------------------------------------------------------------ */

static int contributions_take(struct exchange_part *part) {
    struct weft_exchange *exchange = part->exchange;
    struct pollfd answer = {.fd = part->answer, .events = POLLIN};
    while (exchange->arrived < exchange->members) {
        int error = weft_exchange_take(exchange, part->answer);
        if (error == -EPIPE)
            call_lose(part);
        if (error && error != -EAGAIN)
            return error;
        if (error && poll(&answer, 1, part->subset ? LOOK_AMONG_MS : LOOK_MS) <= 0)
            call_turn(part);
    }
    return 0;
}

/* Ends the job, because the other members of a subset would wait for this PE's contribution. In an
 * exchange of all PEs, which starts or ends a job, the caller gives up the job. */
static void contribution_fail(const struct exchange_part *part, int error) {
    if (!part->subset)
        return;
    weft_log("%s: cannot send to the %d members of an exchange: %s%s; ending the job",
             weft_current_call, part->subset->count, strerror(-error), weft_remedy(error).text);
    weft_boot_end_job(WEFT_STATUS_ERROR, true);
}

static int call_run(struct exchange_part *part) {
    int error = hub_check();
    error = error ? error : contribution_give(part);
    weft_descriptor_close(part->far_end);
    if (error)
        contribution_fail(part, error);
    error = error ? error : contributions_take(part);
    weft_exchange_wait_end(&part->wait);
    if (error)
        weft_exchange_drop(part->exchange);
    return error;
}

/* Returns the name of the process that serves exchanges, for reports about long waits. */
static const char *server_name(void) {
    if (weft_attachment.by_oshrun)
        return "oshrun";
    return weft_boot_nhosts() > 1 ? "the first PE of this host" : "PE 0";
}

static int exchange_all(struct weft_exchange *exchange) {
    struct exchange_part part = {
        .exchange = exchange, .answer = weft_attachment.hub, .far_end = -1};
    part.wait = (struct weft_exchange_wait){.count = exchange->members, .server = server_name()};
    return call_run(&part);
}

int weft_boot_exchange(struct weft_exchange *exchange) {
    int npes = weft_attachment.npes, error = weft_exchange_begin(exchange, npes);
    exchange->over_hosts = weft_boot_nhosts() > 1;
    if (error == 0)
        error = npes == 1 ? exchange_alone(exchange) : exchange_all(exchange);
    if (error && error != -EBADF)
        weft_log("%s: exchange of %zu bytes and %d descriptors with %d PEs: %s%s",
                 weft_current_call, exchange->bytes, exchange->nfds, npes, strerror(-error),
                 weft_remedy(error).text);
    return error;
}

/* --- Exchanges of some PEs -------------------------------------------------------------------- */

/* Fills `members`. Returns 0 or -EINVAL. */
static int subset_check(const struct weft_boot_subset *subset, struct weft_wire_members *members) {
    for (int i = 0; i < subset->count; i++) {
        int pe = subset->pes[i];
        if (pe < 0 || pe >= weft_attachment.npes || weft_wire_members_has(members, pe))
            return weft_fail(-EINVAL, "PE %d is not one of the job's %d PEs, or is listed twice",
                             pe, weft_attachment.npes);
        weft_wire_members_add(members, pe);
    }
    bool in = weft_wire_members_has(members, weft_attachment.pe);
    return in ? 0 : weft_fail(-EINVAL, "this PE is not a member");
}

static uint64_t subset_key(const struct weft_boot_subset *subset) {
    uint64_t sum = weft_hash(WEFT_HASH_BASIS, &subset->tag, sizeof subset->tag);
    sum = weft_hash(sum, subset->pes, (size_t)subset->count * sizeof *subset->pes);
    return sum ? sum : 1;
}

/* Returns -ENOTSUP if a member is on another host, to which no descriptors can be sent. */
static int hosts_check(const struct weft_boot_subset *subset) {
    for (int i = 0; i < subset->count; i++)
        if (!weft_boot_is_here(subset->pes[i]))
            return weft_fail(-ENOTSUP,
                             "PE %d%s is on another host than PE %d, and shares no memory with it",
                             subset->pes[i], weft_boot_on(subset->pes[i]).text, weft_attachment.pe);
    return 0;
}

static void contribution_copy(struct weft_exchange *exchange, int to, const void *from,
                              const int *fds) {
    size_t nfds = (size_t)exchange->nfds;
    if (exchange->bytes)
        memcpy(weft_exchange_at(exchange, (size_t)to), from, exchange->bytes);
    if (nfds)
        memcpy(exchange->all_fds + (size_t)to * nfds, fds, nfds * sizeof *fds);
}

/* Permutes contributions in place, from the order of PE numbers to the order of the list, one cycle
 * of the permutation at a time. */
static void contributions_order(const struct exchange_part *part) {
    struct weft_exchange *exchange = part->exchange;
    int count = exchange->members, nfds = exchange->nfds, fds[WEFT_BOOT_FDS_MAX];
    unsigned char bytes[WEFT_BOOT_BLOB_MAX];
    bool placed[count];
    memset(placed, 0, sizeof placed);
    for (int first = 0; first < count; first++) {
        if (placed[first])
            continue;
        int at = first, from;
        if (exchange->bytes)
            memcpy(bytes, weft_exchange_at(exchange, (size_t)first), exchange->bytes);
        for (int i = 0; i < nfds; i++)
            fds[i] = exchange->all_fds[first * nfds + i];
        while ((from = weft_wire_members_rank(&part->members, part->subset->pes[at])) != first) {
            contribution_copy(exchange, at, weft_exchange_at(exchange, (size_t)from),
                              nfds ? exchange->all_fds + from * nfds : NULL);
            placed[at] = true;
            at = from;
        }
        contribution_copy(exchange, at, bytes, fds);
        placed[at] = true;
    }
}

/* Tries until it succeeds: if this PE gave up, the other members would wait in vain. */
static void pair_open(struct exchange_part *part, int pair[2]) {
    bool logged = false;
    while (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        if (!logged)
            weft_log("%s: cannot open a pair of sockets for an exchange (socketpair): %s%s; trying "
                     "again until it works",
                     weft_current_call, strerror(errno), weft_remedy(-errno).text);
        logged = true;
        weft_machine_raise_descriptors();
        call_turn(part);
        weft_clock_sleep_ms(LOOK_AMONG_MS);
    }
}

static int exchange_some(struct exchange_part *part) {
    const struct weft_boot_subset *subset = part->subset;
    int pair[2];
    pair_open(part, pair);
    part->answer = pair[0];
    part->far_end = pair[1];
    part->key = subset_key(subset);
    part->wait = (struct weft_exchange_wait){.pes = subset->pes,
                                             .count = subset->count,
                                             .which = (uint32_t)part->key,
                                             .server = server_name()};
    int error = call_run(part);
    close(pair[0]);
    if (error == 0)
        contributions_order(part);
    return error;
}

int weft_boot_exchange_among(const struct weft_boot_subset *subset,
                             struct weft_exchange *exchange) {
    struct exchange_part part = {.exchange = exchange, .subset = subset};
    int error = weft_exchange_begin(exchange, subset->count);
    if (error)
        return weft_fail(error, "cannot begin an exchange among %d PEs: %s%s", subset->count,
                         strerror(-error), weft_remedy(error).text);
    error = subset_check(subset, &part.members);
    error = error || exchange->nfds == 0 ? error : hosts_check(subset);
    if (error)
        return error;
    error = subset->count == 1 ? exchange_alone(exchange) : exchange_some(&part);
    if (error == -ECONNABORTED)
        return weft_fail(error, "PE %d has finalized and will not take part", exchange->gone);
    if (error)
        weft_fail(error, "an exchange among %d PEs has failed: %s%s", subset->count,
                  strerror(-error), weft_remedy(error).text);
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
        weft_fail(all[first], "PE %d has failed: %s", subset->pes[first], strerror(-all[first]));
    return all[first];
}
