/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges among some PEs that are on several hosts: each member sends what it gives to every
 * other one, by a letter, and waits until it has what all give. What comes early is kept; what one
 * PE says of one exchange comes in order, so exchanges of the same members follow each other. */
#include "core/far_meet.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "boot/boot.h"
#include "core/far_text.h"
#include "core/job.h"
#include "core/letter.h"

enum { KEPT_MAX = 1 << 16 };

/* What a PE has given to an exchange that this one has not come to, or not taken yet. */
struct kept {
    struct kept *next;
    uint64_t exchange;
    int from;
    size_t bytes;
    unsigned char given[];
};

static pthread_mutex_t keeping = PTHREAD_MUTEX_INITIALIZER;
static struct kept *first, **last = &first;
static int nkept;

bool weft_far_meet_keep(int from, uint64_t exchange, const void *given, size_t bytes) {
    if (bytes > WEFT_BOOT_BLOB_MAX)
        return weft_letter_refuse(from, "it gives %zu bytes to an exchange", bytes);
    struct kept *kept = malloc(sizeof *kept + bytes);
    if (!kept) {
        weft_link_fail("no memory for %zu bytes that PE %d gives to an exchange", bytes, from);
        return false;
    }
    *kept = (struct kept){.exchange = exchange, .from = from, .bytes = bytes};
    if (bytes)
        memcpy(kept->given, given, bytes);
    pthread_mutex_lock(&keeping);
    bool room = nkept < KEPT_MAX;
    if (room) {
        *last = kept;
        last = &kept->next;
        nkept++;
    }
    pthread_mutex_unlock(&keeping);
    if (room)
        return true;
    free(kept);
    return weft_letter_refuse(from, "%d gifts to exchanges are kept already", KEPT_MAX);
}

/* Where the earliest of this PE and exchange hangs; NULL hangs there: it has not come. */
static struct kept **kept_find(int from, uint64_t exchange) {
    struct kept **at = &first;
    while (*at && ((*at)->from != from || (*at)->exchange != exchange))
        at = &(*at)->next;
    return at;
}

/* It is the caller's to free; NULL: it has not come. */
static struct kept *kept_take(int from, uint64_t exchange) {
    pthread_mutex_lock(&keeping);
    struct kept **at = kept_find(from, exchange), *kept = *at;
    if (kept) {
        *at = kept->next;
        if (!*at)
            last = at;
        nkept--;
    }
    pthread_mutex_unlock(&keeping);
    return kept;
}

static bool kept_has(int from, uint64_t exchange) {
    pthread_mutex_lock(&keeping);
    bool has = *kept_find(from, exchange) != NULL;
    pthread_mutex_unlock(&keeping);
    return has;
}

void weft_far_meet_forget(void) {
    pthread_mutex_lock(&keeping);
    for (struct kept *kept = first, *next; kept; kept = next) {
        next = kept->next;
        free(kept);
    }
    first = NULL;
    last = &first;
    nkept = 0;
    pthread_mutex_unlock(&keeping);
}

/* A member from number i on that has finalized, and has not given; or -1. What a PE gave before it
 * departs is here once its departure is seen, because it departs when all that it sent is applied.
 */
static int gone_find(const struct weft_boot_subset *subset, int i, uint64_t number) {
    for (; i < subset->count; i++)
        if (weft_pe_departed(subset->pes[i]) && !kept_has(subset->pes[i], number))
            return subset->pes[i];
    return -1;
}

static void give(int pe, uint64_t number, const struct weft_exchange *exchange) {
    struct weft_far_text text = {.kind = WEFT_FAR_MEET, .place.offset = number};
    struct weft_letter letter = {
        .text = {{&text, sizeof text}, {(void *)exchange->mine, exchange->bytes}}, .nparts = 2};
    weft_letter_send(pe, &letter);
}

static int take(int member, uint64_t number, const struct weft_boot_subset *subset,
                struct weft_exchange *exchange) {
    struct weft_waiter waiter = {.pe = subset->pes[member]};
    struct kept *kept;
    int gone = -1;
    while (!(kept = kept_take(waiter.pe, number)) &&
           (gone = gone_find(subset, member, number)) < 0) {
        if (weft_job_aborted() && subset->over)
            subset->over();
        weft_letter_turn(&waiter);
    }
    weft_waiter_end(&waiter);
    if (!kept)
        return weft_fail(-ECONNABORTED, "PE %d has finalized and comes no more", gone);
    int error = kept->bytes == exchange->bytes ? 0 : -EPROTO;
    if (error == 0 && kept->bytes)
        memcpy((char *)exchange->all + (size_t)member * kept->bytes, kept->given, kept->bytes);
    free(kept);
    return error;
}

/* What has come of an exchange that does not fit together is taken, too: the next one of the same
 * members must not find it. */
int weft_far_meet(const struct weft_boot_subset *subset, uint64_t number,
                  struct weft_exchange *exchange) {
    int error = 0;
    for (int i = 0; i < subset->count; i++)
        if (subset->pes[i] != weft_job.pe)
            give(subset->pes[i], number, exchange);
    for (int i = 0; error != -ECONNABORTED && i < subset->count; i++) {
        int taken = 0;
        if (subset->pes[i] != weft_job.pe)
            taken = take(i, number, subset, exchange);
        else if (exchange->bytes)
            memcpy((char *)exchange->all + (size_t)i * exchange->bytes, exchange->mine,
                   exchange->bytes);
        error = taken ? taken : error;
    }
    return error;
}
