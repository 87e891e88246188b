/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: exchanges of a job with PEs on other hosts, without a network: the hub gathers the
 * contributions of this host's PEs, and this test acts as the hub's owner. The result arrives at
 * all PEs; only this host's contributions have descriptors; invalid payloads are rejected. PEs: 1
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "boot/attachment.h"
#include "boot/boot.h"
#include "boot/hub.h"
#include "boot/tree.h"
#include "entries.h"
#include "tap.h"

enum { NPES = 6, NFDS = 3, BYTES = 1000 };

static const int32_t host_of[NPES] = {0, 1, 0, 1, 1, 0}; /* this is host 0 */
static const struct weft_host names[] = {{"here"}, {"there"}};
static const struct weft_network network = {.interface = "eth0"};
static const struct weft_hosts_given places = {
    .npes = NPES, .nhosts = 2, .here = 0, .host_of = host_of, .host = names, .network = &network};

static struct weft_hub *hub;
static int pe_end[NPES];

static void open_hub(void) {
    int sockets[NPES];
    for (int pe = 0; pe < NPES; pe++) {
        int pair[2] = {-1, -1};
        if (host_of[pe] == 0)
            EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0, "%d", errno);
        sockets[pe] = pair[0];
        pe_end[pe] = pair[1];
    }
    EXPECT(weft_hub_open(&hub, sockets, NPES) == 0, "hub");
}

static void close_hub(void) {
    weft_hub_close(hub);
    for (int pe = 0; pe < NPES; pe++)
        if (pe_end[pe] >= 0)
            close(pe_end[pe]);
}

static unsigned char byte_of(int pe, int round) {
    return (unsigned char)(1 + pe + 16 * round);
}

static void give(int pe, int round) {
    struct weft_hub_report report;
    unsigned char blob[BYTES];
    int fds[NFDS] = {0, 0, 0};
    struct weft_wire_header header = {.kind = WEFT_WIRE_GIVE, .bytes = BYTES, .nfds = NFDS};
    struct weft_wire_body body = {blob, BYTES, fds, NFDS};
    memset(blob, byte_of(pe, round), BYTES);
    EXPECT(weft_wire_send(pe_end[pe], &header, &body, MSG_DONTWAIT) == 0, "%d", pe);
    EXPECT(weft_hub_serve(hub, pe, &report) == WEFT_HUB_GAVE, "PE %d: %s", pe, report.why);
}

/* Returns the contributions of all PEs, as the owner receives them from the front. */
static unsigned char *all_of(int round) {
    unsigned char *all = malloc(NPES * BYTES);
    for (int pe = 0; pe < NPES; pe++)
        memset(all + pe * BYTES, byte_of(pe, round), BYTES);
    return all;
}

static void take(int pe, int round) {
    unsigned char mine[BYTES], all[NPES * BYTES] = {0};
    int fds[NFDS], all_fds[NPES * NFDS], error = 0;
    struct weft_exchange exchange = {
        .mine = mine, .bytes = BYTES, .all = all, .fds = fds, .nfds = NFDS, .all_fds = all_fds};
    weft_attachment.valid = true;
    EXPECT(weft_exchange_begin(&exchange, NPES) == 0, "begin");
    exchange.over_hosts = true;
    while (error == 0 && exchange.arrived < NPES)
        error = weft_exchange_take(&exchange, pe_end[pe]);
    EXPECT(error == 0, "PE %d: %d after %d", pe, error, exchange.arrived);
    for (int from = 0; from < NPES; from++) {
        EXPECT(all[from * BYTES] == byte_of(from, round) &&
                   all[from * BYTES + BYTES - 1] == byte_of(from, round),
               "from PE %d: %d", from, all[from * BYTES]);
        for (int i = 0; i < NFDS; i++)
            EXPECT((all_fds[from * NFDS + i] >= 0) == (host_of[from] == 0), "PE %d: %d", from,
                   all_fds[from * NFDS + i]);
    }
    weft_exchange_drop(&exchange);
}

/* Completes the exchange with `bytes` of contributions of this round. Returns the result. */
static int complete_bytes(int round, size_t bytes) {
    struct weft_tree_given given = {.head.bytes = BYTES};
    size_t size;
    unsigned char *all = all_of(round), *payload = weft_tree_given_make(&given, NPES, NPES, &size);
    memcpy(given.contributions, all, NPES * BYTES);
    int code = weft_hub_complete(hub, payload, size - NPES * BYTES + bytes);
    free(all);
    free(payload);
    return code;
}

static void complete(int round) {
    EXPECT(complete_bytes(round, NPES * BYTES) == 0, "round %d", round);
}

/* Returns the number of gathered contributions, or -1 if there is none, and the first bytes of the
 * first three. */
static int gather(unsigned char firsts[3]) {
    struct weft_tree_given given;
    unsigned char *payload;
    size_t bytes;
    if (!weft_hub_gather(hub, &payload, &bytes))
        return -1;
    EXPECT(weft_tree_given_read(&given, payload, bytes, NPES) && given.head.bytes == BYTES &&
               given.head.key == 0,
           "%zu bytes", bytes);
    for (size_t i = 0; i < 3 && i < given.bytes / BYTES; i++)
        firsts[i] = given.contributions[i * BYTES];
    free(payload);
    return (int)(given.bytes / BYTES);
}

