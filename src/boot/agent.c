/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent sleeps in poll. A PE's write to the control page does not end the poll, so if there are
 * other hosts the agent reads the page every 20 ms: they hear of a death that much later.
 *
 * A PE whose socket closes is dead, except in two cases: it has finalized, or it is alive, has
 * closed only the socket, and no exchange waits for it. Guards detect deaths, too, but only of PEs
 * that have joined. */
#include "boot/agent.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "base/descriptor.h"
#include "base/futex.h"
#include "base/machine.h"
#include "base/thread.h"
#include "boot/alive.h"
#include "boot/attachment.h"
#include "boot/host_exchange.h"
#include "boot/hub.h"
#include "boot/pe_status.h"

enum {
    LOOK_MS = 20,
    LOOK_ALONE_MS = 100, /* where there are no other hosts */
    FINISH_MS = 300,
};

/* The connection to another host. */
struct host {
    struct weft_host_link link;
    bool said_bye, heard_bye;
    bool over; /* host_judge has seen the end of the link */
};

static struct {
    bool runs;
    int nhosts, here;
    struct host *host;              /* by number */
    struct weft_host_link *parting; /* connections that are being closed */
    int nparting;
    struct weft_hub *hub; /* NULL: the job is over */
    struct weft_pe_status *pe_status;
    struct weft_host_exchanges exchanges; /* PE 0's alone */
    bool told;                            /* other hosts know the cause of the end */
    int wake;                             /* an eventfd that ends the poll */
    _Atomic bool finishing;
    _Atomic uint32_t asked, answered; /* turns that other threads wait for */
} agent = {.wake = -1};

/* --- Saying ----------------------------------------------------------------------------------- */

/* Returns whether this is PE 0's agent, to which all others are connected. */
static bool is_middle(void) {
    return agent.here == 0;
}

/* The hosts to which this agent is connected: 0 only, or all except 0. */
static int hosts_first(void) {
    return is_middle() ? 1 : 0;
}

static int hosts_end(void) {
    return is_middle() ? agent.nhosts : 1;
}

static void say(const struct weft_frame *frame, const void *payload, int but) {
    for (int host = hosts_first(); host < hosts_end(); host++)
        if (host != but)
            weft_host_link_send(&agent.host[host].link, frame, payload);
}

static void say_pe_status(void *owner, const struct weft_frame *frame, const void *payload) {
    (void)owner;
    say(frame, payload, -1);
}

/* Once the job is over, sends the cause to the other hosts, and ends all exchanges. */
static void say_cause(void) {
    struct weft_cause cause = weft_control_cause(weft_attachment.control, weft_attachment.npes);
    if (cause.kind == WEFT_ABORT_NONE || agent.told)
        return;
    agent.told = true;
    struct weft_tree_cause told = weft_tree_cause_make(&cause);
    if (!weft_tree_cause_read(&cause, &told, sizeof told, weft_attachment.npes, agent.nhosts)) {
        cause = (struct weft_cause){.kind = WEFT_ABORT_ERROR, /* a PE has written over the page */
                                    .pe = weft_attachment.pe,
                                    .pid = getpid()};
        told = weft_tree_cause_make(&cause);
    }
    struct weft_frame frame = {.kind = WEFT_TREE_CAUSE, .bytes = sizeof told, .pe = -1};
    say(&frame, &told, -1);
    struct weft_hub *hub = agent.hub; /* a forked child must not find one that is being closed */
    agent.hub = NULL;
    weft_hub_close(hub);
    weft_host_exchanges_close(&agent.exchanges);
}

static void say_bye(struct host *it) {
    struct weft_frame frame = {.kind = WEFT_TREE_BYE, .pe = -1};
    if (!it->said_bye)
        weft_host_link_send(&it->link, &frame, NULL);
    it->said_bye = true;
}

/* --- Ends ------------------------------------------------------------------------------------- */

static void job_end(enum weft_end_kind kind, int pe, int detail) {
    struct weft_cause cause = {.kind = kind, .pe = pe, .detail = detail};
    weft_control_abort(weft_attachment.control, &cause);
}

static int pe_first_of(int host) {
    int pe = 0;
    while (weft_boot_host(pe) != host)
        pe++;
    return pe;
}

