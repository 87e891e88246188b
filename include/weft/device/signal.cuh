/* SPDX-License-Identifier: BSD-3-Clause */
/* Words that members tell each other: plain ones, signals with the data before them, atomics; and
 * waiting for one's own. */
#ifndef WEFT_DEVICE_SIGNAL_CUH
#define WEFT_DEVICE_SIGNAL_CUH

#include "weft/device/copy.cuh"
#include "weft/device/spin.cuh"

/* --- Words: one instruction, never torn, in no order --------------------------------------------
 */

#define WEFT_WORDS(bits)                                                                   \
    WEFT_DEVICE void weft_p##bits(const weft_device_team *t, uint##bits##_t *dest,         \
                                  uint##bits##_t value, int m) {                           \
        weft_st_relaxed_sys_u##bits((uint##bits##_t *)weft_at(t, dest, m), value);         \
    }                                                                                      \
    WEFT_DEVICE uint##bits##_t weft_g##bits(const weft_device_team *t,                     \
                                            const uint##bits##_t *source, int m) {         \
        return weft_ld_relaxed_sys_u##bits((const uint##bits##_t *)weft_at(t, source, m)); \
    }
WEFT_WORDS(32)
WEFT_WORDS(64)
#undef WEFT_WORDS

/* --- Order ---------------------------------------------------------------------------------------
 */

/* What this thread has stored, and what it knows others to have stored, is seen by whoever sees a
 * later store of its. Both are one instruction; a quiet also says that all has arrived. */
WEFT_DEVICE void weft_fence(void) {
    weft_fence_sys();
}
WEFT_DEVICE void weft_quiet(void) {
    weft_fence_sys();
}

/* The same of all of a block's stores, by all of its threads: one of them pays for the fence. A
 * relaxed signal behind it is given by the block's first thread. */
WEFT_DEVICE void weft_fence_b(void) {
    weft_block_sync();
    if (weft_block_rank() == 0)
        weft_fence_sys();
    weft_block_sync();
}
WEFT_DEVICE void weft_quiet_b(void) {
    weft_fence_b();
}

/* --- Signals -------------------------------------------------------------------------------------
 */

/* Sets, or adds to, member m's signal behind all that this thread has stored before (and what it
 * has synchronised with): a release. */
WEFT_DEVICE void weft_signal(const weft_device_team *t, uint64_t *sig, uint64_t value, int m) {
    weft_st_release_sys_u64((uint64_t *)weft_at(t, sig, m), value);
}
WEFT_DEVICE void weft_signal_add(const weft_device_team *t, uint64_t *sig, uint64_t value, int m) {
    weft_red_add_sys_u64((uint64_t *)weft_at(t, sig, m), value);
}

/* In no order: behind a weft_fence of this thread, or where the signal is all there is to say. */
WEFT_DEVICE void weft_signal_relaxed(const weft_device_team *t, uint64_t *sig, uint64_t value,
                                     int m) {
    weft_st_relaxed_sys_u64((uint64_t *)weft_at(t, sig, m), value);
}

/* WEFT_SIGNAL_SET or WEFT_SIGNAL_ADD. */
WEFT_DEVICE void weft_signal_by(const weft_device_team *t, uint64_t *sig, uint64_t value, int op,
                                int m) {
    if (op == WEFT_SIGNAL_ADD)
        weft_signal_add(t, sig, value, m);
    else
        weft_signal(t, sig, value, m);
}

/* A put, and the signal behind it: who has waited for the signal sees the data. The threads have
 * met in between; source may be written when they return. */
WEFT_DEVICE void weft_put_signal_t(const weft_device_team *t, void *dest, const void *source,
                                   size_t bytes, uint64_t *sig, uint64_t value, int op, int m) {
    weft_put_t(t, dest, source, bytes, m);
    weft_signal_by(t, sig, value, op, m);
}
WEFT_DEVICE void weft_put_signal_w(const weft_device_team *t, void *dest, const void *source,
                                   size_t bytes, uint64_t *sig, uint64_t value, int op, int m) {
    weft_put_w(t, dest, source, bytes, m);
    weft_warp_sync();
    if (weft_lane() == 0)
        weft_signal_by(t, sig, value, op, m);
}
WEFT_DEVICE void weft_put_signal_b(const weft_device_team *t, void *dest, const void *source,
                                   size_t bytes, uint64_t *sig, uint64_t value, int op, int m) {
    weft_put_b(t, dest, source, bytes, m);
    weft_block_sync();
    if (weft_block_rank() == 0)
        weft_signal_by(t, sig, value, op, m);
}

/* --- Waiting for own signals ---------------------------------------------------------------------
 */

WEFT_DEVICE uint64_t weft_signal_fetch(const weft_device_team *t, const uint64_t *sig) {
    (void)t;
    return weft_ld_acquire_sys_u64(sig);
}

/* 1: the word compares, and what was stored before it was set is seen. 0: the job is over, and the
 * kernel is to return. test: 1 or 0, at once. */
