/* SPDX-License-Identifier: BSD-3-Clause */
/* At most two rounds are under way: while a slow PE still receives round k, a fast one may already
 * give to round k + 1, which cannot be complete before the slow one has given too. So a round lives
 * in the slot of its parity, and a PE is in the round that it gave to last. */
#include "boot/hub.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/descriptor.h"
#include "boot/hosts.h"
#include "boot/wire.h"

struct hub_round {
    int given, served;
    bool gathered; /* all PEs of this host have given, and the owner has taken it up */
    bool complete; /* all of the job have */
    struct weft_wire_shares shares; /* a descriptor is -1 where none has come */
};

struct hub_pe {
    bool here;
    int socket;      /* -1: it is lost, or not here */
    unsigned rounds; /* to how many it has given */
    int position;    /* contributions of its round that it has been sent */
    bool receiving;  /* has given, and not received all */
    bool crowded;    /* the kernel refused more descriptors under way */
};

struct weft_hub {
    int npes, npes_here;
    struct hub_round round[2];
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
        pes[pe].socket = sockets[pe];
        if (sockets[pe] < 0)
            continue;
        setsockopt(sockets[pe], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int));
        pes[pe].here = true;
        hub->npes_here++;
    }
    hub->npes = npes;
    hub->pe = pes;
    *opened = hub;
    return 0;
}

static void round_end(struct hub_round *round) {
    struct weft_wire_shares *shares = &round->shares;
    for (int i = 0; shares->fds && i < shares->members * shares->nfds; i++)
        if (shares->fds[i] >= 0)
            close(shares->fds[i]);
    free(shares->all);
    free(shares->fds);
    *round = (struct hub_round){0};
}

static int round_begin(struct hub_round *round, int npes, size_t bytes, int nfds) {
    size_t fds_bytes = (size_t)npes * (size_t)nfds * sizeof(int);
    unsigned char *all = malloc((size_t)npes * bytes + 1);
    int *fds = malloc(fds_bytes + 1);
    if (!all || !fds) {
        free(all);
        free(fds);
        return -ENOMEM;
    }
    memset(fds, 0xff, fds_bytes);
    round->shares = (struct weft_wire_shares){npes, bytes, nfds, all, fds};
    return 0;
}

void weft_hub_close(struct weft_hub *hub) {
    if (!hub)
        return;
    for (int pe = 0; pe < hub->npes; pe++)
        weft_descriptor_close(hub->pe[pe].socket);
    round_end(&hub->round[0]);
    round_end(&hub->round[1]);
    free(hub->pe);
    free(hub);
}

int weft_hub_socket(const struct weft_hub *hub, int pe) {
    return hub->pe[pe].socket;
}

short weft_hub_events(const struct weft_hub *hub, int pe) {
    const struct hub_pe *it = &hub->pe[pe];
    bool deliverable = it->receiving && hub->round[(it->rounds - 1) & 1].complete;
    return deliverable && !it->crowded ? POLLIN | POLLOUT : POLLIN;
}

bool weft_hub_crowded(const struct weft_hub *hub) {
    for (int pe = 0; pe < hub->npes; pe++)
        if (hub->pe[pe].crowded)
            return true;
    return false;
}

bool weft_hub_awaits(const struct weft_hub *hub, int pe) {
    const struct hub_pe *it = &hub->pe[pe];
    return it->here && !it->receiving && hub->round[it->rounds & 1].given > 0;
}

/* Sends to one PE what it can take now. Failures other than "later" are left to reading, which will
 * find the socket closed. */
static void share_deliver(struct weft_hub *hub, struct hub_pe *pe) {
    pe->crowded = false;
    if (!pe->receiving || pe->socket < 0)
        return;
    struct hub_round *round = &hub->round[(pe->rounds - 1) & 1];
    if (!round->complete)
        return;
    int error = weft_wire_share(pe->socket, &round->shares, &pe->position);
    pe->crowded = error == -ETOOMANYREFS;
    if (error)
        return;
    pe->receiving = false;
    if (++round->served == hub->npes_here)
        round_end(round);
}

static void share_deliver_all(struct weft_hub *hub) {
    for (int pe = 0; pe < hub->npes; pe++)
        share_deliver(hub, &hub->pe[pe]);
}

/* The one round that all PEs here have given to and that is not complete: while it is not, none of
 * them gives to the next. NULL: there is none. */
static struct hub_round *round_pending(struct weft_hub *hub) {
    for (int i = 0; i < 2; i++)
        if (hub->npes_here < hub->npes && !hub->round[i].complete &&
            hub->round[i].given == hub->npes_here)
            return &hub->round[i];
    return NULL;
}

bool weft_hub_is_pending(const struct weft_hub *hub) {
    return round_pending((struct weft_hub *)hub) != NULL;
}