static bool pe_has_left(int pe) {
    return atomic_load(&weft_attachment.control->pe[pe].state) == WEFT_PE_LEFT;
}

static bool host_has_left(int host) {
    for (int pe = 0; pe < weft_attachment.npes; pe++)
        if (weft_boot_host(pe) == host && !pe_has_left(pe))
            return false;
    return true;
}

/* Ends the job if a link has ended without BYE, and PEs of the host have not finalized. */
static void host_judge(int host) {
    struct host *it = &agent.host[host];
    if (it->over || it->link.end == WEFT_HOST_LINK_LIVES)
        return;
    it->over = true;
    if (it->link.end == WEFT_HOST_LINK_WRONG)
        weft_log("the connection to host %s has failed: %s", weft_boot_host_name(host),
                 it->link.why);
    if (it->link.end == WEFT_HOST_LINK_CLOSED && !it->heard_bye && !pe_has_left(pe_first_of(host)))
        job_end(WEFT_ABORT_DIED, pe_first_of(host), 0);
    if (it->link.end != WEFT_HOST_LINK_CLOSED && !it->heard_bye && !host_has_left(host))
        job_end(WEFT_ABORT_HOST, -1, host);
}

/* Closes the links that are over. Called after say_cause: a host that was silent may hear again,
 * and must read the cause before the end of its link, which it would take for the death of a PE. */
static void links_close(void) {
    for (int host = hosts_first(); host < hosts_end(); host++)
        if (agent.host[host].over && agent.host[host].link.frames)
            weft_host_link_close(&agent.host[host].link);
}

/* Ends the job if an exchange waits for a host that has finalized. */
static void exchanges_judge(void) {
    weft_host_exchanges_judge(&agent.exchanges, weft_attachment.control);
    if (agent.hub)
        weft_hub_judge(agent.hub, weft_attachment.control);
    for (int host = hosts_first(); host < hosts_end(); host++) {
        bool gone = agent.host[host].over || agent.host[host].heard_bye;
        bool awaited = is_middle() ? weft_host_exchanges_await(&agent.exchanges, host)
                                   : agent.hub && weft_hub_is_pending(agent.hub);
        if (gone && awaited)
            job_end(WEFT_ABORT_DIED, pe_first_of(host), 0);
    }
}

/* --- Hearing ---------------------------------------------------------------------------------- */

static bool shared_hear(const void *payload, size_t bytes) {
    return !agent.hub || weft_hub_complete(agent.hub, payload, bytes) == 0; /* else the job ends */
}

static void share(void *owner, int host, const void *payload, size_t bytes) {
    struct weft_frame frame = {.kind = WEFT_TREE_SHARED, .bytes = (uint32_t)bytes, .pe = -1};
    (void)owner;
    if (host < 0)
        say(&frame, payload, -1);
    else if (host != agent.here)
        weft_host_link_send(&agent.host[host].link, &frame, payload);
    if ((host >= 0 && host != agent.here) || shared_hear(payload, bytes))
        return;
    weft_log("an exchange has ended on this host before other hosts gave to it; ending the job: a "
             "member may have called exit while a thread was in the exchange");
    job_end(WEFT_ABORT_ERROR, weft_attachment.pe, WEFT_STATUS_ERROR);
}

/* Called by PE 0's agent for what another host or its own gives to an exchange. */
static bool gave_hear(int host, const void *payload, size_t bytes) {
    return agent.told || weft_host_exchanges_give(&agent.exchanges, host, payload, bytes) == 0;
}

/* PE 0's agent forwards what a host reports of its own PEs. */
static bool pe_status_hear(int host, const struct weft_frame *frame, const void *payload) {
    if (weft_pe_status_hear(agent.pe_status, is_middle() ? host : -1, frame, payload))
        return false;
    if (is_middle())
        say(frame, payload, host);
    return true;
}

/* A PE reports that it cannot reach another host, which ends the job if that host is alive. If PE 0
 * has not heard of the host for WEFT_TREE_LIVES_MS, nothing is decided, even if this thread was
 * late: the host falls silent for good, or is heard again, and then the PE repeats its report. */
