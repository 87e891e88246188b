/* SPDX-License-Identifier: BSD-3-Clause */
/* Words that members tell each other: plain ones, signals with the data before them, atomics; and
 * waiting for one's own. A word lies in the device heap, aligned, and `dest`, `sig` or `word` is
 * this member's address of it; m may be this member itself.
 *
 * Who sees a signal by an acquiring wait or load sees all that its sender had stored before it
 * released it: the thread itself, and whom it had synchronised with by __syncthreads() or
 * __syncwarp(), wherever those stores went. */
#ifndef WEFT_DEVICE_SIGNAL_CUH
#define WEFT_DEVICE_SIGNAL_CUH

#include "weft/device/copy.cuh"
#include "weft/device/spin.cuh"

/* --- Words ---------------------------------------------------------------------------------------
 */

/* weft_p32, weft_p64: stores; weft_g32, weft_g64: loads. One instruction, never torn, in no order;
 * they may be polled. */
#define WEFT_WORDS(bits)                                                                   \
    WEFT_DEVICE void weft_p##bits(const weft_device_team *t, uint##bits##_t *dest,         \
                                  uint##bits##_t value, int m) {                           \
        WEFT_CHECK_WORD(t, dest, m);                                                       \
        weft_st_relaxed_sys_u##bits((uint##bits##_t *)weft_at(t, dest, m), value);         \
    }                                                                                      \
    WEFT_DEVICE uint##bits##_t weft_g##bits(const weft_device_team *t,                     \
                                            const uint##bits##_t *source, int m) {         \
        WEFT_CHECK_WORD(t, source, m);                                                     \
        return weft_ld_relaxed_sys_u##bits((const uint##bits##_t *)weft_at(t, source, m)); \
    }
WEFT_WORDS(32)
WEFT_WORDS(64)
#undef WEFT_WORDS

/* --- Order ---------------------------------------------------------------------------------------
 */

/* What this thread has stored, and what it has seen of others' stores, is seen by whoever sees a
 * store that it makes behind the fence. Both are one instruction: a quiet says besides that its
 * stores have arrived. If all threads of a block fence for themselves, each warp waits. */
WEFT_DEVICE void weft_fence(void) {
    weft_fence_sys();
}
WEFT_DEVICE void weft_quiet(void) {
    weft_fence_sys();
}

/* The same for all stores of a block, by all of its threads: they meet, one of them fences, and
 * they meet again. Relaxed signals behind it are the block's first thread's to give. */
WEFT_DEVICE void weft_fence_b(void) {
    weft_block_sync();
    if (weft_scope_first(WEFT_SCOPE_b))
        weft_fence_sys();
    weft_block_sync();
}
WEFT_DEVICE void weft_quiet_b(void) {
    weft_fence_b();
}

/* --- Signals -------------------------------------------------------------------------------------
 */

/* Sets member m's signal, or adds to it: a release. */
WEFT_DEVICE void weft_signal(const weft_device_team *t, uint64_t *sig, uint64_t value, int m) {
    WEFT_CHECK_WORD(t, sig, m);
    weft_st_release_sys_u64((uint64_t *)weft_at(t, sig, m), value);
}
WEFT_DEVICE void weft_signal_add(const weft_device_team *t, uint64_t *sig, uint64_t value, int m) {
    WEFT_CHECK_WORD(t, sig, m);
    weft_red_add_sys_u64((uint64_t *)weft_at(t, sig, m), value);
}

/* Sets it in no order: behind a weft_fence of this thread, or where it is all there is to say. */
WEFT_DEVICE void weft_signal_relaxed(const weft_device_team *t, uint64_t *sig, uint64_t value,
                                     int m) {
    WEFT_CHECK_WORD(t, sig, m);
    weft_st_relaxed_sys_u64((uint64_t *)weft_at(t, sig, m), value);
}

/* op: WEFT_SIGNAL_SET or WEFT_SIGNAL_ADD. */
WEFT_DEVICE void weft_signal_by(const weft_device_team *t, uint64_t *sig, uint64_t value, int op,
                                int m) {
    WEFT_CHECK_CONSTANT(t, op, WEFT_SIGNAL_SET, WEFT_SIGNAL_ADD);
    if (op == WEFT_SIGNAL_ADD)
        weft_signal_add(t, sig, value, m);
    else
        weft_signal(t, sig, value, m);
}

/* A put, and behind it the signal, by one thread when the group has met; so when it returns all
 * threads have loaded from `source`. An empty put signals all the same. */
