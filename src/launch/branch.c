/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/branch.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include "base/clock.h"
#include "base/env.h"
#include "launch/addresses.h"
#include "launch/failure.h"

enum {
    STATUS_NOT_FOUND = 127,
    STATUS_OF_SSH = 255,
    LOST_MS =
        200, /* wait for the process of a child that may not notice that its input was closed */
    WHY_BYTES = 512,
};

/* Indices into the array for poll; each child has three entries. */
enum { POLL_LISTENER, POLL_CHILDREN };
enum { POLL_FRAMES, POLL_SAYS, POLL_FEED, POLLS_A_CHILD };

/* --- Children -------------------------------------------------------------------------------- */

static void child_make(struct weft_branch *branch, const struct weft_branch_plan *plan, int first,
                       int count) {
    const struct weft_branch_host *host = &plan->host[first];
    branch->child[branch->nchildren++] = (struct weft_branch_child){
        .first = first,
        .count = count,
        .name = host->name,
        .remote = {.name = host->called, .here = host->here, .input = -1, .says = -1}};
}

int weft_branch_open(struct weft_branch *branch, const struct weft_branch_plan *plan) {
    int first = plan->first + plan->own, count = plan->count - plan->own;
    int parts = count < plan->fan_out ? count : plan->fan_out;
    branch->child = calloc((size_t)parts + 1, sizeof *branch->child);
    branch->nhosts = plan->nhosts;
    if (!branch->child)
        return -ENOMEM;
    if (plan->own)
        child_make(branch, plan, plan->first, 1);
    for (int part = 0; part < parts; part++) {
        int size = count / parts + (part < count % parts);
        child_make(branch, plan, first, size);
        first += size;
    }
    return 0;
}

int weft_branch_child_of(const struct weft_branch *branch, int host) {
    for (int child = 0; child < branch->nchildren; child++)
        if (host >= branch->child[child].first &&
            host < branch->child[child].first + branch->child[child].count)
            return child;
    return -1;
}

static void child_lose(struct weft_branch *branch, int child, const char *why) {
    struct weft_branch_child *it = &branch->child[child];
    weft_host_link_close(&it->link);
    it->came = true; /* so that the end of its process is not reported, too */
    branch->above->lose(branch->owner, child, why);
}

/* --- Starting -------------------------------------------------------------------------------- */

static bool listener_key_of(void *owner, const char *identity,
                            unsigned char key[WEFT_TLS_KEY_BYTES]) {
    const struct weft_branch *branch = owner;
    int host = weft_options_number(identity, 0, branch->nhosts - 1);
    int child = host < 0 ? -1 : weft_branch_child_of(branch, host);
    return child >= 0 && branch->child[child].first == host &&
           weft_tls_derive(key, branch->secret, "weft-psk-v1", (uint32_t)host) == 0;
}

static void listener_take(void *owner, struct weft_tls *tls) {
    struct weft_branch *branch = owner;
    int host = weft_options_number(weft_tls_peer(tls), 0, branch->nhosts - 1);
    int child = weft_branch_child_of(branch, host);
    if (child < 0 || branch->child[child].came) { /* already refused by the listener */
        weft_tls_close(tls);
        return;
    }
    branch->child[child].came = true;
    if (weft_host_link_open(&branch->child[child].link, tls, branch->silence_s, false) < 0)
        child_lose(branch, child, "there is no memory for its connection");
}

static int listener_open(struct weft_branch *branch) {
    int error = weft_tls_load();
    if (error)
        return error; /* logged */
    if (getrandom(branch->secret, sizeof branch->secret, 0) != sizeof branch->secret)
        return weft_failure_say(-errno, "getrandom, for the secret of the job");
    return weft_tls_listener_open(
        &branch->listener, &(struct weft_tls_listener_options){.places = branch->nchildren + 16,
                                                               .key_of = listener_key_of,
                                                               .take = listener_take,
                                                               .owner = branch});
}

/* Collects the addresses that a child calls back. A child on this host also uses the address by
 * which the other hosts are reached, because its PEs will use the same network. */
static void addresses_find(struct weft_addresses *addresses, const struct weft_branch *branch,
                           int child, const struct weft_addresses_way *ways) {
    bool here = branch->child[child].remote.here;
    int other = child;
    for (int i = 0; here && i < branch->nchildren; i++)
        if (!branch->child[i].remote.here)
            other = i;
    addresses->count = 0;
    weft_addresses_add(addresses, ways[other].text);
    weft_addresses_add_own(addresses, NULL);
    if (here)
        weft_addresses_add(addresses, "127.0.0.1");
}

/* Returns the way to each child's host, or NULL if there is no memory. `network` (may be NULL) is
 * the address to use for all children. */
