/* SPDX-License-Identifier: BSD-3-Clause */
/* A bundle has its number from its beginning on, so that whatever goes behind it is applied behind
 * it, whichever leaves first. Until it leaves it is the last letter that the link keeps. */
#include "core/gather.h"
#include "base/clock.h"
#include "core/bundle.h"

enum {
    TEXT_MAX = 512,  /* of a letter that is gathered */
    BURST_NS = 2000, /* a letter that comes later behind the one before it waits for no other */
};

_Atomic uint32_t weft_gather_burst;

/* Whether the letter, which may wait, comes in a burst of such. Where nothing is under way any more
 * a quiet may have passed, which leaves no trace then. */
static bool link_gathers(struct weft_link *link, uint64_t now_ns) {
    uint32_t burst = atomic_load_explicit(&weft_gather_burst, memory_order_relaxed);
    bool soon =
        link->unfinished && burst == link->small_burst && now_ns - link->small_ns < BURST_NS;
    link->small_burst = burst;
    link->small_ns = now_ns;
    return link->bundle || soon;
}

/* Whether a bundle has taken it; else it goes by itself. */
static bool link_gather(struct weft_link *link, const struct weft_letter *letter) {
    uint64_t now_ns = letter->may_wait ? weft_clock_ns() : 0;
    bool gathers = letter->may_wait && link_gathers(link, now_ns);
    if (!weft_link_add(link, letter) &&
        (!gathers || !weft_link_open_bundle(link, now_ns) || !weft_link_add(link, letter)))
        return false;
    if (!gathers)
        weft_link_send_kept(link);
    return true;
}

static bool is_small(const struct weft_letter *letter) {
    return weft_text_bytes(letter->text, letter->nparts) <= TEXT_MAX && !letter->request;
}

/* A send may take longer than the pause between two, so the time counts from its end on. */
bool weft_gather_try_send(struct weft_link *link, const struct weft_letter *letter) {
    if ((link->bundle || letter->may_wait) && is_small(letter) && link_gather(link, letter))
        return true;
    bool sent = weft_link_try_send(link, letter);
    if (sent && letter->may_wait)
        link->small_ns = weft_clock_ns();
    return sent;
}