WEFT_DEVICE void weft_put_signal_t(const weft_device_team *t, void *dest, const void *source,
                                   size_t bytes, uint64_t *sig, uint64_t value, int op, int m) {
    WEFT_CHECK_OBJECT(t, dest, bytes, m);
    WEFT_CHECK_WORD(t, sig, m);
    WEFT_CHECK_CONSTANT(t, op, WEFT_SIGNAL_SET, WEFT_SIGNAL_ADD);
    weft_put_t(t, dest, source, bytes, m);
    weft_signal_by(t, sig, value, op, m);
}
WEFT_DEVICE void weft_put_signal_w(const weft_device_team *t, void *dest, const void *source,
                                   size_t bytes, uint64_t *sig, uint64_t value, int op, int m) {
    WEFT_CHECK_OBJECT(t, dest, bytes, m);
    WEFT_CHECK_WORD(t, sig, m);
    WEFT_CHECK_CONSTANT(t, op, WEFT_SIGNAL_SET, WEFT_SIGNAL_ADD);
    weft_put_w(t, dest, source, bytes, m);
    weft_scope_sync(WEFT_SCOPE_w);
    if (weft_scope_first(WEFT_SCOPE_w))
        weft_signal_by(t, sig, value, op, m);
}
WEFT_DEVICE void weft_put_signal_b(const weft_device_team *t, void *dest, const void *source,
                                   size_t bytes, uint64_t *sig, uint64_t value, int op, int m) {
    WEFT_CHECK_OBJECT(t, dest, bytes, m);
    WEFT_CHECK_WORD(t, sig, m);
    WEFT_CHECK_CONSTANT(t, op, WEFT_SIGNAL_SET, WEFT_SIGNAL_ADD);
    weft_put_b(t, dest, source, bytes, m);
    weft_scope_sync(WEFT_SCOPE_b);
    if (weft_scope_first(WEFT_SCOPE_b))
        weft_signal_by(t, sig, value, op, m);
}

/* A word, and behind it the signal: whoever sees the signal sees the word, but of what this thread
 * has stored before no more than without it. That is why it is soon told: it waits for the word's
 * own way there and back, by an exchange, where a release waits until the processor has nothing
 * under way with any peer or with the host (0.97 us and 1.63 on H100s). PTX has no order of that
 * kind. It holds as a word has one place, in m's memory: what an exchange has put there is found by
 * all loads that come there behind it. Where links have no atomics it is a put and a release. */
#define WEFT_WORD_SIGNAL(bits)                                                                   \
    WEFT_DEVICE void weft_p##bits##_signal(const weft_device_team *t, uint##bits##_t *dest,      \
                                           uint##bits##_t value, uint64_t *sig, uint64_t signal, \
                                           int op, int m) {                                      \
        WEFT_CHECK_WORD(t, dest, m);                                                             \
        WEFT_CHECK_WORD(t, sig, m);                                                              \
        WEFT_CHECK_CONSTANT(t, op, WEFT_SIGNAL_SET, WEFT_SIGNAL_ADD);                            \
        if (!(t->flags & WEFT_DEVICE_ATOMICS)) {                                                 \
            weft_p##bits(t, dest, value, m);                                                     \
            weft_signal_by(t, sig, signal, op, m);                                               \
            return;                                                                              \
        }                                                                                        \
        weft_await_u##bits(                                                                      \
            weft_atom_exch_relaxed_sys_u##bits((uint##bits##_t *)weft_at(t, dest, m), value));   \
        if (op == WEFT_SIGNAL_ADD)                                                               \
            weft_red_add_relaxed_sys_u64((uint64_t *)weft_at(t, sig, m), signal);                \
        else                                                                                     \
            weft_st_relaxed_sys_u64((uint64_t *)weft_at(t, sig, m), signal);                     \
    }
WEFT_WORD_SIGNAL(32)
WEFT_WORD_SIGNAL(64)
#undef WEFT_WORD_SIGNAL

/* --- Own signals ---------------------------------------------------------------------------------
 */

/* What has come so far: an acquire. */
WEFT_DEVICE uint64_t weft_signal_fetch(const weft_device_team *t, const uint64_t *sig) {
    WEFT_CHECK_OWN_WORD(t, sig);
    (void)t;
    return weft_ld_acquire_sys_u64(sig);
}

