/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon of the first host; line 0 is its front. Its PEs have sockets but no processes: they
 * contribute to an exchange each time that STEP_LATE lets time pass, twice; then they have ended.
 */
#include "launch/daemon.h"
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "boot/hub.h"
#include "boot/long_wait.h"
#include "boot/wire.h"
#include "launch/end.h"
#include "input.h"
#include "line.h"

enum { EXCHANGES = 2 };

static struct weft_daemon tested;
static struct weft_control *control;
static int pe_end[FUZZ_PES], given, reply[2];
static bool answered; /* everything, after the PEs have ended */
static const char *wrong;

/* --- Functions that report to the front ------------------------------------------------------- */

static void tell_ending(struct weft_run *run) {
    if (run->cause.pe < -1 || run->cause.pe >= FUZZ_PES)
        wrong = "the job ends because of a PE that does not exist";
}

static void tell_cut(struct weft_run *run, int pe, int host) {
    (void)run, (void)pe, (void)host;
}

static void tell_line(struct weft_run *run, bool of_cause, const char *line) {
    (void)run, (void)of_cause, (void)line;
}

static void tell_output(void *owner, int pe, int stream, const void *bytes, size_t count) {
    (void)owner, (void)pe, (void)stream, (void)bytes, (void)count;
}

static void tell_taken(void *owner, size_t count) {
    (void)owner, (void)count;
}

static void tell_pe_status(void *owner, const struct weft_frame *frame, const void *payload) {
    (void)owner, (void)frame, (void)payload;
}

/* --- The scene -------------------------------------------------------------------------------- */

static void control_clear(void) {
    if (!control && weft_control_create(FUZZ_PES, FUZZ_HOSTS, &control, NULL))
        abort();
    atomic_store(&control->abort, WEFT_ABORT_NONE);
    atomic_store(&control->abort_claimed, 0);
    for (int pe = 0; pe < FUZZ_PES; pe++)
        memset(&control->pe[pe].pid, 0,
               sizeof control->pe[pe] - offsetof(struct weft_control_pe, pid));
}

static void pes_open(struct weft_run *run) {
    static const struct weft_program program;
    int sockets[FUZZ_PES], pair[2];
    for (int pe = 0; pe < FUZZ_PES; pe++) {
        bool here = weft_boot_is_here(pe);
        if (here && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
            abort();
        sockets[pe] = here ? pair[0] : -1;
        pe_end[pe] = here ? pair[1] : -1;
        run->pe[pe] =
            (struct weft_run_pe){.program = here ? &program : NULL, .reaped = true, .life = -1};
    }
    if (weft_hub_open(&run->hub, sockets, FUZZ_PES))
        abort();
}

static void daemon_open(void) {
    static const struct weft_run_above above = {tell_ending, tell_cut, tell_line};
    static const struct weft_forward_above streams = {tell_output, tell_taken, NULL};
    static const struct weft_options options = {.npes = FUZZ_PES};
    control_clear();
    tested = (struct weft_daemon){
        .start = {.nhosts = FUZZ_HOSTS, .options = options},
        .phase = WEFT_TREE_BEFORE_GO,
        .run = {.options = &options, .npes = FUZZ_PES, .control = control, .above = &above}};
    tested.run.pe = calloc(FUZZ_PES, sizeof *tested.run.pe);
    if (!tested.run.pe || weft_host_link_open(&tested.front.link, line_open(0), 1e9, true) ||
        weft_forward_open(&tested.forward, FUZZ_PES, &streams) ||
        weft_pe_status_open(&tested.pe_status, control, FUZZ_PES, tell_pe_status, NULL))
        abort();
    pes_open(&tested.run);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, reply) < 0)
        abort();
    given = 0;
    answered = false;
    wrong = NULL;
}

/* First to an exchange of all PEs, then to one of some PEs, two of which are on this host. */
static void exchange_give(void) {
    static const uint64_t among[] = {7, 1 | 1 << 2 | 1 << 5};
    struct weft_wire_header header = {.kind = given ? WEFT_WIRE_GIVE_AMONG : WEFT_WIRE_GIVE,
                                      .bytes = sizeof given};
    unsigned char payload[sizeof among + sizeof given], *gathered;
    size_t heads = given ? sizeof among : 0, bytes;
    struct weft_wire_body body = {
        .payload = payload, .bytes = heads + sizeof given, .fds = reply, .nfds = given ? 1 : 0};
    struct weft_hub_report report;
    memcpy(payload, among, heads);
    memcpy(payload + heads, &given, sizeof given);
    given++;
    for (int pe = 0; pe < FUZZ_PES; pe++)
        if (pe_end[pe] >= 0) {
            weft_wire_send(pe_end[pe], &header, &body, MSG_DONTWAIT);
            weft_hub_serve(tested.run.hub, pe, &report);
        }
    if (!weft_hub_gather(tested.run.hub, &gathered, &bytes))
        wrong = "contributions of this host's PEs are not gathered";
    else
        free(gathered);
}

static void daemon_late(void) {
    if (tested.phase != WEFT_TREE_AT_WORK)
        return;
    struct weft_hub *hub = tested.run.hub;
    answered = hub && given == EXCHANGES && !weft_hub_is_pending(hub);
    if (given == EXCHANGES || !hub)
        tested.phase = WEFT_TREE_AFTER_DONE;
    else if (tested.run.hub && !weft_hub_is_pending(hub))
        exchange_give();
}

static void shares_take(void) {
    static unsigned char bytes[WEFT_WIRE_PAYLOAD_MAX + 64];
    for (int pe = 0; pe < FUZZ_PES; pe++)
        while (pe_end[pe] >= 0 && recv(pe_end[pe], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
            continue;
}

static bool daemon_turn(void) {
    struct weft_frame frame;
    const void *payload;
    while (weft_host_link_next(&tested.front.link, &frame, &payload))
        weft_daemon_hear(&tested, &frame, payload);
    shares_take();
    return !tested.front.link.end && !tested.bye;
}

static const char *daemon_look(void) {
    const char *seen = fuzz_control_look(control);
    if (seen)
        return seen;
    if (tested.phase == WEFT_TREE_BEFORE_GO && tested.run.phase != WEFT_RUNNING)
        return "the front has ended PEs that were not started";
    if (tested.run.phase >= WEFT_GRACE) {
        int status = weft_end_status(&tested.run);
        if (status < 0 || status > 255)
            return "the host ends with an invalid status";
    }
    return wrong;
}

static bool daemon_close(void) {
    bool whole = tested.bye && !tested.front.link.end && answered;
    weft_hub_close(tested.run.hub);
    weft_host_link_close(&tested.front.link);
    weft_forward_free(tested.forward);
    weft_pe_status_close(tested.pe_status);
    for (int pe = 0; pe < FUZZ_PES; pe++)
        if (pe_end[pe] >= 0)
            close(pe_end[pe]);
    close(reply[0]);
    close(reply[1]);
    free(tested.run.pe);
    return whole;
}

const struct scene scene_daemon = {.nlines = 1,
                                   .hosts = {{0, 1}},
                                   .open = daemon_open,
                                   .late = daemon_late,
                                   .turn = daemon_turn,
                                   .look = daemon_look,
                                   .close = daemon_close};
