/* SPDX-License-Identifier: BSD-3-Clause */
/* Silence is counted in turns of the calling thread, and a turn counts for little more than it
 * should have taken. If this process itself was stopped, it thus first takes the messages that
 * arrived meanwhile.
 *
 * A probe is a connection that is begun and given up. Each quarter of the limit has a new probe,
 * because the kernel repeats a lost connection request only after seconds. */
#include "far/probe.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/env.h"
#include "boot/end.h"
#include "job/job.h"
#include "far/message.h"

enum {
    TURN_MS = 100,
    TURN_MS_MAX = 250,
    MARGIN_MS = 250, /* beyond the limit, so that a dead host is found dead first */
    PROBES = 4,      /* within the limit */
};

/* The path to another host. */
struct path {
    uint64_t silent_ns,
        dead_ns; /* how long no message was acknowledged, and how long a channel has been dead */
    uint64_t probed_ns;   /* the silence when the last probe began */
    uint64_t reported_ns; /* when the cut was last reported */
    int probe;            /* a socket, or -1 */
    int waiting;          /* a PE with unacknowledged messages, or -1 */
    bool moves, dead;     /* acknowledged a message in this turn; has a dead channel */
};

static struct {
    int port; /* the bound socket, or -1 */
    weft_probe_address mine;
    const weft_probe_address *(*address_of)(int pe);
    struct path *path; /* by host; NULL if no path is watched */
    uint64_t turn_ns;
    uint64_t limit_ns;
} paths = {.port = -1};

static socklen_t address_bytes(const weft_probe_address *address) {
    return address->sin6_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof *address;
}

static bool address_is_set(const weft_probe_address *address) {
    return address->sin6_family == AF_INET || address->sin6_family == AF_INET6;
}

/* --- Probes ---------------------------------------------------------------------------------- */

static void probe_end(struct path *path) {
    weft_descriptor_close(path->probe);
    path->probe = -1;
    path->probed_ns = path->silent_ns;
}

/* A connection that another program accepts is an answer, too. */
static bool error_is_answer(int error) {
    return error == 0 || error == ECONNREFUSED || error == ECONNRESET;
}

/* Begins a probe from the address that messages use, so that it takes their path. Returns whether
 * it was answered at once. */
