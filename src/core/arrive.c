/* SPDX-License-Identifier: BSD-3-Clause */
/* Letters that arrive, of one link (core/link.h): they are applied in the order of their numbers.
 *
 * What a letter begins may take its time, where memory is a GPU's. Then the rest of that letter is
 * put off, all behind it waits as if it had come early, and whoever looks next goes on: nobody
 * waits under the lock, and nothing is acknowledged before it is there. */
#include <stdlib.h>
#include <string.h>
#include "core/bundle.h"
#include "core/job.h"
#include "core/link.h"

/* False: the letter has been refused. */
static bool link_hear(struct weft_link *link, uint32_t heard) {
    uint32_t before = link->acknowledged;
    if (!weft_epoch_reached(heard, before))
        return true; /* this letter has been overtaken */
    if (heard - before > link->sent - before)
        return weft_letter_refuse(link->pe, "it acknowledges letter %u, and %u was the last", heard,
                                  link->sent);
    link->acknowledged = heard;
    if (weft_epoch_reached(heard, link->written))
        link->written = heard;
    if (weft_epoch_reached(heard, link->asked))
        link->asked = heard;
    weft_link_count(link);
    return true;
}

static void link_take_answer(struct weft_link *link, const void *text, size_t bytes) {
    if (link->answered == link->requested) {
        weft_letter_refuse(link->pe, "it answers what nobody has asked");
        return;
    }
    struct weft_letter_request request = link->requests[link->answered % WEFT_LINK_REQUESTS];
    weft_links.user->answered(link->pe, &request, text, bytes);
    link->answer_bytes -= request.block_bytes * request.nblocks;
    link->answered++;
    weft_link_count(link);
    if (request.missing)
        atomic_fetch_sub_explicit(request.missing, 1, memory_order_release);
    if (request.sequel)
        request.sequel->answered(request.sequel);
}

/* How much is left at the end, for later. */
static size_t link_apply_bundle(struct weft_link *link, const char *texts, size_t bytes) {
    const void *text;
    size_t left = bytes, part;
    while (left > 0 && !weft_links.failure[0]) {
        const char *next = texts;
        size_t behind = left;
        if (!(text = weft_bundle_take(&next, &behind, &part)))
            weft_letter_refuse(link->pe, "a bundle ends within a letter");
        else if (!weft_links.user->apply(link->pe, text, part))
            break;
        texts = next;
        left = behind;
    }
    return left;
}

/* Whether the letter counts as applied; if not so many bytes at its end are left for later. */
static bool link_apply(struct weft_link *link, const struct head *head, const void *text,
                       size_t bytes, size_t *left) {
    link->applying = head->number;
    *left = 0;
    if (head->sort == ANSWER)
        link_take_answer(link, text, bytes);
    else if (head->sort == BUNDLE)
        *left = link_apply_bundle(link, text, bytes);
    else if (!link->put_off || bytes > 0)
        *left = weft_links.user->apply(link->pe, text, bytes) ? 0 : bytes;
    link->told_bytes += (uint32_t)(bytes - *left);
    if (*left > 0 || !weft_links.user->settled(link->pe))
        return false;
    link->applied = head->number;
    link->told_bytes += (uint32_t)sizeof *head;
    return true;
}

static struct weft_letter_kept *letter_copy(const struct weft_link *link, const struct head *head,
                                            const void *text, size_t bytes) {
    struct weft_letter_kept *kept = malloc(sizeof *kept + sizeof *head + bytes);
    if (!kept) {
        weft_link_fail("no memory for a letter of %zu bytes from PE %d", bytes, link->pe);
        return NULL;
    }
    *kept = (struct weft_letter_kept){.bytes = sizeof *head + bytes};
    memcpy(kept->letter, head, sizeof *head);
    if (bytes > 0)
        memcpy(kept->letter + sizeof *head, text, bytes);
    return kept;
}

