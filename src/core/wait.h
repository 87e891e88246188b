/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting that never hangs on a dead PE and never burns a core that someone else needs.
 *
 * A wait spins while every PE has a processor, then yields, then sleeps: on a futex where the word
 * is the library's own (weft_word_set wakes it), by a short timer where users store to the word.
 * Every wait looks at the job's abort word and leaves the process when the job is over. */
#ifndef WEFT_CORE_WAIT_H
#define WEFT_CORE_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A word of the library, alone on its cache line. Values only grow (modulo 2^32): epochs. */
struct weft_word {
    _Alignas(64) _Atomic uint32_t value;
    _Atomic uint32_t sleepers; /* beside the value: the setter owns the line already */
};

struct weft_waiter {
    const char *call; /* the public call that waits, for the message */
    int pe;           /* world PE that is waited for; -1 when that can be anyone */
    uint32_t turns;
    bool departed; /* `pe` has, and the condition was looked at behind that */
};

/* Whether it has gone into shmem_finalize: then it sets and clears nothing any more, but all that
 * it did before is visible. */
bool weft_pe_departed(int pe);

/* One turn of a wait on a word that wakes nobody: one that users store to, say. */
void weft_waiter_turn(struct weft_waiter *waiter);

/* One turn of a wait that sleeps in its own way: false when the time for that has come. */
bool weft_waiter_awake(struct weft_waiter *waiter);

/* A sleeper sees the abort word this late at most. */
enum { WEFT_SLEEP_MS_MAX = 5 };

/* Waits until `condition`, an expression over acquiring loads, holds. */
#define WEFT_WAIT_UNTIL(condition, call_name)                             \
    do {                                                                  \
        struct weft_waiter weft_waiter = {.call = (call_name), .pe = -1}; \
        while (!(condition))                                              \
            weft_waiter_turn(&weft_waiter);                               \
    } while (0)

/* Sets the word (release, and a full fence behind it) and wakes whoever sleeps on it. */
void weft_word_wake(struct weft_word *word);
static inline void weft_word_set(struct weft_word *word, uint32_t value) {
    atomic_exchange_explicit(&word->value, value, memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&word->sleepers, memory_order_relaxed) != 0, 0))
        weft_word_wake(word);
}

/* Epochs wrap around: what is less than 2^31 ahead has been reached. */
static inline bool weft_epoch_reached(uint32_t now, uint32_t value) {
    return (int32_t)(now - value) >= 0;
}

static inline bool weft_word_reached(const struct weft_word *word, uint32_t value) {
    uint32_t now = atomic_load_explicit((_Atomic uint32_t *)&word->value, memory_order_acquire);
    return weft_epoch_reached(now, value);
}

/* Waits until the word has reached `value`. `pe`: the world PE that has to set it. */
void weft_word_wait_slow(struct weft_word *word, uint32_t value, int pe, const char *call);
static inline void weft_word_wait(struct weft_word *word, uint32_t value, int pe,
                                  const char *call) {
    if (!weft_word_reached(word, value))
        weft_word_wait_slow(word, value, pe, call);
}

/* The same, but gives up, with false, once it has spun, yielded and slept for some milliseconds. */
bool weft_word_wait_briefly(struct weft_word *word, uint32_t value, int pe, const char *call);

/* Nanoseconds that this thread has spent in weft_word_wait_slow. */
extern _Thread_local uint64_t weft_waited_ns;

#endif
