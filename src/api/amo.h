/* SPDX-License-Identifier: BSD-3-Clause */
/* The bodies of atomics, shared by the routines of all types and names. */
#ifndef WEFT_API_AMO_H
#define WEFT_API_AMO_H

#include <string.h>
#include "core/amo.h"
#include "api/check.h"
#include "api/checked.h"

#define WEFT_AMO_ARGUMENTS \
    weft_amo_kind kind, const void *dest, uint64_t value, uint64_t cond, int pe, const char *call

/* `fetch` is the caller's memory for the old value, or NULL if the routine returns it or discards
 * it. */
WEFT_COLD static void weft_api_amo_check(weft_amo_kind kind, const void *dest, const void *fetch,
                                         int pe, const char *call) {
    WEFT_IN_CALL(call);
    const char *target = weft_amo_kind_op(kind) == WEFT_AMO_FETCH ? "source" : "dest";
    weft_checked_access(&(struct weft_access){target, fetch ? "fetch" : NULL, dest, fetch,
                                              weft_amo_kind_bytes(kind), weft_amo_kind_bytes(kind),
                                              weft_amo_kind_bytes(kind), pe, false});
}

WEFT_COLD static uint64_t weft_api_amo_slow(WEFT_AMO_ARGUMENTS) {
    if (weft_checked())
        weft_api_amo_check(kind, dest, NULL, pe, call);
    return weft_amo_slow(kind, (void *)dest, value, cond, pe, call);
}

WEFT_COLD static void weft_api_amo_fetch_slow(WEFT_AMO_ARGUMENTS, void *fetch) {
    struct weft_amo amo = {
        weft_amo_kind_op(kind), weft_amo_kind_bytes(kind), (void *)dest, value, cond, fetch};
    if (weft_checked())
        weft_api_amo_check(kind, dest, fetch, pe, call);
    weft_amo_fetch_slow(&amo, pe, call);
}

/* Inlined with a constant kind, so that only one instruction remains. */
static inline __attribute__((always_inline)) uint64_t weft_api_amo(WEFT_AMO_ARGUMENTS) {
    if (weft_is_slow())
        return weft_api_amo_slow(kind, dest, value, cond, pe, call);
    return weft_amo(kind, (void *)dest, value, cond, pe, call);
}

static inline __attribute__((always_inline)) void weft_api_amo_fetch(WEFT_AMO_ARGUMENTS,
                                                                     void *fetch) {
    weft_check_local(call, "fetch", fetch, weft_amo_kind_bytes(kind));
    if (weft_is_slow()) {
        weft_api_amo_fetch_slow(kind, dest, value, cond, pe, call, fetch);
    } else {
        uint64_t before = weft_amo(kind, (void *)dest, value, cond, pe, call);
        memcpy(fetch, &before, weft_amo_kind_bytes(kind));
    }
}

/* Returns an operand's bits, or 0 if the operation has no such operand. */
static inline __attribute__((always_inline)) uint64_t weft_api_bits(const void *p, size_t bytes) {
    uint64_t bits = 0;
    if (p)
        memcpy(&bits, p, bytes);
    return bits;
}

/* clang-format off */
/* The old value is discarded, returned, or stored at `fetch`. */
#define AMO_KIND(OP, T, FETCHES) weft_amo_kind_of(OP, sizeof(T), FETCHES)
#define AMO_OPERANDS(T, DEST, VALUE, COND)                                                         \
    DEST, weft_api_bits(VALUE, sizeof(T)), weft_api_bits(COND, sizeof(T)), pe, __func__
#define AMO_SILENT(OP, T, DEST, VALUE, COND)                                                       \
    weft_api_amo(AMO_KIND(OP, T, false), AMO_OPERANDS(T, DEST, VALUE, COND));
#define AMO_RETURN(OP, T, DEST, VALUE, COND)                                                       \
    T before;                                                                                      \
    uint64_t bits = weft_api_amo(AMO_KIND(OP, T, true), AMO_OPERANDS(T, DEST, VALUE, COND));       \
    memcpy(&before, &bits, sizeof before);                                                         \
    return before;
#define AMO_STORE(OP, T, DEST, VALUE, COND)                                                        \
    weft_api_amo_fetch(AMO_KIND(OP, T, true), AMO_OPERANDS(T, DEST, VALUE, COND), fetch);
/* clang-format on */

#endif
