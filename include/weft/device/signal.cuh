/* SPDX-License-Identifier: BSD-3-Clause */
/* Words that members send to each other (plain words, signals for the data before them, atomics),
 * and waits for a member's own words. A word lies in the device heap and is aligned; `dest`, `sig`
 * or `word` is this member's address of it. `m` may be this member itself.
 *
 * A thread that sees a signal by an acquiring wait or load sees everything that its sender had
 * stored before it released the signal: the stores of the sending thread, and of the threads with
 * which it had synchronised by __syncthreads() or __syncwarp(), wherever those stores went. */
#ifndef WEFT_DEVICE_SIGNAL_CUH
#define WEFT_DEVICE_SIGNAL_CUH

#include "weft/device/copy.cuh"
#include "weft/device/spin.cuh"

/* --- Words ------------------------------------------------------------------------------------ */

/* weft_p32, weft_p64: stores; weft_g32, weft_g64: loads. Each is one instruction, never torn and
 * not ordered; the words may be polled. */
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

/* --- Order ------------------------------------------------------------------------------------ */

/* A thread that sees a store which this thread makes after the fence also sees this thread's
 * earlier stores, and the stores of others that this thread has seen. Fence and quiet are the same
 * instruction; a quiet also promises that the stores have arrived. If every thread of a block
 * fences, each warp waits. */
WEFT_DEVICE void weft_fence(void) {
    weft_fence_sys();
}
WEFT_DEVICE void weft_quiet(void) {
    weft_fence_sys();
}

/* As weft_fence and weft_quiet, for all stores of a block; called by all of its threads: they sync,
 * one of them fences, and they sync again. Afterwards the block's first thread may give relaxed
 * signals. */
WEFT_DEVICE void weft_fence_b(void) {
    weft_block_sync();
    if (weft_scope_first(WEFT_SCOPE_b))
        weft_fence_sys();
    weft_block_sync();
}
WEFT_DEVICE void weft_quiet_b(void) {
    weft_fence_b();
}

/* --- Signals ---------------------------------------------------------------------------------- */

/* Set member m's signal, or add to it, with release order. An addition is an atomic: if t->flags
 * lacks WEFT_DEVICE_ATOMICS, only PEs on the word's own GPU may change such a signal. */
WEFT_DEVICE void weft_signal(const weft_device_team *t, uint64_t *sig, uint64_t value, int m) {
    WEFT_CHECK_WORD(t, sig, m);
    weft_st_release_sys_u64((uint64_t *)weft_at(t, sig, m), value);
}
WEFT_DEVICE void weft_signal_add(const weft_device_team *t, uint64_t *sig, uint64_t value, int m) {
    WEFT_CHECK_WORD(t, sig, m);
    weft_red_add_sys_u64((uint64_t *)weft_at(t, sig, m), value);
}

/* Sets member m's signal without order: for use after a weft_fence of this thread, or if no data
 * belongs to the signal. */
WEFT_DEVICE void weft_signal_relaxed(const weft_device_team *t, uint64_t *sig, uint64_t value,
                                     int m) {
    WEFT_CHECK_WORD(t, sig, m);
    weft_st_relaxed_sys_u64((uint64_t *)weft_at(t, sig, m), value);
}

/* Sets member m's signal, or adds to it, with release order; op is WEFT_SIGNAL_SET or
 * WEFT_SIGNAL_ADD. */
WEFT_DEVICE void weft_signal_by(const weft_device_team *t, uint64_t *sig, uint64_t value, int op,
                                int m) {
    WEFT_CHECK_CONSTANT(t, op, WEFT_SIGNAL_SET, WEFT_SIGNAL_ADD);
    if (op == WEFT_SIGNAL_ADD)
        weft_signal_add(t, sig, value, m);
    else
        weft_signal(t, sig, value, m);
}

/* Put, then signal. One thread signals after the group has synced, so when the call returns all
 * threads have loaded from `source`. An empty put signals, too. */
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

/* Store a word, then signal: a thread that sees the signal also sees the word, but not this
 * thread's earlier stores. This makes it fast. It only waits for the word's own round trip, by an
 * exchange, whereas a release waits until the processor has no store under way to any peer or to
 * the host (0.97 us and 1.63 us on H100s). PTX does not guarantee this order. It holds because a
 * word has one place, in m's memory: every load that reaches this place after the exchange finds
 * its value. If the links have no atomics, the call is a put and a release. */
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

/* --- Own signals ------------------------------------------------------------------------------ */

/* Returns the current value of this member's signal, with acquire order. */
WEFT_DEVICE uint64_t weft_signal_fetch(const weft_device_team *t, const uint64_t *sig) {
    WEFT_CHECK_OWN_WORD(t, sig);
    (void)t;
    return weft_ld_acquire_sys_u64(sig);
}

/* weft_test_until, weft_test_until32: return 1 if `word cmp value` (WEFT_CMP_*) holds now.
 * weft_wait_until, weft_wait_until32: wait until it does, and return 1; they return 0 if the job is
 * over, and the kernel must then return. Any threads may call them, each for itself. Data stored
 * before the signal is visible afterwards, except with weft_wait_until_relaxed and
 * weft_test_until_relaxed, which only order the word. */
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

/* Waits at most `ns` nanoseconds, or somewhat longer. Returns -1 if they have passed. */
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

/* By a warp or a block: one thread waits, and all return together with its result; all see the data
 * that it has acquired. */
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

/* --- Atomics ---------------------------------------------------------------------------------- */

/* weft_atomic_{fetch,set,swap,compare_swap,fetch_add,add,fetch_and,and,fetch_or,or,fetch_xor,xor}
 * for 32 and 64 bits, on member m's word. Functions with a result return the word's old value. Like
 * OpenSHMEM's atomics they order nothing: a weft_fence before an atomic makes it a release of this
 * thread's stores, and a weft_fence after it makes it an acquire. If t->flags lacks
 * WEFT_DEVICE_ATOMICS, a link between members has no atomics. Then use them only on words that PEs
 * change from the word's own GPU. */
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
