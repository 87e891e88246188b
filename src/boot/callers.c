/* SPDX-License-Identifier: BSD-3-Clause */
/* PE 0 trusts a caller's number, which TLS has proven. The rest is checked here, or only concerns
 * the caller's own host. */
#include "boot/callers.h"
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/version.h>
#include "base/env.h"
#include "base/openssl.h"
#include "boot/tls_listener.h"
#include "boot/tree.h"

enum { ROOM_FOR_STRANGERS = 16 };

struct caller {
    struct weft_host_link link;
    struct weft_arrival_hello hello; /* pid is 0 until it has arrived */
    bool first;                      /* of its host, once all PEs have connected */
    bool ready, bye;                 /* it has said so */
};

struct weft_callers {
    const struct weft_identity *self;
    struct weft_tls_listener *listener;
    bool tried;       /* to listen */
    const char *deaf; /* why that has failed; NULL: it has not */
    bool *came;
    int ncame;
    int unready;           /* hosts that are not ready, once all PEs have connected */
    bool placed;           /* all callers have been sent PLACES */
    struct caller *caller; /* by PE */
};

/* --- The port --------------------------------------------------------------------------------- */

int weft_callers_open(struct weft_callers **opened, const struct weft_identity *self, bool *came) {
    struct weft_callers *callers = calloc(1, sizeof *callers);
    struct caller *caller = calloc((size_t)self->npes, sizeof *caller);
    if (!callers || !caller) {
        free(callers);
        free(caller);
        return -ENOMEM;
    }
    *callers = (struct weft_callers){.self = self, .came = came, .caller = caller};
    *opened = callers;
    return 0;
}

void weft_callers_close(struct weft_callers *callers) {
    if (!callers)
        return;
    for (int pe = 0; pe < callers->self->npes; pe++)
        weft_host_link_close(&callers->caller[pe].link);
    weft_tls_listener_close(callers->listener);
    int reserved = weft_invitation_redeem(&callers->self->job_key.invitation);
    if (reserved >= 0)
        close(reserved);
    free(callers->caller);
    free(callers);
}

static bool caller_key_of(void *owner, const char *identity,
                          unsigned char key[WEFT_TLS_KEY_BYTES]) {
    const struct weft_callers *callers = owner;
    int pe = weft_source_number(identity, INT_MAX);
    return pe > 0 && weft_tls_derive(key, callers->self->job_key.secret, WEFT_ARRIVAL_LABEL,
                                     (uint32_t)pe) == 0;
}

/* Also accepts a PE beyond the last, to send it the reason why it is refused. */
static void caller_take(void *owner, struct weft_tls *tls) {
    struct weft_callers *callers = owner;
    int pe = weft_source_number(weft_tls_peer(tls), INT_MAX);
    struct caller *caller = &callers->caller[pe < callers->self->npes ? pe : 0];
    if (caller->link.frames)
        weft_tls_close(tls);
    else
        weft_host_link_open(&caller->link, tls, weft_env.host_timeout,
                            true); /* after a failure the PE counts as missing */
}

int weft_callers_listen(struct weft_callers *callers) {
    const struct weft_identity *self = callers->self;
    bool sure = self->here && self->here < self->npes;
    if (callers->tried)
        return 0;
    callers->tried = true;
    if (!sure && weft_openssl_load() < 0) { /* all PEs may be on this host, and some late */
        callers->deaf = "PE 0's host has no usable OpenSSL: install it";
        return -ENOSYS;
    }
    int reserved = weft_invitation_redeem(&self->job_key.invitation);
    if (reserved < 0) {
        callers->deaf =
            self->job_key.invitation.port
                ? "PE 0 has to be the process that has made the unique id"
                : "PE 0's host has no address for them (WEFT_INTERFACE can name a network)";
        if (sure)
            weft_log("%s: some PEs are on other hosts, and %s", self->source->name, callers->deaf);
        return -EADDRNOTAVAIL;
    }
    return weft_tls_listener_open(&callers->listener, &(struct weft_tls_listener_options){
                                                          .places = self->npes + ROOM_FOR_STRANGERS,
                                                          .key_of = caller_key_of,
                                                          .take = caller_take,
                                                          .owner = callers,
                                                          .reserved = &reserved});
}

void weft_callers_hint(const struct weft_callers *callers) {
    if (callers && callers->deaf)
        weft_note("PEs on other hosts cannot connect: %s", callers->deaf);
}

