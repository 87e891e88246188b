/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges with one key and members follow each other, since a fast member may contribute while a
 * slow one receives. A contribution is to the first to which its PE has not contributed yet. */
#include "boot/hub.h"
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/descriptor.h"
#include "boot/control.h"
#include "boot/tree.h"

enum { OPEN_MAX = 256 }; /* exchanges that a PE may be in */

struct hub_member {
    int reply;      /* socket for the result; -1: the PE's own */
    int position;   /* number of contributions sent to it */
    bool receiving; /* it has contributed, and not received everything */
    bool crowded;   /* poll cannot tell when there is room again */
};

struct hub_exchange {
    struct hub_exchange *next;
    uint64_t key; /* 0: all PEs */
    struct weft_wire_members members, gave;
    int nhere, receiving; /* members on this host; members whose `receiving` is set */
    bool gathered;        /* the owner has taken the contributions of this host's members */
    bool complete;        /* all members have contributed, or the exchange has failed */
    int status, culprit;  /* error that members receive, and the PE that caused it */
    struct weft_wire_shares shares; /* descriptors that have not arrived are -1 */
    struct hub_member member[];     /* by rank among the members */
};

struct hub_pe {
    bool here;
    int socket; /* -1: closed, or the PE is on another host */
    int nopen;  /* exchanges to which it has contributed and whose result it has not received */
    struct hub_exchange *receives; /* the exchange of all PEs among them */
};

struct weft_hub {
    int npes;
    int last; /* the PE that receives after all others; -1: none */
    struct weft_wire_members all;
    bool crowded; /* a member is crowded */
    struct hub_exchange *open;
    struct hub_pe *pe;
};

int weft_hub_open(struct weft_hub **opened, const int sockets[], int npes) {
    struct weft_hub *hub = calloc(1, sizeof *hub);
    struct hub_pe *pes = calloc((size_t)npes, sizeof *pes);
    if (!hub || !pes) {
        free(hub);
        free(pes);
        for (int pe = 0; pe < npes; pe++)
            weft_descriptor_close(sockets[pe]);
        return -ENOMEM;
    }
    for (int pe = 0; pe < npes; pe++) {
        weft_wire_members_add(&hub->all, pe);
        pes[pe].socket = sockets[pe];
        if (sockets[pe] < 0)
            continue;
        setsockopt(sockets[pe], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int));
        pes[pe].here = true;
    }
    *hub = (struct weft_hub){.npes = npes, .last = -1, .all = hub->all, .pe = pes};
    *opened = hub;
    return 0;
}

/* --- Exchanges -------------------------------------------------------------------------------- */

static void exchange_free(struct weft_hub *hub, struct hub_exchange *exchange) {
    struct weft_wire_shares *shares = &exchange->shares;
    struct hub_exchange **at = &hub->open;
    while (*at != exchange)
        at = &(*at)->next;
    *at = exchange->next;
    for (int i = 0; i < shares->members * shares->nfds; i++)
        weft_descriptor_close(shares->fds[i]);
    for (int rank = 0; rank < shares->members; rank++)
        weft_descriptor_close(exchange->member[rank].reply);
    free(shares->all);
    free(shares->fds);
    free(exchange);
}

/* Appends a new exchange for contributions of this size. Returns NULL without memory. */
static struct hub_exchange *exchange_begin(struct weft_hub *hub, uint64_t key,
                                           const struct weft_wire_members *members, size_t bytes,
                                           int nfds) {
    size_t count = (size_t)members->count, fds_bytes = count * (size_t)nfds * sizeof(int);
    struct hub_exchange *exchange = calloc(1, sizeof *exchange + count * sizeof *exchange->member),
                        **last = &hub->open;
    unsigned char *all = malloc(count * bytes + 1);
    int *fds = malloc(fds_bytes + 1);
    if (!exchange || !all || !fds) {
        free(exchange);
        free(all);
        free(fds);
        return NULL;
    }
    memset(fds, 0xff, fds_bytes);
    exchange->key = key;
    exchange->members = *members;
    exchange->shares = (struct weft_wire_shares){members->count, bytes, nfds, all, fds};
    for (int rank = 0; rank < members->count; rank++)
        exchange->member[rank].reply = -1;
    for (int pe = 0; pe < hub->npes; pe++)
        exchange->nhere += hub->pe[pe].here && weft_wire_members_has(members, pe);
    while (*last)
        last = &(*last)->next;
    *last = exchange;
    return exchange;
}

