/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/pad.h"
#include <errno.h>
#include <stdbool.h>
#include "base/clock.h"
#include "base/log.h"
#include "job/wait.h"
#include "job/window.h"
#include "core/share.h"

static uint32_t *word_of(const struct weft_pad *pad, int owner, int source) {
    return &pad->pads[owner][(size_t)pad->n * (size_t)pad->channel + (size_t)source];
}

static bool change(uint32_t *word, uint32_t from) {
    return __atomic_compare_exchange_n(word, &from, 1 - from, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_RELAXED);
}

/* Returns the PE whose memory contains a rank's pad, or WEFT_PE_ANY if that is unknown. */
static int pe_of(const struct weft_pad *pad, int rank) {
    const struct weft_window *heap = &weft_windows.heap.window;
    size_t offset;
    uint32_t slot = weft_window_slot_of(heap, pad->pads[rank], &offset);
    int pe = weft_share_pe_of(pad->pads[pad->me], pad->pads[rank]);
    if (pe < 0 && slot < heap->count)
        pe = (int)(heap->first + slot * heap->step);
    return pe < 0 ? WEFT_PE_ANY : pe;
}

/* Waits until the word has the value `from`, then changes it to the other value. Returns 0, or
 * -ETIMEDOUT with text. */
static int change_in_time(const struct weft_pad *pad, uint32_t *word, uint32_t from, int peer) {
    if (change(word, from))
        return 0;
    struct weft_waiter waiter = {.pe = WEFT_PE_ANY, .limited = pad->timeout_ms != 0};
    /* A program that has set a limit continues without the peer if need be. */
    bool names_peer = !waiter.limited;
    uint64_t since_ns = weft_clock_ns();
    bool late = false;
    while (!late && !change(word, from)) {
        weft_waiter_turn(&waiter);
        if (names_peer && waiter.since_ns) { /* most waits are over before this */
            waiter.pe = pe_of(pad, peer);
            names_peer = false;
        }
        late = waiter.limited && (weft_clock_ns() - since_ns) / WEFT_NS_PER_MS >= pad->timeout_ms;
    }
    weft_waiter_end(&waiter);
    if (!late)
        return 0;
    const char *what = from == 0 ? "has not been heard by" : "has heard nothing from";
    return weft_fail(-ETIMEDOUT, "rank %d %s rank %d on channel %d of its signal pad for %llu ms",
                     pad->me, what, peer, pad->channel, (unsigned long long)pad->timeout_ms);
}

int weft_pad_put(const struct weft_pad *pad, int peer) {
    return change_in_time(pad, word_of(pad, peer, pad->me), 0, peer);
}

int weft_pad_wait(const struct weft_pad *pad, int peer) {
    return change_in_time(pad, word_of(pad, pad->me, peer), 1, peer);
}

int weft_pad_barrier(const struct weft_pad *pad) {
    int error = 0;
    for (int peer = 0; peer < pad->n && error == 0; peer++)
        if (peer != pad->me)
            error = weft_pad_put(pad, peer);
    for (int peer = 0; peer < pad->n && error == 0; peer++)
        if (peer != pad->me)
            error = weft_pad_wait(pad, peer);
    return error;
}
