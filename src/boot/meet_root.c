/* SPDX-License-Identifier: BSD-3-Clause */
/* The root's part of the meeting. A peer must belong to this user. It sends one message, with
 * its PE number and the job's key, and waits for the control page. Until all PEs have arrived
 * nothing here blocks on a single peer.
 *
 * PE 0 waits for the PEs of all hosts. It opens its port once it knows that some run elsewhere, or
 * after a moment if it does not know. The root of another host waits for the PEs of its host. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/version.h>
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/machine.h"
#include "boot/agent.h"
#include "boot/attachment.h"
#include "boot/callers.h"
#include "boot/hangup.h"
#include "boot/hub.h"
#include "boot/listener.h"
#include "boot/meet.h"
#include "boot/rendezvous.h"

enum { MANY_PEERS = 512, MESSAGE_MAX = 4096, MOMENT_MS = 200 };

struct acceptor {
    const struct weft_identity *self;
    struct weft_listener listener;
    struct weft_connection *pe;   /* by number; socket -1: it has not come; unused for this PE */
    bool *came;                   /* by number, from any host */
    struct weft_places places;    /* of another host's root: known from the beginning on; PE 0 finds
                                     out */
    struct weft_callers *callers; /* PE 0's: from other hosts */
    struct weft_host_link *link;  /* to PE 0, from another host */
    int expected;                 /* here, or from wherever by PE 0 */
    int arrived, called, failed;  /* here; from elsewhere */
    struct pollfd *polls;
    cpu_set_t processors; /* of all PEs */
    uint64_t begin_ns;
    bool hinted;
};

/* --- Refusing -------------------------------------------------------------------------------- */

/* Sends the reason to the peer, and closes its socket. */
static void peer_refuse(const struct weft_connection *peer, const char *why) {
    struct weft_wire_header header = {.kind = WEFT_WIRE_REFUSAL};
    struct weft_wire_body body = {.payload = why, .bytes = strlen(why)};
    weft_wire_send(peer->socket, &header, &body, MSG_DONTWAIT);
    close(peer->socket);
}

/* The job cannot start: sends the reason to all that have arrived, and to `peer`, which has no
 * place among them, if it is not NULL. Returns an error. */
