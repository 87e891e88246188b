/* SPDX-License-Identifier: BSD-3-Clause */
/* The front of a job: a relay represents its first two hosts, a daemon the third. Output of PEs is
 * dropped. */
#include "launch/front.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <weft/version.h>
#include "input.h"
#include "line.h"

enum { CHILDREN = 2 };

static struct weft_front front;
static int shared; /* number of exchanges */
static const char *names[FUZZ_HOSTS] = {"a", "b", "c"};

/* --- Replacement of launch/writer.c ----------------------------------------------------------- */

int weft_writer_open(struct weft_writer **writer, const struct weft_writer_options *options) {
    (void)writer, (void)options;
    return 0;
}

/* Drops output after reading its last byte. */
int weft_writer_give(struct weft_writer *writer, int pe, int stream, const void *bytes,
                     size_t count) {
    static volatile unsigned char byte;
    (void)writer, (void)pe, (void)stream;
    if (count)
        byte = ((const unsigned char *)bytes)[count - 1];
    (void)byte;
    return 0;
}

int weft_writer_descriptor(struct weft_writer *writer) {
    (void)writer;
    return -1;
}

int32_t weft_writer_taken(struct weft_writer *writer, int host) {
    (void)writer, (void)host;
    return 0;
}

bool weft_writer_lost(struct weft_writer *writer, int stream) {
    (void)writer, (void)stream;
    return false;
}

int weft_writer_finish(struct weft_writer *writer, int patience_ms) {
    (void)writer, (void)patience_ms;
    return 0;
}

static void share(void *owner, int host, const void *payload, size_t bytes) {
    shared++;
    weft_front_share(owner, host, payload, bytes);
}

/* --- The scene -------------------------------------------------------------------------------- */

static void front_open(void) {
    static const struct weft_options options = {.npes = FUZZ_PES};
    static struct weft_branch_host host[FUZZ_HOSTS];
    struct weft_branch_plan plan = {
        .host = host, .nhosts = FUZZ_HOSTS, .count = FUZZ_HOSTS, .fan_out = CHILDREN};
    front = (struct weft_front){
        .options = &options,
        .npes = FUZZ_PES,
        .nhosts = FUZZ_HOSTS,
        .host_of = fuzz_host_of,
        .host = calloc(FUZZ_HOSTS, sizeof *front.host),
        .name = names,
        .branch = {.above = &weft_front_above, .owner = &front},
        .exchanges = {.npes = FUZZ_PES, .nhosts = FUZZ_HOSTS, .share = share, .owner = &front},
        .input_untaken = 1000,
        .cause_host = -1,
        .first_host = -1};
    for (int i = 0; i < FUZZ_HOSTS; i++)
        host[i].name = host[i].called = names[i];
    if (weft_branch_open(&front.branch, &plan) || !front.host ||
        weft_control_create(FUZZ_PES, FUZZ_HOSTS, &front.control, NULL) ||
        weft_pe_status_open(&front.pe_status, front.control, FUZZ_PES, NULL, NULL))
        abort();
    shared = 0;
    for (int i = 0; i < FUZZ_HOSTS; i++)
        front.host[i] = (struct weft_front_host){.name = names[i],
                                                 .child = weft_branch_child_of(&front.branch, i)};
    for (int pe = FUZZ_PES - 1; pe >= 0; pe--) {
        front.host[fuzz_host_of[pe]].npes++;
        front.host[fuzz_host_of[pe]].first_pe = pe;
    }
    for (int child = 0; child < CHILDREN; child++) {
        front.branch.child[child].came = true;
        if (weft_host_link_open(&front.branch.child[child].link, line_open(child), 1e9, false))
            abort();
    }
}

static void hello_complete(uint32_t kind, uint8_t *payload, size_t bytes) {
    struct weft_tree_hello hello;
    if (kind != WEFT_TREE_HELLO || bytes != sizeof hello)
        return;
    memcpy(&hello, payload, sizeof hello);
    if (hello.layout == 0)
        hello.layout = WEFT_TREE_LAYOUT;
    if (!*hello.version)
        memcpy(hello.version, WEFT_VERSION_STRING, sizeof WEFT_VERSION_STRING);
    memcpy(payload, &hello, sizeof hello);
}

static bool all_done(void) {
    bool done = true;
    for (int i = 0; i < FUZZ_HOSTS; i++)
        done = done && front.host[i].state == WEFT_HOST_DONE;
    return done;
}

static void front_late(void) {
    front.phase_ends_ms = 0;
    weft_front_time(&front);
}

/* Reads from all children in each turn, as after a poll without events. */
static bool front_turn(void) {
    struct pollfd polls[16];
    for (size_t i = 0; i < sizeof polls / sizeof *polls; i++)
        polls[i] = (struct pollfd){.fd = -1};
    weft_branch_serve(&front.branch, polls);
    bool some = false;
    for (int child = 0; child < CHILDREN; child++)
        some = some || front.branch.child[child].link.frames;
    return some && !all_done() && front.phase != WEFT_FRONT_OVER;
}

static const char *front_look(void) {
    for (int i = 0; i < FUZZ_HOSTS; i++) {
        const struct weft_front_host *host = &front.host[i];
        if (host->untaken < 0 || host->untaken > WEFT_TREE_OUTPUT_MAX + WEFT_TREE_PIECE_MAX)
            return "the amount of a host's unacknowledged output is invalid";
    }
    if (front.input_untaken < 0)
        return "more input was acknowledged than was sent";
    if ((front.phase == WEFT_FRONT_ENDING) != (front.cause.kind != WEFT_ABORT_NONE) &&
        front.phase != WEFT_FRONT_OVER)
        return "a job ends without a cause, or does not with one";
    for (int i = 0; i < FUZZ_HOSTS; i++) {
        const struct weft_front_host *host = &front.host[i];
        const struct weft_tree_done *done = &host->done;
        if (host->state == WEFT_HOST_DONE && front.phase == WEFT_FRONT_STARTING)
            return "a host is done before its PEs have started";
        if (done->status & ~0xff || done->first_status & ~0xff || done->first_pid < 0 ||
            done->failures < 0 || done->failures > host->npes)
            return "a host is done with invalid statuses or counts";
    }
    if (front.cause.kind == WEFT_ABORT_EXITED && front.cause.detail & ~0xff)
        return "the job ends with an invalid exit status";
    char text[WEFT_CAUSE_TEXT_BYTES];
    weft_cause_text(&front.cause, text, sizeof text);
    return NULL;
}

static bool front_close(void) {
    bool whole = all_done() && front.cause.kind == WEFT_ABORT_NONE && shared > 0;
    for (int child = 0; child < CHILDREN; child++)
        weft_host_link_close(&front.branch.child[child].link);
    free(front.branch.child);
    free(front.host);
    weft_pe_status_close(front.pe_status);
    munmap(front.control, weft_control_bytes(FUZZ_PES, FUZZ_HOSTS));
    weft_host_exchanges_close(&front.exchanges);
    return whole;
}

const struct scene scene_front = {.nlines = CHILDREN,
                                  .above = true,
                                  .hosts = {{0, 2}, {2, 1}},
                                  .open = front_open,
                                  .complete = hello_complete,
                                  .late = front_late,
                                  .turn = front_turn,
                                  .look = front_look,
                                  .close = front_close};