/* weft_test_until, weft_test_until32: whether the word compares with the value (WEFT_CMP_*), now.
 * weft_wait_until, weft_wait_until32: waits for that. 1: it does. 0: the job is over, and the
 * kernel is to return. By any threads, each for itself. What came before the signal is seen behind;
 * but for weft_wait_until_relaxed and weft_test_until_relaxed, which see the word alone. */
#define WEFT_WAITS(name, bits, order)                                                            \
    WEFT_DEVICE int weft_test_until##name(const weft_device_team *t, const uint##bits##_t *sig,  \
                                          int cmp, uint##bits##_t value) {                       \
        WEFT_CHECK_OWN_WORD(t, sig);                                                             \
        WEFT_CHECK_CONSTANT(t, cmp, WEFT_CMP_EQ, WEFT_CMP_LE);                                   \
        (void)t;                                                                                 \
        return weft_compares_u##bits(cmp, weft_ld_##order##_sys_u##bits(sig), value);            \
    }                                                                                            \
    WEFT_DEVICE int weft_wait_until##name(const weft_device_team *t, const uint##bits##_t *sig,  \
                                          int cmp, uint##bits##_t value) {                       \
        WEFT_CHECK_OWN_WORD(t, sig);                                                             \
        WEFT_CHECK_CONSTANT(t, cmp, WEFT_CMP_EQ, WEFT_CMP_LE);                                   \
        WEFT_CHECK_WAIT(check);                                                                  \
        struct weft_spin spin = {0, 0, 0, 0};                                                    \
        struct weft_gpu_abort abort = weft_abort_of(t);                                          \
        while (!weft_looks_##order##_u##bits(sig, cmp, value))                                   \
            if (!weft_spin(&spin, abort) ||                                                      \
                !WEFT_CHECK_TURN(check, t, __func__, "the word at %p to be %s %llu: it is %llu", \
                                 (const void *)sig, weft_check_comparison(cmp),                  \
                                 (unsigned long long)value,                                      \
                                 (unsigned long long)weft_ld_relaxed_sys_u##bits(sig)))          \
                return 0;                                                                        \
        weft_polled_##order();                                                                   \
        return 1;                                                                                \
    }
WEFT_WAITS(, 64, acquire)
WEFT_WAITS(_relaxed, 64, relaxed)
WEFT_WAITS(32, 32, acquire)
#undef WEFT_WAITS

WEFT_DEVICE int weft_wait_ge(const weft_device_team *t, const uint64_t *sig, uint64_t value) {
    return weft_wait_until(t, sig, WEFT_CMP_GE, value);
}
WEFT_DEVICE int weft_wait_eq(const weft_device_team *t, const uint64_t *sig, uint64_t value) {
    return weft_wait_until(t, sig, WEFT_CMP_EQ, value);
}

/* The same for so many nanoseconds, or somewhat longer. -1: they are over. */
WEFT_DEVICE int weft_wait_until_ns(const weft_device_team *t, const uint64_t *sig, int cmp,
                                   uint64_t value, uint64_t ns) {
    WEFT_CHECK_OWN_WORD(t, sig);
    WEFT_CHECK_CONSTANT(t, cmp, WEFT_CMP_EQ, WEFT_CMP_LE);
    WEFT_CHECK_BOUNDED_WAIT(check);
    struct weft_spin spin = {0, 0, 0, 0};
    struct weft_gpu_abort abort = weft_abort_of(t);
    uint64_t began = weft_globaltimer();
    while (!weft_looks_acquire_u64(sig, cmp, value)) {
        if (!weft_spin(&spin, abort) ||
            !WEFT_CHECK_TURN(check, t, __func__, "the word at %p to be %s %llu: it is %llu",
                             (const void *)sig, weft_check_comparison(cmp),
                             (unsigned long long)value,
                             (unsigned long long)weft_ld_relaxed_sys_u64(sig)))
            return 0;
        if (spin.turns % WEFT_SPIN_TURNS == 0 && weft_globaltimer() - began >= ns)
            return -1;
    }
    weft_polled_acquire();
    return 1;
}

/* By a warp or a block: one thread waits, and all return together with its result; what it has
 * acquired they all see. */
WEFT_DEVICE int weft_wait_until_w(const weft_device_team *t, const uint64_t *sig, int cmp,
                                  uint64_t value) {
    int over = weft_scope_first(WEFT_SCOPE_w) && !weft_wait_until(t, sig, cmp, value);
    return !weft_scope_sync_any(WEFT_SCOPE_w, over);
}
WEFT_DEVICE int weft_wait_until_b(const weft_device_team *t, const uint64_t *sig, int cmp,
                                  uint64_t value) {
    int over = weft_scope_first(WEFT_SCOPE_b) && !weft_wait_until(t, sig, cmp, value);
    return !weft_scope_sync_any(WEFT_SCOPE_b, over);
}
WEFT_DEVICE int weft_wait_ge_w(const weft_device_team *t, const uint64_t *sig, uint64_t value) {
    return weft_wait_until_w(t, sig, WEFT_CMP_GE, value);
}
WEFT_DEVICE int weft_wait_ge_b(const weft_device_team *t, const uint64_t *sig, uint64_t value) {
    return weft_wait_until_b(t, sig, WEFT_CMP_GE, value);
}

/* --- Atomics -------------------------------------------------------------------------------------
 */

/* weft_atomic_{fetch,set,swap,compare_swap,fetch_add,add,fetch_and,and,fetch_or,or,fetch_xor,xor}
 * of 32 and 64 bits, on member m's word. Those with a result give the word before. They order
 * nothing, as those of OpenSHMEM: a weft_fence in front of one makes it a release of this thread's
 * stores, and one behind it makes it an acquire. Where t->flags lacks WEFT_DEVICE_ATOMICS a link
 * has none: then only on words that PEs of their own GPU alone change. */
#define WEFT_ATOMIC_FETCHING(name, instruction, bits)                                       \
    WEFT_DEVICE uint##bits##_t weft_atomic_##name##bits(                                    \
        const weft_device_team *t, uint##bits##_t *word, uint##bits##_t value, int m) {     \
        WEFT_CHECK_WORD(t, word, m);                                                        \
        return weft_atom_##instruction##_sys_u##bits((uint##bits##_t *)weft_at(t, word, m), \
                                                     value);                                \
    }