static bool probe_begin(struct path *path) {
    weft_probe_address from = paths.mine, to = *paths.address_of(path->waiting);
    probe_end(path);
    if (!address_is_set(&to) || from.sin6_family != to.sin6_family)
        return false;
    from.sin6_port = 0;
    if (to.sin6_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&to.sin6_addr))
        to.sin6_scope_id = from.sin6_scope_id;
    path->probe =
        weft_descriptor_keep(socket(to.sin6_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (path->probe < 0 || bind(path->probe, (struct sockaddr *)&from, address_bytes(&from)) != 0)
        return false;
    return error_is_answer(connect(path->probe, (struct sockaddr *)&to, address_bytes(&to)) ? errno
                                                                                            : 0);
}

static bool probe_is_answered(const struct path *path) {
    struct pollfd poll_it = {.fd = path->probe, .events = POLLOUT};
    int error = 0;
    socklen_t bytes = sizeof error;
    return weft_descriptor_is_ours(path->probe) && poll(&poll_it, 1, 0) > 0 &&
           getsockopt(path->probe, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 &&
           error_is_answer(error);
}

/* --- Paths ----------------------------------------------------------------------------------- */

/* Notes whether messages to a PE were acknowledged since the last turn. After a quarter of the
 * limit asks for an acknowledgment, since perhaps no thread has. */
static void channel_note(struct weft_channel *channel) {
    struct path *path = &paths.path[weft_boot_host(channel->pe)];
    bool moves = channel->acknowledged != channel->watched;
    channel->watched = channel->acknowledged;
    path->moves |= moves;
    path->dead |= channel->error != 0;
    if (moves || channel->error || channel->sent == channel->acknowledged)
        return;
    path->waiting = channel->pe;
    if (path->silent_ns >= paths.limit_ns / PROBES)
        weft_channel_ask(channel, true);
}

/* Returns whether the path counts as cut. Silence alone proves nothing if no probe is possible. */
static bool path_is_cut(const struct path *path) {
    uint64_t long_ns = paths.limit_ns + MARGIN_MS * WEFT_NS_PER_MS;
    bool probed = path->waiting >= 0 && path->probe >= 0;
    return (probed && path->silent_ns > long_ns) || path->dead_ns > long_ns;
}

static void path_judge(int host, uint64_t spent_ns) {
    struct path *path = &paths.path[host];
    bool answered = path->moves || path->waiting < 0 || probe_is_answered(path);
    path->dead_ns = path->dead ? path->dead_ns + spent_ns : 0;
    path->silent_ns += spent_ns;
    if (!answered && path->silent_ns >= path->probed_ns + paths.limit_ns / PROBES)
        answered = probe_begin(path);
    if (answered) {
        path->silent_ns = 0;
        probe_end(path);
    }
    if (!path_is_cut(path) || paths.turn_ns < path->reported_ns + paths.limit_ns / PROBES)
        return;
    path->reported_ns = paths.turn_ns;
    weft_boot_tell_cut(host);
}

void weft_probes_look(void) {
    uint64_t now_ns = paths.path ? weft_clock_ns() : 0, spent_ns = now_ns - paths.turn_ns;
    if (!now_ns || spent_ns < TURN_MS * WEFT_NS_PER_MS || weft_job_aborted())
        return;
    paths.turn_ns = now_ns;
    spent_ns = spent_ns < TURN_MS_MAX * WEFT_NS_PER_MS ? spent_ns : TURN_MS_MAX * WEFT_NS_PER_MS;
    for (int host = 0; host < weft_boot_nhosts(); host++) {
        paths.path[host].waiting = -1;
        paths.path[host].moves = paths.path[host].dead = false;
    }
    weft_messages_each_channel(channel_note);
    for (int host = 0; host < weft_boot_nhosts(); host++)
        if (host != weft_boot_host(weft_job.pe))
            path_judge(host, spent_ns);
}

/* --- Opening and closing --------------------------------------------------------------------- */

void weft_probes_open(weft_probe_address *mine) {
    struct sockaddr_storage where = {0};
    const struct weft_engine *engine = weft_channels.engine;
    socklen_t bytes = sizeof *mine;
    *mine = (weft_probe_address){0};
    if (weft_boot_nhosts() == 1 || !engine->where || engine->where(weft_channels.end, &where) != 0)
        return;
    memcpy(mine, &where, sizeof *mine);
    if (!address_is_set(mine))
        return;
    mine->sin6_port = 0;
    paths.port = weft_descriptor_keep(socket(mine->sin6_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (paths.port < 0 || bind(paths.port, (struct sockaddr *)mine, address_bytes(mine)) != 0 ||
        getsockname(paths.port, (struct sockaddr *)mine, &bytes) != 0)
        mine->sin6_family = 0;
    paths.mine = *mine;
}

int weft_probes_start(const weft_probe_address *(*address_of)(int pe)) {
    int nhosts = weft_boot_nhosts();
    paths.address_of = address_of;
    if (!address_is_set(&paths.mine))
        paths.mine = *address_of(weft_job.pe);
    paths.turn_ns = weft_clock_ns();
    paths.limit_ns = (uint64_t)(weft_env.host_timeout * 1e9);
    paths.path = nhosts > 1 ? calloc((size_t)nhosts, sizeof *paths.path) : NULL;
    if (nhosts > 1 && !paths.path) {
        weft_log("no memory to watch the paths to %d hosts", nhosts);
        return -ENOMEM;
    }
    for (int host = 0; paths.path && host < nhosts; host++)
        paths.path[host].probe = -1;
    return 0;
}

void weft_probes_close(void) {
    for (int host = 0; paths.path && host < weft_boot_nhosts(); host++)
        probe_end(&paths.path[host]);
    free(paths.path);
    paths.path = NULL;
    weft_descriptor_close(paths.port);
    paths.port = -1;
}