static bool exchange_is(const struct hub_exchange *exchange, uint64_t key,
                        const struct weft_wire_members *members) {
    return exchange->key == key &&
           memcmp(exchange->members.bits, members->bits, sizeof members->bits) == 0;
}

void weft_hub_close(struct weft_hub *hub) {
    if (!hub)
        return;
    for (int pe = 0; pe < hub->npes; pe++)
        weft_descriptor_close(hub->pe[pe].socket);
    while (hub->open)
        exchange_free(hub, hub->open);
    free(hub->pe);
    free(hub);
}

int weft_hub_socket(const struct weft_hub *hub, int pe) {
    return hub->pe[pe].socket;
}

void weft_hub_set_last(struct weft_hub *hub, int pe) {
    hub->last = pe;
}

static bool member_has_to_wait(const struct weft_hub *hub, const struct hub_exchange *exchange,
                               int pe) {
    return pe == hub->last && exchange->receiving > 1;
}

short weft_hub_events(const struct weft_hub *hub, int pe) {
    const struct hub_exchange *receives = hub->pe[pe].receives;
    bool deliverable = receives && receives->complete && !receives->member[pe].crowded &&
                       !member_has_to_wait(hub, receives, pe);
    return deliverable ? POLLIN | POLLOUT : POLLIN;
}

bool weft_hub_awaits(const struct weft_hub *hub, int pe) {
    for (const struct hub_exchange *it = hub->open; it && hub->pe[pe].here; it = it->next)
        if (it->key == 0 && !weft_wire_members_has(&it->gave, pe) && !hub->pe[pe].receives)
            return true;
    return false;
}

/* --- Delivery --------------------------------------------------------------------------------- */

/* In a PE's process, the program may have closed a descriptor of the hub and reused its number. */
static int answer_send(const struct weft_hub *hub, struct hub_exchange *exchange,
                       struct hub_member *member, int socket) {
    struct weft_wire_header header = {
        .kind = WEFT_WIRE_FAIL, .first = (uint32_t)exchange->culprit, .status = exchange->status};
    if (!weft_descriptor_is_ours(socket))
        return -EPIPE;
    if (!exchange->status && hub->last >= 0 && !weft_wire_shares_are_ours(&exchange->shares))
        header.status = -EBADF;
    if (header.status)
        return weft_wire_send(socket, &header, NULL, MSG_DONTWAIT);
    return weft_wire_share(socket, &exchange->shares, &member->position);
}

static void member_served(struct weft_hub *hub, struct hub_exchange *exchange, int pe, int rank) {
    struct hub_member *member = &exchange->member[rank];
    if (member->reply < 0)
        hub->pe[pe].receives = NULL;
    weft_descriptor_close(member->reply);
    member->reply = -1;
    member->receiving = false;
    hub->pe[pe].nopen--;
    exchange->receiving--;
}

/* Sends a member as much as it can receive now. Reading detects that a PE's socket is closed. */
static void member_deliver(struct weft_hub *hub, struct hub_exchange *exchange, int pe, int rank) {
    struct hub_member *member = &exchange->member[rank];
    bool own = member->reply >= 0;
    member->crowded = false;
    if (!exchange->complete || !member->receiving || member_has_to_wait(hub, exchange, pe))
        return;
    int error = answer_send(hub, exchange, member, own ? member->reply : hub->pe[pe].socket);
    member->crowded = error == -ETOOMANYREFS || error == -ENOMEM || error == -ENOBUFS ||
                      (own && error == -EAGAIN);
    hub->crowded = hub->crowded || member->crowded;
    if (!member->crowded && (!error || own))
        member_served(hub, exchange, pe, rank);
}