#define WEFT_ATOMIC_CHANGING(name, instruction, bits)                                          \
    WEFT_DEVICE void weft_atomic_##name##bits(const weft_device_team *t, uint##bits##_t *word, \
                                              uint##bits##_t value, int m) {                   \
        WEFT_CHECK_WORD(t, word, m);                                                           \
        weft_##instruction##_sys_u##bits((uint##bits##_t *)weft_at(t, word, m), value);        \
    }
#define WEFT_ATOMICS(bits)                                                                    \
    WEFT_ATOMIC_FETCHING(swap, exch_relaxed, bits)                                            \
    WEFT_ATOMIC_FETCHING(fetch_add, add_relaxed, bits)                                        \
    WEFT_ATOMIC_FETCHING(fetch_and, and_relaxed, bits)                                        \
    WEFT_ATOMIC_FETCHING(fetch_or, or_relaxed, bits)                                          \
    WEFT_ATOMIC_FETCHING(fetch_xor, xor_relaxed, bits)                                        \
    WEFT_ATOMIC_CHANGING(set, st_relaxed, bits)                                               \
    WEFT_ATOMIC_CHANGING(add, red_add_relaxed, bits)                                          \
    WEFT_ATOMIC_CHANGING(and, red_and_relaxed, bits)                                          \
    WEFT_ATOMIC_CHANGING(or, red_or_relaxed, bits)                                            \
    WEFT_ATOMIC_CHANGING(xor, red_xor_relaxed, bits)                                          \
    WEFT_DEVICE uint##bits##_t weft_atomic_fetch##bits(const weft_device_team *t,             \
                                                       const uint##bits##_t *word, int m) {   \
        WEFT_CHECK_WORD(t, word, m);                                                          \
        return weft_ld_relaxed_sys_u##bits((const uint##bits##_t *)weft_at(t, word, m));      \
    }                                                                                         \
    WEFT_DEVICE uint##bits##_t weft_atomic_compare_swap##bits(                                \
        const weft_device_team *t, uint##bits##_t *word, uint##bits##_t cond,                 \
        uint##bits##_t value, int m) {                                                        \
        WEFT_CHECK_WORD(t, word, m);                                                          \
        return weft_atom_cas_relaxed_sys_u##bits((uint##bits##_t *)weft_at(t, word, m), cond, \
                                                 value);                                      \
    }
WEFT_ATOMICS(32)
WEFT_ATOMICS(64)
#undef WEFT_ATOMICS
#undef WEFT_ATOMIC_FETCHING
#undef WEFT_ATOMIC_CHANGING

#endif
