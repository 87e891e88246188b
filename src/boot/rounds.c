/* SPDX-License-Identifier: BSD-3-Clause */
/* Contributions of a host are in the order of its PEs; those of the job are, too. */
#include "boot/rounds.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "boot/hosts.h"

static size_t host_bytes(const struct weft_rounds *rounds, int host, size_t bytes) {
    size_t total = 0;
    for (int pe = 0; pe < rounds->npes; pe++)
        total += weft_boot_host(pe) == host ? bytes : 0;
    return total;
}

static void contributions_place(struct weft_rounds *rounds, int host, const unsigned char *from) {
    size_t bytes = rounds->round.bytes;
    unsigned char *to = rounds->shares + sizeof rounds->round;
    for (int pe = 0; pe < rounds->npes; pe++, to += bytes)
        if (weft_boot_host(pe) == host) {
            memcpy(to, from, bytes);
            from += bytes;
        }
}

int weft_rounds_give(struct weft_rounds *rounds, int host, const void *payload, size_t bytes,
                     size_t *shared) {
    struct weft_tree_round head;
    if (bytes < sizeof head)
        return -EPROTO;
    memcpy(&head, payload, sizeof head);
    if (head.round != rounds->round.round || rounds->gave[host] ||
        head.bytes > WEFT_BOOT_BLOB_MAX ||
        bytes != sizeof head + host_bytes(rounds, host, head.bytes) ||
        (rounds->given && head.bytes != rounds->round.bytes))
        return -EPROTO;
    *shared = sizeof head + (size_t)rounds->npes * head.bytes;
    if (rounds->given == 0) {
        rounds->round = head;
        rounds->shares = malloc(*shared);
        if (!rounds->shares)
            return -ENOMEM;
        memcpy(rounds->shares, &head, sizeof head);
    }
    contributions_place(rounds, host, (const unsigned char *)payload + sizeof head);
    rounds->gave[host] = true;
    return ++rounds->given == rounds->nhosts;
}

void weft_rounds_next(struct weft_rounds *rounds) {
    free(rounds->shares);
    rounds->shares = NULL;
    rounds->given = 0;
    rounds->round.round++;
    memset(rounds->gave, 0, sizeof rounds->gave);
}

bool weft_rounds_await(const struct weft_rounds *rounds, int host) {
    return rounds->given > 0 && !rounds->gave[host];
}
