/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/pad.h"
#include <errno.h>
#include <stdbool.h>
#include "base/clock.h"
#include "base/log.h"
#include "core/wait.h"

/* A wait for one word of a pad. */
struct spell {
    const struct weft_pad *pad;
    int peer;
    const char *what, *call;
    uint64_t since_ns;
    struct weft_waiter waiter;
};

static struct spell spell_of(const struct weft_pad *pad, int peer, const char *what,
                             const char *call) {
    struct weft_waiter waiter = {.call = call, .pe = WEFT_PE_ANY, .limited = pad->timeout_ms != 0};
    return (struct spell){pad, peer, what, call, weft_clock_ns(), waiter};
}

/* 0, or -ETIMEDOUT with text. */
static int turn(struct spell *spell) {
    const struct weft_pad *pad = spell->pad;
    weft_waiter_turn(&spell->waiter);
    if (pad->timeout_ms == 0 || (weft_clock_ns() - spell->since_ns) / 1000000 < pad->timeout_ms)
        return 0;
    return weft_fail(-ETIMEDOUT,
                     "%s: rank %d %s rank %d on channel %d of its signal pad for %llu ms",
                     spell->call, pad->me, spell->what, spell->peer, pad->channel,
                     (unsigned long long)pad->timeout_ms);
}

static uint32_t *word_of(const struct weft_pad *pad, int owner, int source) {
    return &pad->pads[owner][(size_t)pad->n * (size_t)pad->channel + (size_t)source];
}

static bool change(uint32_t *word, uint32_t from, uint32_t to) {
    return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

int weft_pad_put(const struct weft_pad *pad, int peer, const char *call) {
    uint32_t *word = word_of(pad, peer, pad->me);
    if (change(word, 0, 1))
        return 0;
    struct spell spell = spell_of(pad, peer, "has not been heard by", call);
    int rc = 0;
    while (rc == 0 && !change(word, 0, 1))
        rc = turn(&spell);
    weft_waiter_end(&spell.waiter);
    return rc;
}

int weft_pad_wait(const struct weft_pad *pad, int peer, const char *call) {
    uint32_t *word = word_of(pad, pad->me, peer);
    if (change(word, 1, 0))
        return 0;
    struct spell spell = spell_of(pad, peer, "has heard nothing from", call);
    int rc = 0;
    while (rc == 0 && !change(word, 1, 0))
        rc = turn(&spell);
    weft_waiter_end(&spell.waiter);
    return rc;
}

int weft_pad_barrier(const struct weft_pad *pad, const char *call) {
    int rc = 0;
    for (int peer = 0; peer < pad->n && rc == 0; peer++)
        if (peer != pad->me)
            rc = weft_pad_put(pad, peer, call);
    for (int peer = 0; peer < pad->n && rc == 0; peer++)
        if (peer != pad->me)
            rc = weft_pad_wait(pad, peer, call);
    return rc;
}