static void rounds(void) {
    int before = entries_of("/proc/self/fd");
    unsigned char firsts[3];
    open_hub();
    for (int round = 0; round < 4; round++) {
        give(2, round);
        give(5, round);
        EXPECT(gather(firsts) < 0, "PE 0 has not given");
        EXPECT(weft_hub_awaits(hub, 0) && !weft_hub_awaits(hub, 1), "PE 0 is awaited, PE 1 is not");
        give(0, round);
        int count = gather(firsts);
        EXPECT(count == 3, "%d", count);
        EXPECT(firsts[0] == byte_of(0, round) && firsts[1] == byte_of(2, round) &&
                   firsts[2] == byte_of(5, round),
               "in the order of PEs");
        EXPECT(gather(firsts) < 0, "it is taken up once");
        complete(round);
        take(5, round);
        take(2, round);
        take(0, round);
    }
    close_hub();
    int after = entries_of("/proc/self/fd");
    EXPECT(before == after, "%d before, %d after", before, after);
}

static void one_is_slow(void) {
    unsigned char firsts[3];
    open_hub();
    for (int pe = 0; pe < NPES; pe++)
        if (host_of[pe] == 0)
            give(pe, 0);
    EXPECT(gather(firsts) == 3, "round 0");
    complete(0);
    take(2, 0);
    give(2, 1);
    take(5, 0);
    give(5, 1);
    EXPECT(gather(firsts) < 0, "PE 0 is in round 0");
    take(0, 0);
    give(0, 1);
    EXPECT(gather(firsts) == 3, "round 1");
    close_hub();
}

static void refusals(void) {
    unsigned char firsts[3];
    open_hub();
    EXPECT(complete_bytes(0, NPES * BYTES) == -EPROTO, "no round is under way");
    give(0, 0);
    EXPECT(complete_bytes(0, NPES * BYTES) == -EPROTO, "PEs are missing");
    give(2, 0);
    give(5, 0);
    EXPECT(complete_bytes(0, NPES * BYTES) == -EPROTO, "it was not taken up");
    EXPECT(gather(firsts) == 3, "round 0");
    EXPECT(complete_bytes(0, NPES * BYTES - 1) == -EPROTO, "a byte is missing");
    EXPECT(complete_bytes(0, NPES * BYTES) == 0, "now it fits");
    EXPECT(complete_bytes(0, NPES * BYTES) == -EPROTO, "a second time");
    close_hub();
}

/* A correct launcher sends descriptors only with contributions of this host. */
static void descriptors_from_elsewhere(void) {
    int pair[2], fds[NPES] = {0};
    unsigned char all[NPES] = {0}, mine = 0;
    int all_fds[NPES], none = 0;
    EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0, "%d", errno);
    for (int count = 1; count <= 2; count++)
        for (int nfds = 0; nfds <= 1; nfds++) {
            struct weft_exchange exchange = {
                .mine = &mine, .bytes = 1, .all = all, .fds = &none, .nfds = 1, .all_fds = all_fds};
            struct weft_wire_header header = {.kind = WEFT_WIRE_SHARE,
                                              .bytes = 1,
                                              .nfds = (uint32_t)nfds,
                                              .count = (uint32_t)count};
            struct weft_wire_body body = {all, (size_t)count, fds, nfds * count};
            weft_exchange_begin(&exchange, NPES);
            exchange.over_hosts = true;
            weft_wire_send(pair[0], &header, &body, MSG_DONTWAIT);
            int error = weft_exchange_take(&exchange, pair[1]), right = count == 1 && nfds == 1;
            EXPECT(error == (right ? 0 : -EPROTO), "%d of %d descriptors: %d", count, nfds, error);
            weft_exchange_drop(&exchange);
        }
    close(pair[0]);
    close(pair[1]);
}

static void words(void) {
    struct weft_cause cause = {.kind = WEFT_ABORT_HOST, .pe = -1, .detail = 1};
    char text[WEFT_CAUSE_TEXT_BYTES];
    EXPECT(weft_boot_nhosts() == 2 && weft_boot_host(3) == 1 && weft_boot_host(NPES) == -1 &&
               weft_boot_npes_here() == 3 && !weft_boot_is_here(-1),
           "%d hosts", weft_boot_nhosts());
    weft_cause_text(&cause, text, sizeof text);
    EXPECT(strcmp(text, "host there (PEs 1, 3, 4) does not answer") == 0, "%s", text);
    cause = (struct weft_cause){.kind = WEFT_ABORT_DIED, .pe = 4, .pid = 47, .detail = 9};
    weft_cause_text(&cause, text, sizeof text);
    EXPECT(strcmp(text, "PE 4 (pid 47 on there) was killed by signal 9 (Killed)") == 0, "%s", text);
}

/* Any PE can overwrite the page. */
static void pages(void) {
    struct weft_control *control;
    EXPECT(weft_control_create(NPES, 2, &control, NULL) == 0, "page");
    weft_control_write_hosts(control, &places);
    EXPECT(weft_control_read_hosts(control, NPES) == 0, "as it was written");
    EXPECT(strcmp(weft_boot_network()->interface, "eth0") == 0 && weft_boot_host(4) == 1, "%s",
           weft_boot_network()->interface);
    control->pe[4].host = 2;
    EXPECT(weft_control_read_hosts(control, NPES) == -EPROTO, "PE 4 is nowhere");
    control->pe[4].host = 1;
    control->host = 7;
    EXPECT(weft_control_read_hosts(control, NPES) == -EPROTO, "this host is none");
}

int main(void) {
    tap_start(0);
    EXPECT(weft_hosts_set(&places) == 0, "hosts");
    tap_case("rounds are gathered here and completed from above");
    rounds();
    tap_case("a PE that takes nothing holds up no other");
    one_is_slow();
    tap_case("what nobody waits for is refused");
    refusals();
    tap_case("descriptors come with contributions from here");
    descriptors_from_elsewhere();
    tap_case("hosts have names");
    words();
    tap_case("the control page names them");
    pages();
    return tap_finish();
}