static bool cut_judge(const struct weft_cause *cut) {
    if (cut->detail == weft_boot_host(cut->pe))
        return false;
    const struct host *it = &agent.host[cut->detail];
    uint64_t silent_ns = weft_clock_ns() - it->link.heard_ns;
    if (cut->detail == agent.here || (!it->over && silent_ns < WEFT_TREE_LIVES_MS * WEFT_NS_PER_MS))
        job_end(WEFT_ABORT_CUT, cut->pe, cut->detail);
    return true;
}

/* Another host reports the cause of an end. */
static bool cause_hear(int host, const void *payload, size_t bytes) {
    struct weft_control *control = weft_attachment.control;
    struct weft_cause cause;
    if (!weft_tree_cause_read(&cause, payload, bytes, weft_attachment.npes, agent.nhosts))
        return false;
    bool known = is_middle() ? weft_boot_host(cause.pe) == host : !weft_boot_is_here(cause.pe);
    if (cause.pe >= 0 && known) {
        atomic_store(&control->pe[cause.pe].pid, cause.pid);
        atomic_store(&control->pe[cause.pe].state, cause.state);
    }
    if (cause.kind == WEFT_ABORT_CUT && is_middle())
        return cut_judge(&cause);
    job_end(cause.kind, cause.pe, cause.detail);
    return true;
}

static void cut_say(int pe, int host) {
    struct weft_cause cut = {.kind = WEFT_ABORT_CUT,
                             .pe = pe,
                             .pid = atomic_load(&weft_attachment.control->pe[pe].pid),
                             .detail = host,
                             .state = WEFT_PE_JOINED};
    struct weft_tree_cause told = weft_tree_cause_make(&cut);
    struct weft_frame frame = {.kind = WEFT_TREE_CAUSE, .bytes = sizeof told, .pe = -1};
    if (is_middle())
        cut_judge(&cut);
    else
        say(&frame, &told, -1);
}

/* Returns false if no agent sends such a frame. */
static bool frame_hear(int host, const struct weft_frame *frame, const void *payload) {
    switch (frame->kind) {
    case WEFT_TREE_GAVE:
        return is_middle() && gave_hear(host, payload, frame->bytes);
    case WEFT_TREE_SHARED:
        return !is_middle() && shared_hear(payload, frame->bytes);
    case WEFT_TREE_PE_STATUS:
    case WEFT_TREE_LONG_WAIT:
        return pe_status_hear(host, frame, payload);
    case WEFT_TREE_CAUSE:
        return cause_hear(host, payload, frame->bytes);
    case WEFT_TREE_BYE:
        agent.host[host].heard_bye = true;
        say_bye(&agent.host[host]);
        return true;
    default:
        return false;
    }
}

static void host_turn(int host, short revents) {
    struct weft_host_link *link = &agent.host[host].link;
    struct weft_frame frame;
    const void *payload;
    weft_host_link_turn(link, revents);
    while (weft_host_link_next(link, &frame, &payload))
        if (!frame_hear(host, &frame, payload))
            weft_host_link_refuse(link, "it has sent an invalid frame");
    host_judge(host);
}

/* --- A turn ----------------------------------------------------------------------------------- */

static void gather(void) {
    unsigned char *payload;
    size_t bytes;
    bool right = true;
    while (right && agent.hub && weft_hub_gather(agent.hub, &payload, &bytes)) {
        struct weft_frame frame = {.kind = WEFT_TREE_GAVE, .bytes = (uint32_t)bytes, .pe = -1};
        right = payload && (!is_middle() || gave_hear(agent.here, payload, bytes));
        if (right && !is_middle())
            say(&frame, payload, -1);
        free(payload);
    }
    if (right)
        return;
    weft_log("an exchange cannot go on: its members gave different sizes, or there is no memory%s",
             weft_remedy(-ENOMEM).text);
    job_end(WEFT_ABORT_ERROR, weft_attachment.pe, WEFT_STATUS_ERROR);
}

static void partings_turn(const struct pollfd *polls) {
    struct weft_frame frame;
    const void *payload;
    for (int i = 0; i < agent.nparting; i++) {
        weft_host_link_turn(&agent.parting[i], polls[i].revents);
        while (weft_host_link_next(&agent.parting[i], &frame, &payload))
            continue;
        if (agent.parting[i].end && agent.parting[i].frames)
            weft_host_link_close(&agent.parting[i]);
    }
}

