/* SPDX-License-Identifier: BSD-3-Clause */
/* The bodies of atomics: what the routines of all types and names share. */
#ifndef WEFT_API_AMO_H
#define WEFT_API_AMO_H

#include "core/amo.h"
#include "api/checked.h"
#include "api/detour.h"
#include "api/misuse.h"

#define WEFT_AMO_ARGUMENTS                                                                    \
    const char *call, enum weft_amo_op op, size_t bytes, const void *dest, const void *value, \
        const void *cond, void *fetched, const void *fetch, int pe

static inline const char *weft_api_amo_target(enum weft_amo_op op) {
    return op == WEFT_AMO_FETCH ? "source" : "dest";
}

/* Inlined with a constant operation and width, so that one instruction is left of it. `fetch` is
 * where the user wants the word before; NULL: nowhere of the user's. */
static inline __attribute__((always_inline)) void weft_api_amo_now(WEFT_AMO_ARGUMENTS) {
    (void)fetch;
    if (__builtin_expect(weft_amo(op, bytes, (void *)dest, value, cond, fetched, pe) != 0, 0))
        weft_misuse_access(call, weft_api_amo_target(op), dest, bytes, pe);
}

WEFT_COLD static void weft_api_amo_detour(WEFT_AMO_ARGUMENTS) {
    if (weft_checked())
        weft_checked_access(call,
                            &(struct weft_access){weft_api_amo_target(op), fetch ? "fetch" : NULL,
                                                  dest, fetch, bytes, bytes, bytes, pe, false});
    if (weft_for_device(dest, fetch)) {
        if (weft_space_device->rma->amo(op, bytes, (void *)dest, value, cond, fetched, pe, call) !=
            0)
            weft_misuse_access(call, weft_api_amo_target(op), dest, bytes, pe);
        return;
    }
    weft_api_amo_now(call, op, bytes, dest, value, cond, fetched, fetch, pe);
    if (fetched)
        weft_fetched(dest, fetched, bytes, pe, call);
}

static inline __attribute__((always_inline)) void weft_api_amo(WEFT_AMO_ARGUMENTS) {
    if (!(fetched ? weft_fetch_detour() : weft_detour())) {
        weft_api_amo_now(call, op, bytes, dest, value, cond, fetched, fetch, pe);
    } else if (fetched && !weft_detour()) { /* only crowded */
        weft_api_amo_now(call, op, bytes, dest, value, cond, fetched, fetch, pe);
        weft_fetched(dest, fetched, bytes, pe, call);
    } else {
        weft_api_amo_detour(call, op, bytes, dest, value, cond, fetched, fetch, pe);
    }
}

/* clang-format off */
/* What becomes of the word before: nobody wants it, it is returned, or it is stored at `fetch`. */
#define AMO_SILENT(OP, T, DEST, VALUE, COND)                                                       \
    weft_api_amo(__func__, OP, sizeof(T), DEST, VALUE, COND, NULL, NULL, pe);
#define AMO_RETURN(OP, T, DEST, VALUE, COND)                                                       \
    T before;                                                                                      \
    weft_api_amo(__func__, OP, sizeof(T), DEST, VALUE, COND, &before, NULL, pe);                   \
    return before;
#define AMO_STORE(OP, T, DEST, VALUE, COND)                                                        \
    weft_check_local(__func__, "fetch", fetch, sizeof(T));                                         \
    weft_api_amo(__func__, OP, sizeof(T), DEST, VALUE, COND, fetch, fetch, pe);
/* clang-format on */

#endif