/* --- Hearing ---------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static int why_write(char *why, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, WEFT_REFUSAL_BYTES, format, arguments);
    va_end(arguments);
    return -EPROTO;
}

static int hello_judge(struct weft_callers *callers, int pe, const struct weft_arrival_hello *hello,
                       char *why) {
    const struct weft_identity *self = callers->self;
    if (strcmp(hello->version, WEFT_VERSION_STRING) != 0)
        return why_write(why,
                         "PE %d on another host runs Weft %s and PE 0 (pid %d) %s: install the "
                         "same version everywhere",
                         pe, hello->version, (int)getpid(), WEFT_VERSION_STRING);
    if (hello->npes != self->npes || hello->pe != pe || pe == 0 || hello->pid < 1)
        return why_write(why, "process %d on %s wants to be PE %d of %d in a job of %d PEs",
                         hello->pid, hello->name.name, hello->pe, hello->npes, self->npes);
    if (callers->came[pe])
        return why_write(why, "process %d on %s wants to be PE %d, which is on this host already",
                         hello->pid, hello->name.name, pe);
    callers->came[pe] = true;
    callers->ncame++;
    callers->caller[pe].hello = *hello;
    return 0;
}

/* A HELLO frame of another version may be shorter or longer. */
static int hello_hear(struct weft_callers *callers, int pe, const struct weft_frame *frame,
                      const void *payload, char *why) {
    struct weft_arrival_hello hello = {.pid = 0};
    if (frame->kind != WEFT_ARRIVAL_HELLO || callers->caller[pe].hello.pid ||
        frame->bytes < sizeof hello.version)
        return why_write(why, "PE %d on another host has sent an invalid frame", pe);
    memcpy(&hello, payload, frame->bytes < sizeof hello ? frame->bytes : sizeof hello);
    hello.version[sizeof hello.version - 1] = '\0';
    hello.name.name[sizeof hello.name.name - 1] = '\0';
    weft_log_make_printable(hello.version, sizeof hello.version);
    weft_log_make_printable(hello.name.name, sizeof hello.name.name);
    return hello_judge(callers, pe, &hello, why);
}

/* After the PLACES frame the first PE of a host sends one READY frame, or one REFUSAL frame with
 * the reason why its host gives up; every other PE sends one BYE frame. */
static int caller_hear(struct weft_callers *callers, int pe, const struct weft_frame *frame,
                       const void *payload, char *why) {
    struct caller *caller = &callers->caller[pe];
    if (!callers->placed)
        return hello_hear(callers, pe, frame, payload, why);
    if (caller->first && frame->kind == WEFT_ARRIVAL_REFUSAL) {
        why_write(why, "%.*s", (int)frame->bytes, (const char *)payload);
        weft_log_make_printable(why, WEFT_REFUSAL_BYTES);
        return -EPROTO;
    }
    if (caller->ready || caller->bye ||
        frame->kind != (caller->first ? WEFT_ARRIVAL_READY : WEFT_ARRIVAL_BYE))
        return why_write(why, "PE %d on another host has sent an invalid frame", pe);
    caller->ready = caller->first;
    caller->bye = !caller->first;
    callers->unready -= caller->ready;
    return 0;
}

static int caller_lost(const struct caller *caller, int pe, char *why) {
    const char *name = caller->hello.pid ? caller->hello.name.name : "another host";
    if (caller->link.end == WEFT_HOST_LINK_SILENT)
        return why_write(why, "the host of PE %d (%s) does not answer", pe, name);
    if (!caller->hello.pid)
        return why_write(why, "PE %d on %s has ended before all PEs had arrived", pe, name);
    return why_write(why, "PE %d (pid %d on %s) has ended before all PEs had arrived", pe,
                     caller->hello.pid, name);
}

static int caller_turn(struct weft_callers *callers, int pe, short revents, char *why) {
    struct caller *caller = &callers->caller[pe];
    struct weft_frame frame;
    const void *payload;
    int error = 0;
    weft_host_link_turn(&caller->link, revents);
    while (error == 0 && !caller->ready && weft_host_link_next(&caller->link, &frame, &payload))
        error = caller_hear(callers, pe, &frame, payload, why);
    return error == 0 && caller->link.end && !caller->bye ? caller_lost(caller, pe, why) : error;
}

int weft_callers_polls(const struct weft_callers *callers, struct pollfd *polls) {
    int count = 1,
        listener = callers->listener ? weft_tls_listener_descriptor(callers->listener) : -1;
    polls[0] = (struct pollfd){.fd = listener, .events = POLLIN};
    for (int pe = 0; pe < callers->self->npes; pe++)
        if (callers->caller[pe].link.frames)
            polls[count++] = weft_host_link_poll(&callers->caller[pe].link);
    return count;
}