__attribute__((format(printf, 3, 4))) static int give_up(struct acceptor *acceptor,
                                                         const struct weft_connection *peer,
                                                         const char *format, ...) {
    char why[WEFT_REFUSAL_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    weft_log("%s", why);
    if (peer)
        peer_refuse(peer, why);
    for (int pe = 0; pe < acceptor->self->npes; pe++) {
        if (acceptor->pe[pe].socket >= 0)
            peer_refuse(&acceptor->pe[pe], why);
        acceptor->pe[pe].socket = -1;
    }
    weft_callers_refuse(acceptor->callers, why);
    if (acceptor->link)
        weft_arrive_give_up(acceptor->link, why);
    return -EPROTO;
}

/* --- Hearing a peer ------------------------------------------------------------------------- */

/* Returns whether that PE can run on this host. */
static bool pe_is_expected(const struct acceptor *acceptor, int pe) {
    bool is = pe >= 1 && pe < acceptor->self->npes && pe != acceptor->self->pe;
    const int32_t *host_of = acceptor->places.host_of;
    return is && (!host_of || host_of[pe] == acceptor->places.here);
}

static int peer_admit(struct acceptor *acceptor, const struct weft_hello *hello,
                      const struct weft_connection *peer) {
    const struct weft_identity *self = acceptor->self;
    char why[WEFT_REFUSAL_BYTES];
    if (hello->npes != self->npes || !pe_is_expected(acceptor, hello->pe))
        return give_up(acceptor, peer, "process %d wants to be PE %d of %d in a job of %d PEs",
                       peer->pid, hello->pe, hello->npes, self->npes);
    struct weft_connection *place = &acceptor->pe[hello->pe];
    if (acceptor->came[hello->pe]) {
        if (place->socket >= 0)
            snprintf(why, sizeof why, "process %d is PE %d already", place->pid, hello->pe);
        else
            snprintf(why, sizeof why, "a process on another host is PE %d already", hello->pe);
        peer_refuse(peer, why);
        return 0;
    }
    *place = *peer;
    acceptor->came[hello->pe] = true;
    acceptor->arrived++;
    CPU_OR(&acceptor->processors, &acceptor->processors, &hello->processors);
    return 0;
}

static int hello_judge(struct acceptor *acceptor, const struct weft_hello *hello, size_t bytes,
                       const struct weft_connection *peer) {
    static const size_t fixed = offsetof(struct weft_hello, version) + sizeof hello->version;
    if (bytes < fixed || hello->magic != WEFT_HELLO_MAGIC) {
        close(peer->socket); /* it belongs to another job */
        return 0;
    }
    if (bytes != sizeof *hello ||
        strncmp(hello->version, WEFT_VERSION_STRING, sizeof hello->version))
        return give_up(acceptor, peer,
                       "process %d runs Weft %.15s and PE %d (pid %d) %s: install the same version "
                       "everywhere",
                       peer->pid, hello->version, acceptor->self->pe, (int)getpid(),
                       WEFT_VERSION_STRING);
    if (memcmp(hello->key, acceptor->self->job_key.secret, sizeof hello->key) != 0) {
        peer_refuse(peer, "");
        return 0;
    }
    return peer_admit(acceptor, hello, peer);
}

static bool hello_hear(void *owner, int socket, pid_t pid) {
    struct acceptor *acceptor = owner;
    union {
        struct weft_hello hello;
        unsigned char bytes[MESSAGE_MAX];
    } payload = {0};
    struct weft_wire_message message = {0};
    struct weft_connection peer = {.socket = socket, .pid = pid};
    ssize_t bytes = weft_wire_receive(socket, &message, &payload, sizeof payload, MSG_DONTWAIT);
    if (bytes == -EAGAIN)
        return false;
    if (bytes >= 0)
        weft_wire_close(&message);
    if (bytes < 0 || message.header.kind != WEFT_WIRE_HELLO || acceptor->failed)
        close(socket);
    else
        acceptor->failed = hello_judge(acceptor, &payload.hello, (size_t)bytes, &peer);
    return true;
}

/* --- Waiting --------------------------------------------------------------------------------- */

/* Writes the missing PEs, such as "1, 3 and 5 more". */
static void missing_list(const struct acceptor *acceptor, char *text, size_t bytes) {
    enum { NAMED = 8 };
    int missing = 0;
    size_t at = 0;
    for (int pe = 1; pe < acceptor->self->npes; pe++)
        if (pe_is_expected(acceptor, pe) && !acceptor->came[pe] && missing++ < NAMED)
            at += (size_t)snprintf(text + at, bytes - at, "%s%d", missing > 1 ? ", " : "", pe);
    if (missing > NAMED)
        snprintf(text + at, bytes - at, " and %d more", missing - NAMED);
}

static int acceptor_check_time(struct acceptor *acceptor) {
    char missing[128] = "";
    uint64_t waited_ms = (weft_clock_ns() - acceptor->begin_ns) / WEFT_NS_PER_MS;
    if (waited_ms < WEFT_MEET_HINT_MS || (acceptor->hinted && waited_ms < WEFT_MEET_LIMIT_MS))
        return 0;
    missing_list(acceptor, missing, sizeof missing);
    if (waited_ms >= WEFT_MEET_LIMIT_MS) {
        give_up(acceptor, NULL, "PE %s of %d has not connected after %d s", missing,
                acceptor->self->npes, WEFT_MEET_LIMIT_MS / 1000);
        return -ETIMEDOUT;
    }
    if (*missing) {
        weft_source_hint(acceptor->self, missing);
        weft_callers_hint(acceptor->callers);
    }
    acceptor->hinted = true;
    return 0;
}

/* Peers send nothing more, so a socket that can be read has ended. */
static int acceptor_check_peers(struct acceptor *acceptor) {
    const struct pollfd *line = acceptor->polls;
    for (int pe = 1; pe < acceptor->self->npes; pe++)
        if (acceptor->pe[pe].socket >= 0 && line++->revents)
            return give_up(acceptor, NULL, "PE %d (pid %d) has ended before all PEs had arrived",
                           pe, acceptor->pe[pe].pid);
    return 0;
}

/* Listens for PEs of other hosts, if there are some or may be. */
static int port_open(struct acceptor *acceptor) {
    const struct weft_identity *self = acceptor->self;
    bool known = self->here > 0, elsewhere = known && self->here < self->npes;
    uint64_t waited_ms = (weft_clock_ns() - acceptor->begin_ns) / WEFT_NS_PER_MS;
    if (!acceptor->callers || (known && !elsewhere) || (!known && waited_ms < MOMENT_MS))
        return 0;
    int error = weft_callers_listen(acceptor->callers);
    return elsewhere ? error : 0;
}

static int hosts_turn(struct acceptor *acceptor, const struct pollfd *polls) {
    char why[WEFT_REFUSAL_BYTES];
    if (acceptor->link && weft_arrive_refused(acceptor->link, why))
        return give_up(acceptor, NULL, "%s", why);
    if (!acceptor->callers)
        return 0;
    int called = weft_callers_turn(acceptor->callers, polls, why);
    if (called < 0)
        return give_up(acceptor, NULL, "%s", why);
    acceptor->called = called;
    return port_open(acceptor);
}

/* Waits once for the end of a peer, or for a connection. */
static int acceptor_turn(struct acceptor *acceptor) {
    nfds_t connected = 0;
    for (int pe = 1; pe < acceptor->self->npes; pe++)
        if (acceptor->pe[pe].socket >= 0)
            acceptor->polls[connected++] =
                (struct pollfd){.fd = acceptor->pe[pe].socket, .events = POLLIN};
    struct pollfd *afar = acceptor->polls + connected;
    nfds_t own = connected;
    if (acceptor->callers)
        own += (nfds_t)weft_callers_polls(acceptor->callers, afar);
    if (acceptor->link)
        acceptor->polls[own++] = weft_host_link_poll(acceptor->link);
    weft_listener_poll(&acceptor->listener, acceptor->polls, own,
                       acceptor->callers || acceptor->link ? MOMENT_MS : WEFT_MEET_HINT_MS);
    int error = acceptor_check_peers(acceptor);
    error = error ? error : hosts_turn(acceptor, afar);
    if (error)
        return error;
    weft_listener_turn(&acceptor->listener, acceptor->polls + own);
    return acceptor->failed ? acceptor->failed : acceptor_check_time(acceptor);
}

/* --- All are here ---------------------------------------------------------------------------- */

/* Returns the connection to the first PE of another host, or NULL: hosts other than PE 0's have no
 * connections to each other. */
static struct weft_host_link *link_to(const struct acceptor *acceptor, int host) {
    if (!acceptor->callers)
        return host == 0 ? acceptor->link : NULL;
    return weft_callers_link(acceptor->callers, weft_places_first(&acceptor->places, host));
}

/* Collects the connections to other hosts. Returns their number. */
static int connections_list(const struct acceptor *acceptor, int *sockets) {
    int count = 0;
    for (int host = 0; host < acceptor->places.nhosts; host++) {
        const struct weft_host_link *link = link_to(acceptor, host);
        if (link && link->frames)
            sockets[count++] = weft_frames_socket(link->frames);
    }
    return count;
}

/* Sends the page and the connections to other hosts to each peer. If a peer has ended meanwhile the
 * job starts all the same: the hub finds its socket closed, and names it. */
static int peers_welcome(struct acceptor *acceptor, int page) {
    int connections[acceptor->places.nhosts], count = connections_list(acceptor, connections);
    struct weft_wire_header header = {.kind = WEFT_WIRE_WELCOME, .count = (uint32_t)count};
    struct weft_wire_body body = {.fds = &page, .nfds = 1};
    for (int pe = 1; pe < acceptor->self->npes; pe++) {
        int socket = acceptor->pe[pe].socket;
        if (socket < 0)
            continue;
        int error = weft_wire_send(socket, &header, &body, 0);
        error = error ? error : weft_hangup_send(socket, connections, count);
        if (error && error != -EPIPE && error != -ECONNRESET) {
            weft_log("cannot welcome PE %d (pid %d; sendmsg): %s%s", pe, acceptor->pe[pe].pid,
                     strerror(-error), weft_remedy(error).text);
            return error;
        }
    }
    return 0;
}

/* Connects this PE to the hub, which takes over the sockets of all peers. */
static int acceptor_open_hub(struct acceptor *acceptor, struct weft_attachment *attachment,
                             struct weft_hub **hub) {
    int npes = acceptor->self->npes, own[2], sockets[npes];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, own) < 0)
        return -errno;
    own[0] = weft_descriptor_keep(own[0]);
    own[1] = weft_descriptor_keep(own[1]);
    for (int pe = 0; pe < npes; pe++) {
        sockets[pe] = weft_descriptor_keep(acceptor->pe[pe].socket);
        acceptor->pe[pe].socket = -1; /* the hub's now */
    }
    sockets[acceptor->self->pe] = own[0];
    int error = weft_hub_open(hub, sockets, npes);
    attachment->hub = own[1];
    return error;
}