bool weft_hub_gather(struct weft_hub *hub, struct weft_hub_gathered *gathered) {
    struct hub_round *round = round_pending(hub);
    if (!round || round->gathered)
        return false;
    size_t bytes = round->shares.bytes;
    *gathered = (struct weft_hub_gathered){.bytes = bytes};
    gathered->all = malloc((size_t)hub->npes_here * bytes + 1);
    for (int pe = 0; gathered->all && pe < hub->npes; pe++)
        if (hub->pe[pe].here)
            memcpy(gathered->all + (size_t)gathered->count++ * bytes,
                   round->shares.all + (size_t)pe * bytes, bytes);
    round->gathered = gathered->all != NULL;
    return true;
}

int weft_hub_complete(struct weft_hub *hub, const void *all, size_t bytes) {
    struct hub_round *round = round_pending(hub);
    if (!round || !round->gathered || bytes != (size_t)hub->npes * round->shares.bytes)
        return -EPROTO;
    if (bytes)
        memcpy(round->shares.all, all, bytes);
    round->complete = true;
    share_deliver_all(hub);
    return 0;
}

void weft_hub_retry(struct weft_hub *hub) {
    for (int pe = 0; pe < hub->npes; pe++)
        if (hub->pe[pe].crowded)
            share_deliver(hub, &hub->pe[pe]);
}

/* The reason why a contribution can't be accepted, or NULL. */
static const char *contribution_objection(const struct weft_hub *hub, const struct hub_pe *pe,
                                          const struct weft_wire_header *header,
                                          const struct weft_wire_body *body) {
    const struct hub_round *round = &hub->round[pe->rounds & 1];
    if (header->bytes > WEFT_BOOT_BLOB_MAX || header->bytes != body->bytes ||
        header->nfds > WEFT_BOOT_FDS_MAX || header->nfds != (uint32_t)body->nfds)
        return "a contribution of a wrong size";
    if (pe->receiving)
        return "two contributions to one exchange";
    if (round->given && (round->shares.bytes != body->bytes || round->shares.nfds != body->nfds))
        return "a contribution that differs in size from the other PEs'";
    return NULL;
}

static const char *contribution_store(struct weft_hub *hub, int pe,
                                      struct weft_wire_message *message,
                                      const struct weft_wire_body *body) {
    struct hub_pe *it = &hub->pe[pe];
    struct hub_round *round = &hub->round[it->rounds & 1];
    const char *why = contribution_objection(hub, it, &message->header, body);
    if (!why && !round->given && round_begin(round, hub->npes, body->bytes, body->nfds))
        why = "more than the launcher has memory for";
    if (why)
        return why;
    size_t nfds = (size_t)body->nfds;
    memcpy(round->shares.all + (size_t)pe * body->bytes, body->payload, body->bytes);
    memcpy(round->shares.fds + (size_t)pe * nfds, body->fds, nfds * sizeof(int));
    message->nfds = 0; /* the round owns them now */
    it->rounds++;
    it->position = 0;
    it->receiving = true;
    round->complete = ++round->given == hub->npes;
    if (round->complete)
        share_deliver_all(hub);
    return NULL;
}

static enum weft_hub_news message_judge(struct weft_hub *hub, int pe,
                                        struct weft_wire_message *message,
                                        const struct weft_wire_body *body,
                                        struct weft_hub_report *report) {
    const struct weft_wire_header *header = &message->header;
    report->pid = message->sender;
    report->status = header->status;
    if (header->kind == WEFT_WIRE_GIVE) {
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
    report->why = "a message that makes no sense";
    return WEFT_HUB_JUNK;
}

static enum weft_hub_news socket_lose(struct hub_pe *pe) {
    weft_descriptor_close(pe->socket);
    pe->socket = -1;
    return WEFT_HUB_LOST;
}

static enum weft_hub_news message_failure(struct hub_pe *pe, int code,
                                          struct weft_hub_report *report) {
    if (code == -EAGAIN)
        return WEFT_HUB_NOTHING;
    report->why = code == -EMFILE ? "more descriptors than the launcher may have open (ulimit -n)"
                                  : "a message of no known form";
    if (code == -EPROTO || code == -EMFILE)
        return WEFT_HUB_JUNK;
    return socket_lose(pe);
}

enum weft_hub_news weft_hub_serve(struct weft_hub *hub, int pe, struct weft_hub_report *report) {
    struct hub_pe *it = &hub->pe[pe];
    *report = (struct weft_hub_report){0};
    if (it->socket < 0)
        return WEFT_HUB_NOTHING;
    if (!weft_descriptor_is_ours(it->socket))
        return socket_lose(it);
    share_deliver(hub, it);
    struct weft_wire_message message = {0};
    unsigned char payload[WEFT_BOOT_BLOB_MAX];
    ssize_t bytes = weft_wire_receive(it->socket, &message, payload, sizeof payload, MSG_DONTWAIT);
    if (bytes < 0)
        return message_failure(it, (int)bytes, report);
    struct weft_wire_body body = {payload, (size_t)bytes, message.fd, message.nfds};
    enum weft_hub_news news = message_judge(hub, pe, &message, &body, report);
    weft_wire_close(&message);
    return news;
}
