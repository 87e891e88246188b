/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics that take the slow path: the word may not be near, or its old value may go to GPU
 * memory. */
#include "core/amo.h"
#include <string.h>

/* Performs the atomic through this operation table or, if it is NULL, on this processor. */
static void amo_make(const struct weft_amo *amo, const struct weft_operations *operations, int pe,
                     const char *call) {
    WEFT_IN_CALL(call);
    void *near = operations ? NULL : weft_near(amo->dest, amo->bytes, pe);
    if (!near) {
        if (!operations || operations->amo(amo, pe) != 0)
            weft_misuse_access(call, amo->op == WEFT_AMO_FETCH ? "source" : "dest", amo->dest,
                               amo->bytes, pe);
        return;
    }
    uint64_t before = weft_amo_apply(amo->op, amo->bytes, near, amo->value, amo->cond);
    if (!amo->fetch)
        return;
    memcpy(amo->fetch, &before, amo->bytes);
    if (weft_job.oversubscribed)
        weft_poll_look(amo->dest, pe, before, call);
}

uint64_t weft_amo_slow(weft_amo_kind kind, void *dest, uint64_t value, uint64_t cond, int pe,
                       const char *call) {
    uint64_t before = 0;
    struct weft_amo amo = {weft_amo_kind_op(kind),
                           weft_amo_kind_bytes(kind),
                           dest,
                           value,
                           cond,
                           weft_amo_kind_fetches(kind) ? &before : NULL};
    amo_make(&amo, weft_dispatch_of(dest, NULL, pe), pe, call);
    return before;
}

void weft_amo_fetch_slow(const struct weft_amo *amo, int pe, const char *call) {
    amo_make(amo, weft_dispatch_of(amo->dest, amo->fetch, pe), pe, call);
}
