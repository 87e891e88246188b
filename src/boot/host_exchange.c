/* SPDX-License-Identifier: BSD-3-Clause */
/* As in the hub, a contribution belongs to the first exchange with its key and members to which its
 * host has not contributed yet. */
#include "boot/host_exchange.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "boot/control.h"
#include "boot/tree.h"

enum { OPEN_MAX = 1 << 16 };

struct weft_host_exchange {
    struct weft_host_exchange *next;
    struct weft_tree_given given; /* head and members; its contributions point into the payload */
    unsigned char *payload;       /* of the SHARED frame */
    size_t bytes;
    struct weft_wire_members gave;
    int left[]; /* per host: members that have not contributed */
};

static void exchange_free(struct weft_host_exchanges *exchanges, struct weft_host_exchange **at) {
    struct weft_host_exchange *it = *at;
    *at = it->next;
    exchanges->nopen--;
    free(it->payload);
    free(it);
}

void weft_host_exchanges_close(struct weft_host_exchanges *exchanges) {
    while (exchanges->open)
        exchange_free(exchanges, &exchanges->open);
}

/* Returns the pointer to the exchange to which this host contributes, or to the NULL at the end of
 * the list if there is none yet. */
static struct weft_host_exchange **exchange_find(struct weft_host_exchanges *exchanges, int host,
                                                 const struct weft_tree_given *given) {
    struct weft_host_exchange **at = &exchanges->open;
    while (*at && ((*at)->given.head.key != given->head.key || !(*at)->left[host] ||
                   memcmp((*at)->given.members.bits, given->members.bits,
                          sizeof given->members.bits) != 0))
        at = &(*at)->next;
    return at;
}

static struct weft_host_exchange *exchange_begin(const struct weft_host_exchanges *exchanges,
                                                 const struct weft_tree_given *given) {
    struct weft_host_exchange *it =
        calloc(1, sizeof *it + (size_t)exchanges->nhosts * sizeof *it->left);
    if (!it)
        return NULL;
    it->given = *given;
    it->payload =
        weft_tree_given_make(&it->given, exchanges->npes, given->members.count, &it->bytes);
    for (int pe = 0; pe < exchanges->npes; pe++)
        it->left[weft_boot_host(pe)] += weft_wire_members_has(&given->members, pe);
    if (it->payload)
        return it;
    free(it);
    return NULL;
}

/* An exchange whose contributions differ in size fails on all members; one of all PEs ends the job.
 */
static int exchange_fail(struct weft_host_exchange *it, int npes) {
    if (it->given.head.key == 0)
        return -EPROTO;
    free(it->payload);
    it->given.head.status = -EPROTO;
    it->payload = weft_tree_given_make(&it->given, npes, 0, &it->bytes);
    return it->payload ? 0 : -ENOMEM;
}

static void contributions_place(const struct weft_host_exchanges *exchanges,
                                struct weft_host_exchange *it, int host,
                                const struct weft_tree_given *given) {
    size_t each = it->given.head.bytes;
    const unsigned char *from = given->contributions;
    unsigned char *to = it->given.contributions;
    for (int pe = 0; pe < exchanges->npes; pe++) {
        if (!weft_wire_members_has(&it->given.members, pe))
            continue;
        if (weft_boot_host(pe) == host) {
            weft_wire_members_add(&it->gave, pe);
            if (!it->given.head.status && each) {
                memcpy(to, from, each);
                from += each;
            }
        }
        to += it->given.head.status ? 0 : each;
    }
    it->left[host] = 0;
}

static void exchange_share(const struct weft_host_exchanges *exchanges,
                           const struct weft_host_exchange *it) {
    bool member[exchanges->nhosts];
    memset(member, 0, sizeof member);
    for (int pe = 0; pe < exchanges->npes; pe++)
        member[weft_boot_host(pe)] |= weft_wire_members_has(&it->given.members, pe);
    if (it->given.head.key == 0)
        exchanges->share(exchanges->owner, WEFT_TREE_ALL, it->payload, it->bytes);
    for (int host = 0; it->given.head.key && host < exchanges->nhosts; host++)
        if (member[host])
            exchanges->share(exchanges->owner, host, it->payload, it->bytes);
}

int weft_host_exchanges_give(struct weft_host_exchanges *exchanges, int host, const void *payload,
                             size_t bytes) {
    struct weft_tree_given given;
    if (!weft_tree_given_read(&given, payload, bytes, exchanges->npes))
        return -EPROTO;
    struct weft_host_exchange **at = exchange_find(exchanges, host, &given), *it = *at;
    if (!it && exchanges->nopen == OPEN_MAX)
        return -EPROTO;
    if (!it && !(it = exchange_begin(exchanges, &given)))
        return -ENOMEM;
    bool begun = *at != NULL;
    exchanges->nopen += !begun;
    *at = it;
    size_t wanted = given.head.status ? 0 : (size_t)it->left[host] * given.head.bytes;
    bool fits = given.head.status == 0 && given.head.bytes == it->given.head.bytes;
    int error = it->left[host] == 0 || given.bytes != wanted ? -EPROTO : 0;
    if (error == 0 && !fits && !it->given.head.status)
        error = exchange_fail(it, exchanges->npes);
    if (error) {
        if (!begun || !it->payload)
            exchange_free(exchanges, at);
        return error;
    }
    contributions_place(exchanges, it, host, &given);
    if (it->gave.count < it->given.members.count)
        return 0;
    exchange_share(exchanges, it);
    exchange_free(exchanges, at);
    return 0;
}

bool weft_host_exchanges_await(const struct weft_host_exchanges *exchanges, int host) {
    for (const struct weft_host_exchange *it = exchanges->open; it; it = it->next)
        if (it->left[host])
            return true;
    return false;
}

void weft_host_exchanges_judge(struct weft_host_exchanges *exchanges,
                               const struct weft_control *control) {
    for (struct weft_host_exchange **at = &exchanges->open; *at;) {
        struct weft_host_exchange *it = *at;
        if (it->given.head.key &&
            weft_control_find_gone(control, exchanges->npes, &it->given.members, &it->gave) >= 0)
            exchange_free(exchanges, at);
        else
            at = &it->next;
    }
}
