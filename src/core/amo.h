/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics on a peer's word: one instruction of this processor.
 *
 * The specification orders atomics only by fence, quiet and waits. Here a fetch also acquires and a
 * set also releases, because programs poll with them and it is free on x86: neither is a locked
 * instruction. If the old value is not wanted, the cheaper non-fetching instruction is used. */
#ifndef WEFT_CORE_AMO_H
#define WEFT_CORE_AMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/amo_apply.h"
#include "job/poll.h"
#include "core/dispatch.h"
#include "core/misuse.h"

#define WEFT_AMO_INLINE static inline __attribute__((always_inline))

/* The constants of a call as one number: the operation, the bytes of the word, and whether the old
 * value is wanted. (gcc 12 would store the members of a struct to memory.) */
typedef uint32_t weft_amo_kind;
WEFT_AMO_INLINE weft_amo_kind weft_amo_kind_of(enum weft_amo_op op, size_t bytes, bool fetches) {
    return (uint32_t)op | (uint32_t)bytes << 8 | (uint32_t)fetches << 16;
}

WEFT_AMO_INLINE enum weft_amo_op weft_amo_kind_op(weft_amo_kind kind) {
    return (enum weft_amo_op)(kind & 0xff);
}

WEFT_AMO_INLINE size_t weft_amo_kind_bytes(weft_amo_kind kind) {
    return kind >> 8 & 0xff;
}

WEFT_AMO_INLINE bool weft_amo_kind_fetches(weft_amo_kind kind) {
    return kind >> 16;
}

/* As weft_amo, for a word that is not near, and for calls that cannot know whether it is. */
WEFT_COLD uint64_t weft_amo_slow(weft_amo_kind kind, void *dest, uint64_t value, uint64_t cond,
                                 int pe, const char *call);

/* As weft_amo_slow, with the old value stored at amo->fetch, which may be GPU memory. */
WEFT_COLD void weft_amo_fetch_slow(const struct weft_amo *amo, int pe, const char *call);

/* Performs an atomic on the word at dest on world PE `pe`; returns its old value if the kind wants
 * it. Operands are the bits of integers or floating-point numbers: `value`, or 0 if the operation
 * has none; `cond`, for compare-and-swap only. With a constant kind this is one instruction after
 * the bounds check. */
WEFT_AMO_INLINE uint64_t weft_amo(weft_amo_kind kind, void *dest, uint64_t value, uint64_t cond,
                                  int pe, const char *call) {
    void *near = weft_near(dest, weft_amo_kind_bytes(kind), pe);
    if (__builtin_expect(!near, 0))
        return weft_amo_slow(kind, dest, value, cond, pe, call);
    uint64_t before =
        weft_amo_apply(weft_amo_kind_op(kind), weft_amo_kind_bytes(kind), near, value, cond);
    if (weft_amo_kind_fetches(kind) && __builtin_expect(weft_job.oversubscribed, 0))
        return weft_poll_look(dest, pe, before, call);
    return before;
}

#endif