/* Also reads from callers that have just been accepted: their first frame may have arrived with the
 * handshake. Frames after a host's READY frame are left for the agent. */
int weft_callers_turn(struct weft_callers *callers, const struct pollfd *polls, char *why) {
    int at = 1, error = 0;
    short revents[callers->self->npes];
    for (int pe = 0; pe < callers->self->npes; pe++)
        revents[pe] = callers->caller[pe].link.frames ? polls[at++].revents : 0;
    if (callers->listener && polls[0].revents)
        weft_tls_listener_turn(callers->listener);
    for (int pe = 0; error == 0 && pe < callers->self->npes; pe++)
        if (callers->caller[pe].link.frames)
            error = caller_turn(callers, pe, revents[pe], why);
    return error ? error : callers->ncame;
}

/* --- An end of the waiting -------------------------------------------------------------------- */

void weft_callers_refuse(struct weft_callers *callers, const char *why) {
    for (int pe = 0; callers && pe < callers->self->npes; pe++)
        weft_arrive_give_up(&callers->caller[pe].link, why);
}

/* Returns the number of the caller's host, or -1 if no PE before it runs there. */
static int host_find(const struct weft_callers *callers, const struct weft_places *places, int pe) {
    for (int other = 1; other < pe; other++)
        if (callers->caller[other].hello.host == callers->caller[pe].hello.host &&
            places->host_of[other] > 0)
            return places->host_of[other];
    return -1;
}

static void hosts_find(const struct weft_callers *callers, struct weft_places *places) {
    gethostname(places->host[0].name, sizeof places->host[0].name - 1);
    places->nhosts = 1;
    for (int pe = 1; pe < callers->self->npes; pe++) {
        const struct caller *caller = &callers->caller[pe];
        int host = caller->hello.pid ? host_find(callers, places, pe) : 0;
        if (host < 0) {
            host = places->nhosts++;
            places->host[host] = caller->hello.name;
            callers->caller[pe].first = true;
        }
        places->host_of[pe] = host;
    }
}

static int places_tell(struct weft_callers *callers, const struct weft_places *places) {
    int32_t nhosts = places->nhosts;
    size_t names = (size_t)nhosts * sizeof *places->host;
    size_t numbers = (size_t)callers->self->npes * sizeof *places->host_of;
    size_t bytes = sizeof nhosts + names + numbers;
    unsigned char *payload = malloc(bytes);
    if (!payload)
        return -ENOMEM;
    memcpy(payload, &nhosts, sizeof nhosts);
    memcpy(payload + sizeof nhosts, places->host, names);
    memcpy(payload + sizeof nhosts + names, places->host_of, numbers);
    struct weft_frame frame = {.kind = WEFT_ARRIVAL_PLACES, .bytes = (uint32_t)bytes, .pe = -1};
    for (int pe = 1; pe < callers->self->npes; pe++)
        weft_host_link_send(&callers->caller[pe].link, &frame, payload);
    free(payload);
    return 0;
}

/* Finds the network of the job: the one of the first caller's connection. */
static void network_find(const struct weft_callers *callers, struct weft_places *places) {
    int pe = 1;
    while (pe < callers->self->npes && !callers->caller[pe].link.frames)
        pe++;
    if (pe == callers->self->npes)
        return;
    weft_network_find(&places->network, weft_frames_socket(callers->caller[pe].link.frames),
                      weft_invitation_interface());
}

int weft_callers_place(struct weft_callers *callers, struct weft_places *places, char *why) {
    size_t npes = (size_t)callers->self->npes;
    weft_tls_listener_close(callers->listener);
    callers->listener = NULL;
    *places = (struct weft_places){.nhosts = 1};
    if (callers->ncame == 0)
        return 0;
    places->host = calloc(npes, sizeof *places->host);
    places->host_of = calloc(npes, sizeof *places->host_of);
    if (!places->host || !places->host_of)
        return why_write(why, "there is no memory for the hosts of the PEs");
    hosts_find(callers, places);
    network_find(callers, places);
    callers->placed = true;
    callers->unready = places->nhosts - 1;
    if (places_tell(callers, places) == 0)
        return 0;
    return why_write(why, "there is no memory to send the hosts of the PEs");
}

bool weft_callers_are_ready(const struct weft_callers *callers) {
    return callers->unready == 0;
}

int weft_callers_pid(const struct weft_callers *callers, int pe) {
    return callers->caller[pe].hello.pid;
}

struct weft_host_link *weft_callers_link(struct weft_callers *callers, int pe) {
    return &callers->caller[pe].link;
}