/* Collects the connections that the agent takes over: PE 0's to the first PE of each host, and
 * those to other PEs, which are about to close; on another host, the one to PE 0. */
static int setup_make(struct acceptor *acceptor, struct weft_agent_setup *setup) {
    const struct weft_places *places = &acceptor->places;
    setup->link = calloc((size_t)places->nhosts, sizeof *setup->link);
    setup->parting = calloc((size_t)acceptor->self->npes, sizeof *setup->parting);
    if (!setup->link || !setup->parting)
        return -ENOMEM;
    if (acceptor->link) {
        setup->link[0] = *acceptor->link;
        *acceptor->link = (struct weft_host_link){.frames = NULL};
    }
    for (int pe = 1; acceptor->callers && places->nhosts > 1 && pe < acceptor->self->npes; pe++) {
        struct weft_host_link *link = weft_callers_link(acceptor->callers, pe);
        if (pe == weft_places_first(places, places->host_of[pe]))
            setup->link[places->host_of[pe]] = *link;
        else if (link->frames)
            setup->parting[setup->nparting++] = *link;
        else
            continue;
        *link = (struct weft_host_link){.frames = NULL};
    }
    return 0;
}

static int page_make(struct acceptor *acceptor, struct weft_attachment *attachment, int *page) {
    const struct weft_places *places = &acceptor->places;
    int npes = acceptor->self->npes, granted = weft_machine_quota();
    int error = weft_control_create(npes, places->nhosts, &attachment->control, page);
    if (error) {
        weft_log("cannot make the control page (memfd_create): %s%s", strerror(-error),
                 weft_remedy(error).text);
        return error;
    }
    int processors = CPU_COUNT(&acceptor->processors);
    attachment->control->cores = granted < processors ? granted : processors;
    for (int pe = 1; pe < npes; pe++) { /* to name a PE that dies before it has written its pid */
        int pid = acceptor->pe[pe].pid;
        if (acceptor->callers && !pid)
            pid = weft_callers_pid(acceptor->callers, pe);
        atomic_store(&attachment->control->pe[pe].pid, pid);
    }
    atomic_store(&attachment->control->pe[acceptor->self->pe].pid, (int32_t)getpid());
    if (places->nhosts == 1) {
        weft_hosts_set_one(npes);
        return 0;
    }
    struct weft_hosts_given given = {.npes = npes,
                                     .nhosts = places->nhosts,
                                     .here = places->here,
                                     .host_of = places->host_of,
                                     .host = places->host,
                                     .network = &places->network};
    weft_control_write_hosts(attachment->control, &given);
    return weft_control_read_hosts(attachment->control, npes);
}

