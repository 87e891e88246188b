/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the hub alone, with both ends of its sockets in this process: a PE that does not
 * read delays no other PE; a PE may contribute to the next exchange while others still receive the
 * last; descriptors are closed; random messages are either served or rejected. PEs: 1 */
#include "boot/hub.h"
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "boot/boot.h"
#include "boot/random.h"
#include "boot/wire.h"
#include "entries.h"
#include "tap.h"

enum { NPES = 64, RANDOM_MESSAGES = 100000 };

static struct weft_hub *hub;
static int pe_end[NPES];

static void open_hub(int npes) {
    int sockets[NPES];
    for (int pe = 0; pe < npes; pe++) {
        int pair[2];
        EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0, "%d", errno);
        sockets[pe] = pair[0];
        pe_end[pe] = pair[1];
    }
    EXPECT(weft_hub_open(&hub, sockets, npes) == 0, "hub");
}

static void close_hub(int npes) {
    weft_hub_close(hub);
    for (int pe = 0; pe < npes; pe++)
        close(pe_end[pe]);
}

static void give(int pe, size_t bytes, int nfds) {
    static unsigned char blob[WEFT_BOOT_BLOB_MAX];
    int fds[WEFT_BOOT_FDS_MAX] = {0};
    struct weft_wire_header header = {
        .kind = WEFT_WIRE_GIVE, .bytes = (uint32_t)bytes, .nfds = (uint32_t)nfds};
    memset(blob, pe, sizeof blob);
    struct weft_wire_body body = {blob, bytes, fds, nfds};
    EXPECT(weft_wire_send(pe_end[pe], &header, &body, MSG_DONTWAIT) == 0, "%d", pe);
}

static enum weft_hub_event serve(int pe) {
    struct weft_hub_report report;
    return weft_hub_serve(hub, pe, &report);
}

/* Takes what this PE can receive. Returns the number of contributions. */
static int take(int pe) {
    static unsigned char payload[WEFT_WIRE_PAYLOAD_MAX];
    struct weft_wire_message message;
    int contributions = 0;
    while (weft_wire_receive(pe_end[pe], &message, payload, sizeof payload, MSG_DONTWAIT) >= 0) {
        EXPECT(message.header.first == (uint32_t)contributions, "first is %u",
               message.header.first);
        contributions += (int)message.header.count;
        weft_wire_close(&message);
        serve(pe); /* there is room again */
    }
    return contributions;
}

static void one_that_takes_nothing(void) {
    open_hub(NPES);
    for (int pe = 0; pe < NPES; pe++) {
        give(pe, WEFT_BOOT_BLOB_MAX, 2);
        EXPECT(serve(pe) == WEFT_HUB_GAVE, "PE %d", pe);
    }
    for (int pe = 1; pe < NPES; pe++) {
        EXPECT(take(pe) == NPES, "PE %d", pe);
        EXPECT(weft_hub_events(hub, pe) == POLLIN, "PE %d has more to come", pe);
    }
    EXPECT(weft_hub_events(hub, 0) == (POLLIN | POLLOUT), "PE 0 has all");
    for (int pe = 1; pe < NPES; pe++) {
        give(pe, 100, 1);
        EXPECT(serve(pe) == WEFT_HUB_GAVE, "next round, PE %d", pe);
    }
    EXPECT(!weft_hub_awaits(hub, 0), "PE 0 is waited for while it is served");
    EXPECT(take(0) == NPES, "PE 0");
    EXPECT(weft_hub_awaits(hub, 0) && !weft_hub_awaits(hub, 1), "only PE 0 is waited for");
    give(0, 100, 1);
    EXPECT(serve(0) == WEFT_HUB_GAVE, "PE 0");
    for (int pe = 0; pe < NPES; pe++)
        EXPECT(take(pe) == NPES, "next round, PE %d", pe);
    close_hub(NPES);
}

static void unfinished_round(void) {
    int before = entries_of("/proc/self/fd");
    open_hub(3);
    for (int round = 0; round < 2; round++) {
        give(0, 8, 8);
        serve(0);
    }
    close_hub(3);
    int after = entries_of("/proc/self/fd");
    EXPECT(before == after, "%d before, %d after", before, after);
}

/* The first contribution of a round can only disagree with its own header. */
static void wrong_sizes(void) {
    open_hub(2);
    struct weft_wire_header lie = {.kind = WEFT_WIRE_GIVE, .bytes = 100};
    struct weft_wire_body body = {.payload = "abc", .bytes = 3};
    weft_wire_send(pe_end[0], &lie, &body, MSG_DONTWAIT);
    EXPECT(serve(0) == WEFT_HUB_JUNK, "fewer bytes than it says");
    lie = (struct weft_wire_header){.kind = WEFT_WIRE_GIVE, .bytes = 3, .nfds = 1};
    weft_wire_send(pe_end[0], &lie, &body, MSG_DONTWAIT);
    EXPECT(serve(0) == WEFT_HUB_JUNK, "fewer descriptors than it says");
    close_hub(2);
}

static void send_random(int pe) {
    static unsigned char payload[2 * WEFT_BOOT_BLOB_MAX];
    static const uint32_t sizes[] = {0,         1, 8, WEFT_BOOT_BLOB_MAX, WEFT_BOOT_BLOB_MAX + 1,
                                     UINT32_MAX};
    int fds[20] = {0}, nfds = (int)random_number(20);
    struct weft_wire_header header = {
        .kind = random_number(WEFT_WIRE_CUT + 2), /* including an unknown kind */
        .bytes = sizes[random_number(6)],
        .nfds = random_number(4) ? (uint32_t)nfds : random_number(99),
        .status = (int)random_number(500)};
    size_t bytes =
        random_number(4) && header.bytes <= sizeof payload ? header.bytes : random_number(8192);
    struct weft_wire_body body = {payload, bytes, fds, nfds};
    if (random_number(64) == 0)
        shutdown(pe_end[pe], SHUT_RDWR);
    else if (random_number(16) == 0)
        send(pe_end[pe], payload, random_number(sizeof header), MSG_DONTWAIT | MSG_NOSIGNAL);
    else
        weft_wire_send(pe_end[pe], &header, &body, MSG_DONTWAIT);
}

static void random_messages(void) {
    enum { FEW = 3 };
    int before = entries_of("/proc/self/fd"), seen[WEFT_HUB_JUNK + 1] = {0};
    open_hub(FEW);
    for (int i = 0; i < RANDOM_MESSAGES; i++) {
        int pe = (int)random_number(FEW);
        if (random_number(2))
            send_random(pe);
        enum weft_hub_event event = serve(pe);
        seen[event]++;
        if (random_number(3) == 0)
            take(pe);
        if (event == WEFT_HUB_LOST) {
            close_hub(FEW);
            open_hub(FEW);
        }
    }
    close_hub(FEW);
    for (int event = 0; event <= WEFT_HUB_JUNK; event++)
        EXPECT(seen[event] > 0, "event %d never came", event);
    int after = entries_of("/proc/self/fd");
    EXPECT(before == after, "%d before, %d after", before, after);
}

int main(void) {
    tap_start(0);
    tap_case("a PE that takes nothing holds up nobody");
    one_that_takes_nothing();
    tap_case("an unfinished round leaves no descriptor open");
    unfinished_round();
    tap_case("a message that lies about itself");
    wrong_sizes();
    tap_case("random messages");
    random_messages();
    return tap_finish();
}