static struct weft_addresses_way *ways_find(const struct weft_branch *branch, const char *network) {
    struct weft_addresses_way *ways = calloc((size_t)branch->nchildren, sizeof *ways);
    for (int child = 0; ways && child < branch->nchildren; child++) {
        const struct weft_remote *remote = &branch->child[child].remote;
        ways[child].name = remote->here ? NULL : remote->name;
        snprintf(ways[child].text, sizeof ways[child].text, "%s", network ? network : "");
    }
    if (ways && !network)
        weft_addresses_find_ways(ways, branch->nchildren);
    return ways;
}

static int child_start(struct weft_branch *branch, int child, struct weft_start *start,
                       const struct weft_signals *signals) {
    struct weft_branch_child *it = &branch->child[child];
    char *text;
    size_t bytes;
    start->host = it->first;
    start->below = it->count;
    int error = weft_tls_derive(start->key, branch->secret, "weft-psk-v1", (uint32_t)it->first);
    if (error)
        return error; /* logged */
    if (start->naddresses == 0)
        return weft_failure_say(-EADDRNOTAVAIL,
                                "no network interface of this host has an address at "
                                "which other hosts can call back");
    if (weft_start_write(start, &text, &bytes) != 0)
        return weft_failure_say(-ENOMEM, "malloc, for the start text of host %s", it->name);
    return weft_remote_start(&it->remote, signals, text, bytes);
}

int weft_branch_start(struct weft_branch *branch, struct weft_start *start,
                      const struct weft_branch_plan *plan, const struct weft_signals *signals,
                      const char *network) {
    static struct weft_addresses addresses;
    const char **called = calloc((size_t)plan->nhosts, sizeof *called);
    struct weft_addresses_way *ways = ways_find(branch, network);
    int error = called && ways ? listener_open(branch)
                               : weft_failure_say(-ENOMEM, "malloc, for %d hosts", plan->nhosts);
    for (int host = 0; called && host < plan->nhosts; host++)
        called[host] = plan->host[host].called;
    start->port = error ? 0 : weft_tls_listener_port(branch->listener);
    branch->silence_s = start->silence_ms / 1e3;
    for (int child = 0; child < branch->nchildren && error == 0; child++) {
        addresses_find(&addresses, branch, child, ways);
        start->naddresses = addresses.count;
        for (int i = 0; i < addresses.count; i++)
            start->address[i] = addresses.text[i];
        start->called = called + branch->child[child].first;
        error = child_start(branch, child, start, signals);
    }
    explicit_bzero(start->key, sizeof start->key);
    free(called);
    free(ways);
    return error;
}

void weft_branch_shut(struct weft_branch *branch) {
    weft_tls_listener_close(branch->listener);
    branch->listener = NULL;
    explicit_bzero(branch->secret, sizeof branch->secret);
}

/* Explains why a child's process ended before it connected. */
static void start_judge(const struct weft_remote *remote, char *why, size_t bytes) {
    int status =
        WIFSIGNALED(remote->wait) ? 128 + WTERMSIG(remote->wait) : WEXITSTATUS(remote->wait);
    if (remote->here)
        snprintf(why, bytes, "its oshrun has ended with status %d", status);
    else if (status == STATUS_NOT_FOUND)
        snprintf(why, bytes,
                 "it has no %s, or this host has no '%s' (Weft must have the same path on "
                 "all hosts)",
                 weft_remote_program(), weft_env.ssh);
    else if (status == STATUS_OF_SSH)
        snprintf(why, bytes, "'%s %s' cannot reach it", weft_env.ssh, remote->name);
    else
        snprintf(why, bytes, "'%s %s %s --daemon' has ended with status %d", weft_env.ssh,
                 remote->name, weft_remote_program(), status);
}

void weft_branch_reap(struct weft_branch *branch) {
    char why[WHY_BYTES];
    for (int child = 0; child < branch->nchildren; child++) {
        struct weft_branch_child *it = &branch->child[child];
        bool ran = it->remote.process > 0;
        if (!ran || !weft_remote_reap(&it->remote) || it->came)
            continue;
        start_judge(&it->remote, why, sizeof why);
        child_lose(branch, child, why);
    }
}

/* --- Frames ----------------------------------------------------------------------------------- */

void weft_branch_route(struct weft_branch *branch, const struct weft_frame *frame,
                       const void *payload) {
    int one = frame->host >= 0 ? weft_branch_child_of(branch, frame->host) : -1;
    for (int child = 0; child < branch->nchildren; child++) {
        const struct weft_branch_child *it = &branch->child[child];
        bool alone = it->count == 1 && frame->host == WEFT_TREE_ALL_BUT(it->first);
        if (frame->host >= 0 ? child == one : !alone)
            weft_host_link_send(&branch->child[child].link, frame, payload);
    }
}

static void child_judge(struct weft_branch *branch, int child) {
    const struct weft_host_link *link = &branch->child[child].link;
    char why[WHY_BYTES] = "its connection has ended";
    if (!link->frames || !link->end)
        return;
    if (link->end == WEFT_HOST_LINK_SILENT)
        snprintf(why, sizeof why, "it has sent nothing for %g s", branch->silence_s);
    else if (link->end == WEFT_HOST_LINK_WRONG)
        snprintf(why, sizeof why, "%s", link->why);
    child_lose(branch, child, why);
}