static int acceptor_begin_job(struct acceptor *acceptor, struct weft_attachment *attachment) {
    struct weft_agent_setup setup = {.hub = NULL};
    int page, error = page_make(acceptor, attachment, &page);
    if (error)
        return error;
    error = peers_welcome(acceptor, page);
    close(page);
    if (error == 0 && (error = acceptor_open_hub(acceptor, attachment, &setup.hub)) != 0)
        weft_log("cannot make the hub (socketpair): %s%s", strerror(-error),
                 weft_remedy(error).text);
    if (error)
        return error;
    error = setup_make(acceptor, &setup);
    if (error)
        weft_log("no memory for connections to %d hosts", acceptor->places.nhosts);
    return error ? error : weft_agent_start(&setup); /* which serves the hub from now on */
}

/* --- The whole ------------------------------------------------------------------------------- */

static int acceptor_open(struct acceptor *acceptor) {
    const struct weft_identity *self = acceptor->self;
    size_t npes = (size_t)self->npes;
    acceptor->begin_ns = weft_clock_ns();
    weft_machine_processors(&acceptor->processors);
    if (npes > MANY_PEERS)
        weft_machine_raise_descriptors();
    acceptor->pe = calloc(npes, sizeof *acceptor->pe);
    acceptor->came = calloc(npes, sizeof *acceptor->came);
    acceptor->polls = calloc(WEFT_LISTENER_POLLS + 2 * npes + 1, sizeof *acceptor->polls);
    for (size_t pe = 0; acceptor->pe && pe < npes; pe++)
        acceptor->pe[pe].socket = -1;
    int error = acceptor->pe && acceptor->came && acceptor->polls ? 0 : -ENOMEM;
    if (error == 0 && !acceptor->link && self->job_key.host)
        error = weft_callers_open(&acceptor->callers, self, acceptor->came);
    if (error == 0)
        error =
            weft_listener_open(&acceptor->listener, weft_rendezvous_listen(self->job_key.secret),
                               hello_hear, acceptor);
    if (error)
        weft_log("cannot wait for the other PEs (socket, listen): %s%s", strerror(-error),
                 weft_remedy(error).text);
    return error ? error : port_open(acceptor);
}