static void link_hold(struct weft_link *link, const struct head *head, const void *text,
                      size_t bytes) {
    struct weft_letter_kept **place = &link->early[head->number % WEFT_LINK_RING];
    bool ordered = link->engine && weft_links.engine->abilities(link->engine) & WEFT_ENGINE_ORDERED;
    if (*place || (ordered && !link->put_off)) {
        weft_letter_refuse(link->pe, "number %u came %s, behind %u", head->number,
                           *place ? "twice" : "early from an engine that promises order",
                           link->applied);
        return;
    }
    *place = letter_copy(link, head, text, bytes);
}

/* Has it looked at again, if something has been put off. It is not in the list. */
static void link_list_put_off(struct weft_link *link) {
    if (!link->put_off)
        return;
    link->next_put_off = weft_links.put_off;
    weft_links.put_off = link;
    atomic_fetch_add(&weft_links_put_off, 1);
}

/* What has been put off, and letters that came early and whose turn it is. */
static void link_apply_held(struct weft_link *link) {
    struct weft_letter_kept **place, *kept;
    while ((kept = *(place = &link->early[(link->applied + 1) % WEFT_LINK_RING]))) {
        struct head head;
        memcpy(&head, kept->letter, sizeof head);
        unsigned char *text = kept->letter + sizeof head;
        size_t bytes = kept->bytes - sizeof head, left;
        if (!link_apply(link, &head, text, bytes, &left)) {
            memmove(text, text + bytes - left, left);
            kept->bytes = sizeof head + left;
            link->put_off = true;
            return;
        }
        *place = NULL;
        link->put_off = false;
        free(kept);
    }
}

/* The next letter, where nothing has been put off. */
static void link_take_next(struct weft_link *link, const struct head *head, const char *text,
                           size_t bytes) {
    size_t left;
    if (link_apply(link, head, text, bytes, &left)) {
        link_apply_held(link);
    } else {
        struct weft_letter_kept *rest = letter_copy(link, head, text + bytes - left, left);
        link->early[head->number % WEFT_LINK_RING] = rest;
        link->put_off = rest != NULL;
    }
    link_list_put_off(link);
}

static void link_take(struct weft_link *link, const struct head *head, const char *text,
                      size_t bytes) {
    uint32_t ahead = head->number - link->applied;
    if (ahead == 0 || ahead >= WEFT_LINK_RING) {
        weft_letter_refuse(link->pe, "it has the number %u, and %u was the last", head->number,
                           link->applied);
    } else if (ahead > 1 || link->put_off) {
        link_hold(link, head, text, bytes);
    } else {
        link_take_next(link, head, text, bytes);
    }
}

static bool link_go_on(struct weft_link *link) {
    uint32_t before = link->applied;
    link_apply_held(link);
    link_list_put_off(link);
    weft_link_tell(link);
    return link->applied != before;
}

bool weft_links_go_on(void) {
    struct weft_link *link = weft_links.put_off, *next;
    bool moved = false;
    weft_links.put_off = NULL;
    for (; link; link = next) {
        next = link->next_put_off;
        atomic_fetch_sub(&weft_links_put_off, 1);
        moved |= link_go_on(link);
    }
    return moved;
}

void weft_link_arrived(void *unused, const void *letter, size_t bytes) {
    struct head head;
    (void)unused;
    if (weft_links.failure[0])
        return; /* the job ends */
    if (bytes < sizeof head) {
        weft_link_fail("a letter of %zu bytes has arrived, which has no head (engine '%s')", bytes,
                       weft_links.engine->name);
        return;
    }
    memcpy(&head, letter, sizeof head);
    if (head.from >= (uint32_t)weft_job.npes || head.sort > BUNDLE) {
        weft_link_fail("a letter has arrived of PE %u, sort %u, and there is no such (engine '%s')",
                       head.from, head.sort, weft_links.engine->name);
        return;
    }
    struct weft_link *link = weft_link_of((int)head.from);
    if (!link || !link_hear(link, head.heard))
        return;
    if (head.asks && weft_epoch_reached(head.number, link->wanted))
        link->wanted = head.number;
    if (head.sort != CONTROL)
        link_take(link, &head, (const char *)letter + sizeof head, bytes - sizeof head);
    weft_link_tell(link);
}