/* Serves the last member after all others, and frees the exchange when all are served. */
static void exchange_settle(struct weft_hub *hub, struct hub_exchange *exchange) {
    if (hub->last >= 0 && weft_wire_members_has(&exchange->members, hub->last))
        member_deliver(hub, exchange, hub->last,
                       weft_wire_members_rank(&exchange->members, hub->last));
    if (exchange->complete && exchange->receiving == 0)
        exchange_free(hub, exchange);
}

static void exchange_deliver(struct weft_hub *hub, struct hub_exchange *exchange) {
    for (int pe = 0, rank = 0; pe < hub->npes; pe++)
        if (weft_wire_members_has(&exchange->members, pe))
            member_deliver(hub, exchange, pe, rank++);
    exchange_settle(hub, exchange);
}

bool weft_hub_crowded(const struct weft_hub *hub) {
    return hub->crowded;
}

void weft_hub_retry(struct weft_hub *hub) {
    if (!hub->crowded)
        return;
    hub->crowded = false;
    for (struct hub_exchange *it = hub->open, *next; it; it = next) {
        next = it->next;
        if (it->complete)
            exchange_deliver(hub, it);
    }
}

/* --- Exchanges over hosts --------------------------------------------------------------------- */

static bool exchange_is_gathered(const struct hub_exchange *exchange) {
    return !exchange->complete && exchange->gave.count == exchange->nhere;
}

bool weft_hub_is_pending(const struct weft_hub *hub) {
    const struct hub_exchange *it = hub->open;
    while (it && !exchange_is_gathered(it))
        it = it->next;
    return it != NULL;
}

bool weft_hub_gather(struct weft_hub *hub, unsigned char **payload, size_t *bytes) {
    struct hub_exchange *it = hub->open;
    while (it && (it->gathered || !exchange_is_gathered(it)))
        it = it->next;
    if (!it)
        return false;
    size_t each = it->shares.bytes;
    struct weft_tree_given given = {.head = {it->key, (uint32_t)each, it->status},
                                    .members = it->members};
    *payload = weft_tree_given_make(&given, hub->npes, it->nhere, bytes);
    it->gathered = *payload != NULL;
    unsigned char *to = given.contributions;
    for (int pe = 0, rank = 0; it->gathered && given.bytes && pe < hub->npes; pe++) {
        if (weft_wire_members_has(&it->gave, pe)) {
            memcpy(to, it->shares.all + (size_t)rank * each, each);
            to += each;
        }
        rank += weft_wire_members_has(&it->members, pe);
    }
    return true;
}

int weft_hub_complete(struct weft_hub *hub, const void *payload, size_t bytes) {
    struct weft_tree_given given;
    struct hub_exchange *it = hub->open;
    if (!weft_tree_given_read(&given, payload, bytes, hub->npes))
        return -EPROTO;
    while (it &&
           !(it->gathered && !it->complete && exchange_is(it, given.head.key, &given.members)))
        it = it->next;
    if (!it || (it->status && !given.head.status) ||
        (!given.head.status && (given.head.bytes != it->shares.bytes ||
                                given.bytes != (size_t)it->members.count * it->shares.bytes)))
        return -EPROTO;
    it->status = given.head.status;
    if (given.bytes)
        memcpy(it->shares.all, given.contributions, given.bytes);
    it->complete = true;
    exchange_deliver(hub, it);
    return 0;
}

/* --- Members that have finalized -------------------------------------------------------------- */

static bool exchange_is_waiting(const struct hub_exchange *exchange) {
    return exchange->key && !exchange->complete;
}

bool weft_hub_is_waiting(const struct weft_hub *hub) {
    const struct hub_exchange *it = hub->open;
    while (it && !exchange_is_waiting(it))
        it = it->next;
    return it != NULL;
}

void weft_hub_judge(struct weft_hub *hub, const struct weft_control *control) {
    for (struct hub_exchange *it = hub->open, *next; it; it = next) {
        next = it->next;
        if (exchange_is_waiting(it))
            it->culprit = weft_control_find_gone(control, hub->npes, &it->members, &it->gave);
        if (!exchange_is_waiting(it) || it->culprit < 0)
            continue;
        it->status = -ECONNABORTED;
        it->complete = true;
        exchange_deliver(hub, it);
    }
}

