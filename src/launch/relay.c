/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/relay.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/env.h"
#include "launch/branch.h"
#include "launch/failure.h"
#include "launch/uplink.h"

enum { STATUS_SYSTEM = 71, PROCESSES_MS = 1500 };

/* Indices into the array for poll; the branch's entries follow. */
enum { POLL_SIGNALS = WEFT_UPLINK_POLLS, POLL_BRANCH };

struct relay {
    struct weft_uplink up;
    struct weft_branch below;
    struct weft_signals signals;
    bool told_to_end;
};

static bool hear(void *owner, int child, const struct weft_frame *frame, const void *payload) {
    struct relay *relay = owner;
    (void)child;
    weft_host_link_send(&relay->up.link, frame, payload);
    return true;
}

static void lose(void *owner, int child, const char *why) {
    struct relay *relay = owner;
    const struct weft_branch_child *it = &relay->below.child[child];
    struct weft_frame frame = {.kind = WEFT_TREE_LOST,
                               .bytes = (uint32_t)strlen(why),
                               .value = it->count,
                               .host = it->first};
    weft_host_link_send(&relay->up.link, &frame, why);
}

static void signals_serve(struct relay *relay) {
    int signal;
    bool from_kernel;
    while (weft_signals_next(&relay->signals, &signal, &from_kernel))
        if (signal == SIGCHLD)
            weft_branch_reap(&relay->below);
        else
            relay->told_to_end |= weft_signal_is_deadly(signal);
}

static bool all_came(const struct weft_branch *branch) {
    bool all = true;
    for (int child = 0; child < branch->nchildren; child++)
        all = all && branch->child[child].came;
    return all;
}

static void turn(struct relay *relay) {
    int count = POLL_BRANCH + weft_branch_count(&relay->below);
    int patience_ms = weft_uplink_patience_ms(&relay->up);
    struct pollfd polls[count];
    struct weft_frame frame;
    const void *payload;
    weft_uplink_polls(&relay->up, polls);
    polls[POLL_SIGNALS] = (struct pollfd){.fd = relay->signals.signals, .events = POLLIN};
    weft_branch_polls(&relay->below, &polls[POLL_BRANCH]);
    if (poll(polls, (nfds_t)count, patience_ms) < 0)
        memset(polls, 0, sizeof polls); /* interrupted; the next poll reports the events again */
    if (polls[POLL_SIGNALS].revents)
        signals_serve(relay);
    weft_uplink_turn(&relay->up, polls);
    while (weft_host_link_next(&relay->up.link, &frame, &payload))
        weft_branch_route(&relay->below, &frame, payload);
    weft_branch_serve(&relay->below, &polls[POLL_BRANCH]);
    weft_branch_turn(&relay->below);
    if (relay->below.listener && all_came(&relay->below))
        weft_branch_shut(&relay->below);
}

/* Makes an array of all hosts of the job, in which only the hosts of this relay are set. */
static struct weft_branch_host *hosts_make(const struct weft_start *start) {
    struct weft_branch_host *host = calloc((size_t)start->nhosts, sizeof *host);
    for (int i = 0; host && i < start->below; i++)
        host[start->host + i] = (struct weft_branch_host){
            .name = start->name[start->host + i], .called = start->called[i], .here = i == 0};
    return host;
}

static int branch_start(struct relay *relay, const struct weft_start *start) {
    struct weft_start below = *start;
    struct weft_branch_host *host = hosts_make(start);
    struct weft_branch_plan plan = {.host = host,
                                    .nhosts = start->nhosts,
                                    .first = start->host,
                                    .count = start->below,
                                    .fan_out = start->fan_out,
                                    .own = true};
    below.by_front = false;
    weft_env.ssh = start->ssh;
    int error = host ? weft_branch_open(&relay->below, &plan) : -ENOMEM;
    if (error)
        weft_failure_say(error, "malloc, for %d hosts below this one", start->below);
    error = error ? error : weft_signals_open(&relay->signals);
    if (error == 0)
        error = weft_branch_start(&relay->below, &below, &plan, &relay->signals,
                                  relay->up.address[0] ? relay->up.address : NULL);
    free(host);
    return error;
}

int weft_relay_main(const struct weft_start *start) {
    static const struct weft_branch_above above = {hear, lose};
    static struct relay relay;
    relay.below = (struct weft_branch){.above = &above, .owner = &relay};
    int error = weft_uplink_open(&relay.up, start);
    error = error ? error : branch_start(&relay, start);
    while (error == 0 && !relay.up.link.end && !relay.told_to_end)
        turn(&relay);
    weft_branch_close(&relay.below, PROCESSES_MS, true);
    return error ? STATUS_SYSTEM : 0;
}
