/* SPDX-License-Identifier: BSD-3-Clause */
/* PE 0's agent: only its handling of exchanges and of the states of two other hosts, whose
 * connections are links. boot/agent.c itself can only run once per process. */
#include <stdlib.h>
#include <string.h>
#include "boot/attachment.h"
#include "boot/host_exchange.h"
#include "boot/host_link.h"
#include "boot/long_wait.h"
#include "boot/pe_status.h"
#include "input.h"
#include "line.h"

enum { LINES = FUZZ_HOSTS - 1 };

static struct weft_control *control;
static struct weft_pe_status *status;
static struct weft_host_exchanges exchanges;
static struct weft_host_link links[LINES];
static int shared; /* number of exchanges */
static const char *wrong;

static void pe_status_send(void *owner, const struct weft_frame *frame, const void *payload) {
    (void)owner, (void)frame, (void)payload;
    wrong = "a state is sent although no PE has changed it";
}

/* All hosts with members have contributed. */
static void exchange_share(void *owner, int host, const void *payload, size_t bytes) {
    struct weft_tree_given given;
    (void)owner;
    if (!weft_tree_given_read(&given, payload, bytes, FUZZ_PES) || host < -1 || host >= FUZZ_HOSTS)
        wrong = "the result of an exchange is invalid";
    else if (!given.head.status && given.bytes != (size_t)given.members.count * given.head.bytes)
        wrong = "the result of an exchange differs in size from its contributions";
    unsigned char *copy = malloc(bytes);
    memcpy(copy, payload, bytes); /* as sent to other hosts */
    free(copy);
    shared++;
}

static void agent_open(void) {
    if (!control && weft_control_create(FUZZ_PES, FUZZ_HOSTS, &control, NULL))
        abort();
    for (int pe = 0; pe < FUZZ_PES; pe++)
        memset(&control->pe[pe].pid, 0,
               sizeof control->pe[pe] - offsetof(struct weft_control_pe, pid));
    exchanges = (struct weft_host_exchanges){
        .npes = FUZZ_PES, .nhosts = FUZZ_HOSTS, .share = exchange_share};
    shared = 0;
    wrong = NULL;
    if (weft_pe_status_open(&status, control, FUZZ_PES, pe_status_send, NULL))
        abort();
    for (int line = 0; line < LINES; line++)
        if (weft_host_link_open(&links[line], line_open(line), 1e9, true))
            abort();
}

/* This host contributes to every exchange that another host has begun. */
static void give(const void *payload, size_t bytes) {
    struct weft_tree_given given;
    int count = 0;
    if (!weft_host_exchanges_await(&exchanges, 0))
        return;
    if (!weft_tree_given_read(&given, payload, bytes, FUZZ_PES))
        abort();
    for (int pe = 0; pe < FUZZ_PES; pe++)
        count += weft_boot_is_here(pe) && weft_wire_members_has(&given.members, pe);
    given.head.status = 0;
    unsigned char *own = weft_tree_given_make(&given, FUZZ_PES, count, &bytes);
    memset(given.contributions, 1, given.bytes);
    if (weft_host_exchanges_give(&exchanges, 0, own, bytes) != 0)
        wrong = "a contribution of this host to an exchange of others is refused";
    free(own);
}

static bool host_gives(int host, const void *payload, size_t bytes) {
    if (weft_host_exchanges_give(&exchanges, host, payload, bytes) != 0)
        return false;
    give(payload, bytes);
    return true;
}

static bool frame_hear(int host, const struct weft_frame *frame, const void *payload) {
    switch (frame->kind) {
    case WEFT_TREE_GAVE:
        return host_gives(host, payload, frame->bytes);
    case WEFT_TREE_PE_STATUS:
    case WEFT_TREE_LONG_WAIT:
        return weft_pe_status_hear(status, host, frame, payload) == NULL;
    default:
        return false;
    }
}

static bool agent_turn(void) {
    bool lives = true;
    for (int line = 0; line < LINES; line++) {
        struct weft_frame frame;
        const void *payload;
        weft_host_link_turn(&links[line], 0);
        while (weft_host_link_next(&links[line], &frame, &payload))
            if (!frame_hear(line + 1, &frame, payload))
                weft_host_link_refuse(&links[line], "it has sent an invalid frame");
        lives = lives && !links[line].end;
    }
    weft_host_exchanges_judge(&exchanges, control);
    weft_pe_status_tell(status);
    return lives;
}

static const char *agent_look(void) {
    const char *seen = fuzz_control_look(control);
    return seen ? seen : wrong;
}

static bool agent_close(void) {
    for (int line = 0; line < LINES; line++)
        weft_host_link_close(&links[line]);
    weft_pe_status_close(status);
    weft_host_exchanges_close(&exchanges);
    return shared > 0;
}

const struct scene scene_agent = {.nlines = LINES,
                                  .hosts = {{1, 1}, {2, 1}},
                                  .open = agent_open,
                                  .turn = agent_turn,
                                  .look = agent_look,
                                  .close = agent_close};