static void acceptor_close(struct acceptor *acceptor) {
    weft_listener_close(&acceptor->listener);
    for (int pe = 0; acceptor->pe && pe < acceptor->self->npes; pe++)
        if (acceptor->pe[pe].socket >= 0)
            close(acceptor->pe[pe].socket);
    weft_callers_close(acceptor->callers);
    if (!acceptor->link)
        weft_places_free(&acceptor->places);
    free(acceptor->pe);
    free(acceptor->came);
    free(acceptor->polls);
}

/* All PEs have arrived: PE 0 sends the host of each PE to all, and waits until all hosts have met.
 */
static int acceptor_place(struct acceptor *acceptor) {
    char why[WEFT_REFUSAL_BYTES];
    if (!acceptor->callers)
        return 0;
    int error = weft_callers_place(acceptor->callers, &acceptor->places, why);
    if (error)
        return give_up(acceptor, NULL, "%s", why);
    while (error == 0 && !weft_callers_are_ready(acceptor->callers))
        error = acceptor_turn(acceptor);
    return error;
}

int weft_meet_as_root(const struct weft_identity *self, struct weft_attachment *attachment,
                      const struct weft_places *places, struct weft_host_link *link) {
    struct acceptor acceptor = {.self = self,
                                .link = link,
                                .places = {.nhosts = 1},
                                .expected = self->npes - 1,
                                .listener.listening = -1};
    if (places) {
        acceptor.places = *places;
        acceptor.expected = -1;
        for (int pe = 0; pe < self->npes; pe++)
            acceptor.expected += places->host_of[pe] == places->here;
    }
    int error = acceptor_open(&acceptor);
    while (error == 0 && acceptor.arrived + acceptor.called < acceptor.expected)
        error = acceptor_turn(&acceptor);
    error = error ? error : acceptor_place(&acceptor);
    if (error == 0 && link)
        weft_arrive_say(link, WEFT_ARRIVAL_READY);
    if (error == 0)
        error = acceptor_begin_job(&acceptor, attachment);
    acceptor_close(&acceptor);
    return error;
}