/* --- Messages --------------------------------------------------------------------------------- */

/* A contribution, as its message contains it. */
struct gift {
    int pe;
    uint64_t key;
    struct weft_wire_members members;
    const unsigned char *from;
    size_t bytes;
    int reply; /* -1: none */
    const int *fds;
    int nfds;
};

/* Parses a contribution. Returns NULL, or why the message is invalid. */
static const char *gift_read(const struct weft_hub *hub, const struct weft_wire_header *header,
                             const struct weft_wire_body *body, struct gift *gift) {
    bool all = header->kind == WEFT_WIRE_GIVE;
    size_t heads = all ? 0 : sizeof gift->key + weft_wire_members_bytes(hub->npes);
    if (header->bytes > WEFT_BOOT_BLOB_MAX || header->bytes + heads != body->bytes ||
        header->nfds > WEFT_BOOT_FDS_MAX || header->nfds + !all != (uint32_t)body->nfds)
        return "a contribution of a wrong size";
    const unsigned char *key = body->payload;
    gift->from = key + heads;
    gift->bytes = header->bytes;
    gift->reply = all ? -1 : body->fds[0];
    gift->fds = body->fds + !all;
    gift->nfds = (int)header->nfds;
    gift->members = hub->all;
    if (all)
        return NULL;
    memcpy(&gift->key, key, sizeof gift->key);
    bool right = gift->key &&
                 weft_wire_members_read(&gift->members, key + sizeof gift->key, hub->npes) &&
                 weft_wire_members_has(&gift->members, gift->pe);
    return right ? NULL : "a contribution to an exchange that it is not in";
}

/* Finds the exchange of a contribution, or begins one. Returns NULL with the reason in *why.  */
static struct hub_exchange *gift_place(struct weft_hub *hub, const struct gift *gift,
                                       const char **why) {
    struct hub_exchange *it = hub->open;
    while (it && (weft_wire_members_has(&it->gave, gift->pe) ||
                  !exchange_is(it, gift->key, &gift->members)))
        it = it->next;
    bool fits = !it || (it->shares.bytes == gift->bytes && it->shares.nfds == gift->nfds);
    *why = NULL;
    if (!gift->key && hub->pe[gift->pe].receives)
        *why = "two contributions to one exchange";
    else if (!gift->key && !fits)
        *why = "a contribution that differs in size from the other PEs'";
    else if (hub->pe[gift->pe].nopen == OPEN_MAX)
        *why = "contributions to too many exchanges at a time";
    if (*why)
        return NULL;
    it = it ? it : exchange_begin(hub, gift->key, &gift->members, gift->bytes, gift->nfds);
    if (!it)
        *why = "more than the launcher has memory for";
    else if (gift->key && gift->nfds && it->nhere < it->members.count)
        *why = "descriptors for another host";
    else if (!fits && !it->complete)
        it->status = -EPROTO;
    return *why ? NULL : it;
}

/* Stores a contribution. Its descriptors then belong to the exchange, or are closed. */
static void gift_take(struct weft_hub *hub, struct hub_exchange *exchange, const struct gift *gift,
                      int rank) {
    int *fds = exchange->shares.fds + rank * gift->nfds;
    if (!exchange->status)
        memcpy(exchange->shares.all + (size_t)rank * gift->bytes, gift->from, gift->bytes);
    for (int i = 0; i < gift->nfds; i++)
        if (exchange->status)
            close(gift->fds[i]);
        else
            fds[i] = weft_descriptor_keep(gift->fds[i]);
    exchange->member[rank].reply = weft_descriptor_keep(gift->reply);
    exchange->member[rank].receiving = true;
    weft_wire_members_add(&exchange->gave, gift->pe);
    exchange->receiving++;
    hub->pe[gift->pe].nopen++;
    if (!gift->key)
        hub->pe[gift->pe].receives = exchange;
    exchange->complete = exchange->complete || exchange->gave.count == exchange->members.count;
    if (exchange->complete)
        exchange_deliver(hub, exchange);
}