/* Only a relay loses hosts, and only hosts of its own range. */
static bool lost_is_sound(const struct weft_branch_child *it, const struct weft_frame *frame) {
    return it->count > 1 && frame->value >= 1 &&
           frame->value <= it->first + it->count - frame->host;
}

static void child_hear(struct weft_branch *branch, int child) {
    struct weft_branch_child *it = &branch->child[child];
    struct weft_frame frame;
    const void *payload;
    char why[80];
    while (weft_host_link_next(&it->link, &frame, &payload)) {
        if (weft_branch_child_of(branch, frame.host) == child &&
            (frame.kind != WEFT_TREE_LOST || lost_is_sound(it, &frame)) &&
            branch->above->hear(branch->owner, child, &frame, payload))
            continue;
        snprintf(why, sizeof why, "it has sent an invalid frame (kind %u, %u bytes)", frame.kind,
                 frame.bytes);
        child_lose(branch, child, why);
    }
    child_judge(branch, child);
}

/* --- The loop -------------------------------------------------------------------------------- */

int weft_branch_count(const struct weft_branch *branch) {
    return POLL_CHILDREN + branch->nchildren * POLLS_A_CHILD;
}

void weft_branch_polls(const struct weft_branch *branch, struct pollfd *polls) {
    polls[POLL_LISTENER] = (struct pollfd){
        .fd = branch->listener ? weft_tls_listener_descriptor(branch->listener) : -1,
        .events = POLLIN};
    for (int child = 0; child < branch->nchildren; child++) {
        const struct weft_branch_child *it = &branch->child[child];
        struct pollfd *own = &polls[POLL_CHILDREN + child * POLLS_A_CHILD];
        bool feeding = it->remote.fed < it->remote.bytes;
        own[POLL_FRAMES] = weft_host_link_poll(&it->link);
        own[POLL_SAYS] = (struct pollfd){.fd = it->remote.says, .events = POLLIN};
        own[POLL_FEED] = (struct pollfd){.fd = feeding ? it->remote.input : -1, .events = POLLOUT};
    }
}

/* Also reads from children that have just connected: their first frames may have arrived with the
 * handshake. A link that fails while a frame is sent is closed here, not there, because the payload
 * may be in the link's own receive queue. */
void weft_branch_serve(struct weft_branch *branch, const struct pollfd *polls) {
    const struct pollfd *children = &polls[POLL_CHILDREN];
    for (int child = 0; child < branch->nchildren; child++) {
        const struct pollfd *own = &children[child * POLLS_A_CHILD];
        if (own[POLL_SAYS].revents)
            weft_remote_hear(&branch->child[child].remote);
        if (own[POLL_FEED].revents)
            weft_remote_feed(&branch->child[child].remote);
    }
    if (branch->listener && polls[POLL_LISTENER].revents)
        weft_tls_listener_turn(branch->listener);
    for (int child = 0; child < branch->nchildren; child++) {
        const struct pollfd *own = &children[child * POLLS_A_CHILD];
        struct weft_host_link *link = &branch->child[child].link;
        weft_host_link_turn(link, own[POLL_FRAMES].revents);
        if (own[POLL_FRAMES].revents || own[POLL_FRAMES].fd < 0 ||
            link->end == WEFT_HOST_LINK_WRONG)
            child_hear(branch, child);
    }
}

void weft_branch_turn(struct weft_branch *branch) {
    for (int child = 0; child < branch->nchildren; child++) {
        struct weft_branch_child *it = &branch->child[child];
        if (!it->came)
            weft_remote_hint(&it->remote, (int64_t)(weft_env.start_timeout * 1000));
        weft_host_link_turn(&it->link, 0);
        child_judge(branch, child);
    }
}

/* A daemon ends when its input is closed, and its ssh after it. */
void weft_branch_close(struct weft_branch *branch, int patience_ms, bool hear) {
    uint64_t begin_ns = weft_clock_ns();
    weft_branch_shut(branch);
    for (int child = 0; child < branch->nchildren; child++) {
        struct weft_branch_child *it = &branch->child[child];
        it->came = it->link.frames != NULL; /* still connected */
        weft_host_link_close(&it->link);
        weft_remote_leave(&it->remote);
    }
    for (int child = 0; child < branch->nchildren; child++) {
        struct weft_branch_child *it = &branch->child[child];
        int limit_ms = it->came || it->remote.here ? patience_ms : LOST_MS;
        while (!weft_remote_reap(&it->remote) &&
               weft_clock_ns() < begin_ns + (uint64_t)limit_ms * WEFT_NS_PER_MS) {
            if (hear) /* otherwise every child would report a lost launcher */
                weft_remote_hear(&it->remote);
            weft_clock_sleep_ms(2);
        }
        weft_remote_kill(&it->remote);
        if (hear)
            weft_remote_hear(&it->remote);
    }
}