#define WEFT_WAITS(name, T, suffix, order)                                                  \
    WEFT_DEVICE int weft_wait_until##name(const weft_device_team *t, const T *sig, int cmp, \
                                          T value) {                                        \
        struct weft_spin spin = {0, 0, 0, 0};                                               \
        struct weft_gpu_abort abort = weft_abort_of(t);                                     \
        while (!weft_compares_##suffix(cmp, weft_ld_##order##_sys_##suffix(sig), value))    \
            if (!weft_spin(&spin, abort))                                                   \
                return 0;                                                                   \
        return 1;                                                                           \
    }
WEFT_WAITS(, uint64_t, u64, acquire)
WEFT_WAITS(_relaxed, uint64_t, u64, relaxed)
WEFT_WAITS(32, uint32_t, u32, acquire)
#undef WEFT_WAITS

WEFT_DEVICE int weft_wait_ge(const weft_device_team *t, const uint64_t *sig, uint64_t value) {
    return weft_wait_until(t, sig, WEFT_CMP_GE, value);
}
WEFT_DEVICE int weft_wait_eq(const weft_device_team *t, const uint64_t *sig, uint64_t value) {
    return weft_wait_until(t, sig, WEFT_CMP_EQ, value);
}

WEFT_DEVICE int weft_test_until(const weft_device_team *t, const uint64_t *sig, int cmp,
                                uint64_t value) {
    (void)t;
    return weft_compares_u64(cmp, weft_ld_acquire_sys_u64(sig), value);
}
WEFT_DEVICE int weft_test_until32(const weft_device_team *t, const uint32_t *sig, int cmp,
                                  uint32_t value) {
    (void)t;
    return weft_compares_u32(cmp, weft_ld_acquire_sys_u32(sig), value);
}

/* -1: so many nanoseconds have passed, or a few looks more. */
WEFT_DEVICE int weft_wait_until_ns(const weft_device_team *t, const uint64_t *sig, int cmp,
                                   uint64_t value, uint64_t ns) {
    struct weft_spin spin = {0, 0, 0, 0};
    struct weft_gpu_abort abort = weft_abort_of(t);
    uint64_t began = weft_globaltimer();
    while (!weft_compares_u64(cmp, weft_ld_acquire_sys_u64(sig), value)) {
        if (!weft_spin(&spin, abort))
            return 0;
        if (spin.turns % WEFT_SPIN_TURNS == 0 && weft_globaltimer() - began >= ns)
            return -1;
    }
    return 1;
}

/* By a warp or a block: one thread waits, and all return together with its result. */
WEFT_DEVICE int weft_wait_until_w(const weft_device_team *t, const uint64_t *sig, int cmp,
                                  uint64_t value) {
    return !weft_warp_sync_any(weft_lane() == 0 && !weft_wait_until(t, sig, cmp, value));
}
WEFT_DEVICE int weft_wait_until_b(const weft_device_team *t, const uint64_t *sig, int cmp,
                                  uint64_t value) {
    return !weft_block_sync_any(weft_block_rank() == 0 && !weft_wait_until(t, sig, cmp, value));
}
WEFT_DEVICE int weft_wait_ge_w(const weft_device_team *t, const uint64_t *sig, uint64_t value) {
    return weft_wait_until_w(t, sig, WEFT_CMP_GE, value);
}
WEFT_DEVICE int weft_wait_ge_b(const weft_device_team *t, const uint64_t *sig, uint64_t value) {
    return weft_wait_until_b(t, sig, WEFT_CMP_GE, value);
}

/* --- Atomics -------------------------------------------------------------------------------------
 */

/* On member m's word, where t->flags has WEFT_DEVICE_ATOMICS; otherwise on own words, and only if
 * all who change the word are on one GPU. Those with a result acquire and release, the others
 * release; fetch acquires and set releases. */
#define WEFT_ATOMIC_FETCHING(name, instruction, bits)                                       \
    WEFT_DEVICE uint##bits##_t weft_atomic_##name##bits(                                    \
        const weft_device_team *t, uint##bits##_t *word, uint##bits##_t value, int m) {     \
        return weft_atom_##instruction##_sys_u##bits((uint##bits##_t *)weft_at(t, word, m), \
                                                     value);                                \
    }
#define WEFT_ATOMIC_CHANGING(name, instruction, bits)                                          \
    WEFT_DEVICE void weft_atomic_##name##bits(const weft_device_team *t, uint##bits##_t *word, \
                                              uint##bits##_t value, int m) {                   \
        weft_##instruction##_sys_u##bits((uint##bits##_t *)weft_at(t, word, m), value);        \
    }
#define WEFT_ATOMICS(bits)                                                                    \
    WEFT_ATOMIC_FETCHING(swap, exch, bits)                                                    \
    WEFT_ATOMIC_FETCHING(fetch_add, add, bits)                                                \
    WEFT_ATOMIC_FETCHING(fetch_and, and, bits)                                                \
    WEFT_ATOMIC_FETCHING(fetch_or, or, bits)                                                  \
    WEFT_ATOMIC_FETCHING(fetch_xor, xor, bits)                                                \
    WEFT_ATOMIC_CHANGING(set, st_release, bits)                                               \
    WEFT_ATOMIC_CHANGING(add, red_add, bits)                                                  \
    WEFT_ATOMIC_CHANGING(and, red_and, bits)                                                  \
    WEFT_ATOMIC_CHANGING(or, red_or, bits)                                                    \
    WEFT_ATOMIC_CHANGING(xor, red_xor, bits)                                                  \
    WEFT_DEVICE uint##bits##_t weft_atomic_fetch##bits(const weft_device_team *t,             \
                                                       const uint##bits##_t *word, int m) {   \
        return weft_ld_acquire_sys_u##bits((const uint##bits##_t *)weft_at(t, word, m));      \
    }                                                                                         \
    WEFT_DEVICE uint##bits##_t weft_atomic_compare_swap##bits(                                \
        const weft_device_team *t, uint##bits##_t *word, uint##bits##_t cond,                 \
        uint##bits##_t value, int m) {                                                        \
        return weft_atom_cas_sys_u##bits((uint##bits##_t *)weft_at(t, word, m), cond, value); \
    }
WEFT_ATOMICS(32)
WEFT_ATOMICS(64)
#undef WEFT_ATOMICS
#undef WEFT_ATOMIC_FETCHING
#undef WEFT_ATOMIC_CHANGING

#endif