static const char *contribution_store(struct weft_hub *hub, int pe,
                                      struct weft_wire_message *message,
                                      const struct weft_wire_body *body) {
    struct gift gift = {.pe = pe};
    const char *why = gift_read(hub, &message->header, body, &gift);
    int rank = why ? 0 : weft_wire_members_rank(&gift.members, pe);
    struct hub_exchange *exchange = why ? NULL : gift_place(hub, &gift, &why);
    if (!exchange)
        return why;
    gift_take(hub, exchange, &gift, rank);
    message->nfds = 0;
    return NULL;
}

static enum weft_hub_event message_judge(struct weft_hub *hub, int pe,
                                         struct weft_wire_message *message,
                                         const struct weft_wire_body *body,
                                         struct weft_hub_report *report) {
    const struct weft_wire_header *header = &message->header;
    report->pid = message->sender;
    report->status = header->status;
    if (header->kind == WEFT_WIRE_GIVE || header->kind == WEFT_WIRE_GIVE_AMONG) {
        report->why = contribution_store(hub, pe, message, body);
        return report->why ? WEFT_HUB_JUNK : WEFT_HUB_GAVE;
    }
    if (body->bytes == 0 && body->nfds == 0) {
        switch (header->kind) {
        case WEFT_WIRE_JOIN:
            return WEFT_HUB_JOINED;
        case WEFT_WIRE_EXIT:
            return WEFT_HUB_EXIT;
        case WEFT_WIRE_FAIL:
            return WEFT_HUB_FAILED;
        case WEFT_WIRE_BLAME:
            report->culprit = (int)header->first;
            if (header->first < (uint32_t)hub->npes)
                return WEFT_HUB_BLAMED;
            break;
        case WEFT_WIRE_CUT:
            report->culprit = (int)header->first;
            if (header->first < (uint32_t)weft_boot_nhosts())
                return WEFT_HUB_CUT;
        }
    }
    report->why = "an invalid message";
    return WEFT_HUB_JUNK;
}

/* Data that was still to be sent to the PE is dropped. */
static enum weft_hub_event socket_lose(struct weft_hub *hub, int pe) {
    struct hub_exchange *receives = hub->pe[pe].receives;
    weft_descriptor_close(hub->pe[pe].socket);
    hub->pe[pe].socket = -1;
    if (receives) {
        member_served(hub, receives, pe, pe);
        exchange_settle(hub, receives);
    }
    return WEFT_HUB_LOST;
}

static enum weft_hub_event message_failure(struct weft_hub *hub, int pe, int code,
                                           struct weft_hub_report *report) {
    if (code == -EAGAIN)
        return WEFT_HUB_NOTHING;
    report->why = code == -EMFILE ? "more descriptors than the launcher may have open (ulimit -n)"
                                  : "a message of an unknown form";
    if (code == -EPROTO || code == -EMFILE)
        return WEFT_HUB_JUNK;
    return socket_lose(hub, pe);
}

enum weft_hub_event weft_hub_serve(struct weft_hub *hub, int pe, struct weft_hub_report *report) {
    struct hub_pe *it = &hub->pe[pe];
    *report = (struct weft_hub_report){0};
    if (it->socket < 0)
        return WEFT_HUB_NOTHING;
    if (!weft_descriptor_is_ours(it->socket))
        return socket_lose(hub, pe);
    struct hub_exchange *receives = it->receives;
    if (receives) {
        member_deliver(hub, receives, pe, pe);
        exchange_settle(hub, receives);
    }
    struct weft_wire_message message = {0};
    unsigned char payload[sizeof(struct weft_wire_members) + sizeof(uint64_t) + WEFT_BOOT_BLOB_MAX];
    ssize_t bytes = weft_wire_receive(it->socket, &message, payload, sizeof payload, MSG_DONTWAIT);
    if (bytes < 0)
        return message_failure(hub, pe, (int)bytes, report);
    struct weft_wire_body body = {payload, (size_t)bytes, message.fd, message.nfds};
    enum weft_hub_event event = message_judge(hub, pe, &message, &body, report);
    weft_wire_close(&message);
    return event;
}