static void pe_check_lost(int pe) {
    struct weft_control_pe *it = &weft_attachment.control->pe[pe];
    bool dead = !pe_has_left(pe) && !weft_alive_is_held(&it->alive);
    if (dead || weft_hub_awaits(agent.hub, pe))
        job_end(WEFT_ABORT_DIED, pe, 0);
}

/* Reads the messages of a PE, up to a report that a host cannot be reached. */
static void pe_serve(int pe) {
    struct weft_hub_report report;
    enum weft_hub_event event;
    do
        event = weft_hub_serve(agent.hub, pe, &report);
    while (event == WEFT_HUB_GAVE);
    if (event == WEFT_HUB_CUT)
        cut_say(pe, report.culprit);
    if (event == WEFT_HUB_CUT || event == WEFT_HUB_NOTHING || event == WEFT_HUB_LOST)
        return;
    if (!weft_control_aborted(weft_attachment.control))
        weft_log("PE %d sent %s; ending the job", pe,
                 report.why ? report.why : "a message that only a launcher accepts");
    job_end(WEFT_ABORT_ERROR, pe, 0);
}

static void hub_turn(const struct pollfd *polls) {
    for (int pe = 0; agent.hub && pe < weft_attachment.npes; pe++) {
        if (polls[pe].revents)
            pe_serve(pe);
        if (weft_boot_is_here(pe) && weft_hub_socket(agent.hub, pe) < 0)
            pe_check_lost(pe);
    }
    if (agent.hub)
        weft_hub_retry(agent.hub);
}

static int patience_ms(void) {
    bool awaited = atomic_load(&agent.asked) != atomic_load(&agent.answered);
    if (awaited || (agent.hub && weft_hub_crowded(agent.hub)))
        return 1;
    bool looks = agent.nhosts > 1 || (agent.hub && weft_hub_is_waiting(agent.hub));
    return looks ? LOOK_MS : LOOK_ALONE_MS;
}

/* One poll and all that it announces. `polls` holds the eventfd, then an entry for each PE, each
 * host, and each parting link. Returns the value of `asked` before the turn read anything. */
static uint32_t agent_turn(struct pollfd *polls) {
    int npes = weft_attachment.npes;
    struct pollfd *pes = polls + 1, *hosts = pes + npes, *parting = hosts + agent.nhosts;
    uint64_t count;
    polls[0] = (struct pollfd){.fd = agent.wake, .events = POLLIN};
    for (int pe = 0; pe < npes; pe++)
        pes[pe] = (struct pollfd){.fd = agent.hub ? weft_hub_socket(agent.hub, pe) : -1,
                                  .events = agent.hub ? weft_hub_events(agent.hub, pe) : 0};
    for (int host = 0; host < agent.nhosts; host++)
        hosts[host] = weft_host_link_poll(&agent.host[host].link);
    for (int i = 0; i < agent.nparting; i++)
        parting[i] = weft_host_link_poll(&agent.parting[i]);
    nfds_t all = (nfds_t)(1 + npes + agent.nhosts + agent.nparting);
    if (poll(polls, all, patience_ms()) <= 0)
        for (nfds_t i = 0; i < all; i++)
            polls[i].revents = 0;
    if (polls[0].revents && !weft_descriptor_is_ours(agent.wake))
        agent.wake = -1; /* the program has closed it: callers wait for the next turn */
    else if (polls[0].revents && read(agent.wake, &count, sizeof count) < 0)
        weft_clock_sleep_ms(1);
    uint32_t asked = atomic_load(&agent.asked);
    hub_turn(pes);
    for (int host = hosts_first(); host < hosts_end(); host++)
        host_turn(host, hosts[host].revents);
    partings_turn(parting);
    gather();
    if (agent.nhosts > 1)
        weft_pe_status_tell(agent.pe_status);
    exchanges_judge();
    say_cause();
    links_close();
    return asked;
}

/* --- The life of an agent --------------------------------------------------------------------- */

static bool all_have_parted(void) {
    bool parted = true;
    for (int host = hosts_first(); host < hosts_end(); host++) {
        struct host *it = &agent.host[host];
        say_bye(it);
        parted = parted && (it->over || (it->heard_bye && weft_host_link_is_flushed(&it->link)));
    }
    return parted;
}

static void answer(uint32_t asked) {
    atomic_store(&agent.answered, asked);
    weft_futex_wake(&agent.answered, WEFT_FUTEX_ALL);
}

static void *agent_main(void *polls) {
    uint64_t until_ns = 0;
    for (;;) {
        uint32_t asked = agent_turn(polls);
        bool finishing = atomic_load(&agent.finishing);
        if (finishing && !until_ns)
            until_ns = weft_clock_ns() + FINISH_MS * WEFT_NS_PER_MS;
        if (!finishing || all_have_parted() || weft_clock_ns() >= until_ns)
            answer(asked);
    }
    return NULL;
}

/* Waits for a whole turn, or, when finishing, for the last one. */
static void turn_await(void) {
    uint64_t one = 1, until_ns = weft_clock_ns() + 2 * FINISH_MS * WEFT_NS_PER_MS;
    uint32_t mine = atomic_fetch_add(&agent.asked, 1) + 1, seen;
    if (weft_descriptor_is_ours(agent.wake) && write(agent.wake, &one, sizeof one) < 0)
        return; /* the counter of the eventfd is full */
    while ((int32_t)((seen = atomic_load(&agent.answered)) - mine) < 0 &&
           weft_clock_ns() < until_ns)
        weft_futex_sleep(&agent.answered, seen, WEFT_FUTEX_ALL, FINISH_MS);
}

static int agent_make(const struct weft_agent_setup *setup) {
    agent.nhosts = weft_boot_nhosts();
    agent.here = agent.nhosts > 1 ? weft_boot_host(weft_attachment.pe) : 0;
    agent.hub = setup->hub;
    weft_hub_set_last(agent.hub, weft_attachment.pe);
    agent.parting = setup->parting;
    agent.nparting = setup->nparting;
    agent.host = calloc((size_t)agent.nhosts, sizeof *agent.host);
    for (int host = 0; agent.host && host < agent.nhosts; host++) {
        agent.host[host].link = setup->link[host];
        if (agent.host[host].link.frames)
            weft_frames_keep(agent.host[host].link.frames);
    }
    free(setup->link);
    agent.exchanges = (struct weft_host_exchanges){
        .npes = weft_attachment.npes, .nhosts = agent.nhosts, .share = share};
    agent.wake = weft_descriptor_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (agent.wake < 0 || !agent.host)
        return agent.host ? -errno : -ENOMEM;
    return weft_pe_status_open(&agent.pe_status, weft_attachment.control, weft_attachment.npes,
                               say_pe_status, NULL);
}

int weft_agent_start(const struct weft_agent_setup *setup) {
    pthread_t thread;
    int error = agent_make(setup);
    size_t count = (size_t)(1 + weft_attachment.npes + agent.nhosts + agent.nparting);
    struct pollfd *polls = calloc(count, sizeof *polls);
    if (error == 0)
        error = polls ? weft_thread_start(&thread, agent_main, polls) : -ENOMEM;
    if (error) {
        weft_log("cannot start the thread that connects this host with others: %s%s",
                 strerror(-error), weft_remedy(error).text);
        weft_hub_close(agent.hub); /* the PEs of this host see the end of their sockets */
        agent.hub = NULL;
        return error; /* the caller ends the process, or continues without a job */
    }
    pthread_detach(thread);
    agent.runs = true;
    return 0;
}

void weft_agent_tell(void) {
    if (agent.runs && agent.nhosts > 1)
        turn_await();
}

void weft_agent_finish(void) {
    if (!agent.runs || agent.nhosts == 1)
        return;
    atomic_store(&agent.finishing, true);
    turn_await();
}

/* Closes descriptors without a farewell: the other ends must not take this for the end of the PE.
 */
void weft_agent_forget(void) {
    if (!agent.runs)
        return;
    agent.runs = false;
    for (int host = 0; host < agent.nhosts; host++)
        if (agent.host[host].link.frames)
            weft_descriptor_close(weft_frames_socket(agent.host[host].link.frames));
    for (int i = 0; i < agent.nparting; i++)
        if (agent.parting[i].frames)
            weft_descriptor_close(weft_frames_socket(agent.parting[i].frames));
    for (int pe = 0; agent.hub && pe < weft_attachment.npes; pe++)
        weft_descriptor_close(weft_hub_socket(agent.hub, pe));
    weft_descriptor_close(agent.wake);
}
