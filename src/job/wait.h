/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits that never hang on a dead PE and never keep a processor that another thread needs.
 *
 * A wait spins while every PE has a processor, then yields, then sleeps: on a futex if the library
 * owns the word (weft_word_set wakes it), by a short timer if users store to the word. In a job
 * with far PEs a wait also delivers messages (weft_wait_look), and a wait that sleeps for a user's
 * word is woken when another thread or the host proxy delivers messages (weft_arrivals). Every wait
 * checks the job's abort word and ends the process when the job is over. The load of the word
 * itself acquires what the writer stored before. No fence after the load does, because the thread
 * sanitizer does not follow fences. */
#ifndef WEFT_JOB_WAIT_H
#define WEFT_JOB_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "job/member_list.h"

/* A word of the library, alone on its cache line. Its values, called epochs, only grow (modulo
 * 2^32). */
struct weft_word {
    _Alignas(64) _Atomic uint32_t value;
    _Atomic uint32_t sleepers; /* on the same line as the value, which the setter owns already */
};

struct weft_long_wait;
enum { WEFT_PE_ANY = -1, WEFT_PE_NONE = -2 /* no PE, but a GPU */ };
enum { WEFT_YIELD_ALONE_NS = 1000 }; /* a shorter yield has let no other thread run */

/* A description of what a wait for a user's word waits for; `write` puts it into words
 * (core/awaited.h). */
struct weft_awaited {
    void (*write)(const struct weft_awaited *awaited, char *text, size_t bytes);
};

struct weft_waiter {
    const char *call; /* the call that waits for a word, or the name of the program's own wait */
    int pe;           /* the world PE that is waited for, or WEFT_PE_ANY or WEFT_PE_NONE */
    uint32_t turns;
    bool departed;                /* `pe` had departed before the condition was last checked */
    bool limited;                 /* the program has set a time limit: see weft_boot_go_alone */
    bool by_messages;             /* only messages can end the wait */
    uint8_t looks, failures;      /* counters of weft_wait_watch */
    uint32_t arrivals;            /* count of deliveries when the condition was last checked */
    uint64_t since_ns, look_ns;   /* when the wait began to be timed; when the watch looks next */
    const struct weft_word *word; /* the library's word that is waited for, or NULL */
    const struct weft_member_list
        *member_list; /* the active set of npes PEs that is waited for, or NULL */
    int npes;
    const struct weft_awaited *awaited; /* NULL if the word is the library's */
    const struct weft_waiter *outer; /* the wait of this thread that a signal handler interrupted */
    struct weft_long_wait
        *shown; /* the entry by which all PEs see this wait; NULL while it is short */
};

/* The watch over long waits (core/hang.c). `look`, if not NULL, is called once a wait has lasted
 * for after_ns, and again whenever waiter->look_ns has passed. `nested` is called when a thread
 * begins a wait for a word inside another one. */
struct weft_wait_watch {
    void (*look)(struct weft_waiter *waiter, uint64_t now_ns);
    void (*nested)(const struct weft_waiter *waiter);
    uint64_t after_ns;
};
extern struct weft_wait_watch weft_wait_watch;

/* Delivers messages that have arrived unless another thread is doing so; never blocks. NULL if no
 * PE is far. */
extern void (*_Atomic weft_wait_look)(void);

/* The number of times that messages were delivered to this PE, for threads that sleep until a
 * message stores to a word. It is kept in the control page because another process may apply the
 * messages. */
struct weft_arrivals;
struct weft_arrivals *weft_arrivals(void);
uint32_t weft_arrivals_count(void);

/* Called after each batch of messages: wakes the threads in weft_arrivals_sleep. */
void weft_arrivals_notify(struct weft_arrivals *arrivals);

/* Sleeps for at most rest_ns or until a batch arrives after the count was `seen`. Returns the
 * current count, to be passed to the next call. */
uint32_t weft_arrivals_sleep(uint32_t seen, uint64_t rest_ns);

/* Ends a wait: other PEs no longer see it. Not needed for a wait that never rested. */
void weft_waiter_hide(struct weft_waiter *waiter);
static inline void weft_waiter_end(struct weft_waiter *waiter) {
    if (__builtin_expect(waiter->shown != NULL, 0))
        weft_waiter_hide(waiter);
}

/* Returns whether `pe` has entered shmem_finalize: it stores nothing any more, and everything it
 * stored before is visible. */
bool weft_pe_departed(int pe);

/* Performs one turn of a wait on a word whose writer wakes nobody, such as a user's word. A sleep
 * ends early when messages arrive. */
void weft_waiter_turn(struct weft_waiter *waiter);

/* Performs one turn of a wait that sleeps in its own way. Returns false when it is time to
 * sleep. */
bool weft_waiter_awake(struct weft_waiter *waiter);

/* Returns how long such a wait may sleep before its next turn. A sleeper notices an abort after at
 * most that time. */
uint32_t weft_waiter_rest_ms(struct weft_waiter *waiter);

/* Waits until `condition`, an expression over acquiring loads, holds. Creates no waiter if it holds
 * already. */
#define WEFT_WAIT_UNTIL(condition) WEFT_WAIT_FOR(NULL, condition)

/* As WEFT_WAIT_UNTIL, with a record of what is awaited, evaluated only if the condition does not
 * hold yet. */
#define WEFT_WAIT_FOR(record, condition)                                               \
    do {                                                                               \
        if (!(condition)) {                                                            \
            struct weft_waiter weft_waiter = {.pe = WEFT_PE_ANY, .awaited = (record)}; \
            do                                                                         \
                weft_waiter_turn(&weft_waiter);                                        \
            while (!(condition));                                                      \
            weft_waiter_end(&weft_waiter);                                             \
        }                                                                              \
    } while (0)

/* Sets the word with release order and a full fence after the store, and wakes all threads that
 * sleep on it. */
void weft_word_wake(struct weft_word *word);
static inline void weft_word_set(struct weft_word *word, uint32_t value) {
    atomic_exchange_explicit(&word->value, value, memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&word->sleepers, memory_order_relaxed) != 0, 0))
        weft_word_wake(word);
}

/* Increments the word; ordering and wake-up as in weft_word_set. */
static inline void weft_word_count(struct weft_word *word) {
    atomic_fetch_add(&word->value, 1);
    if (__builtin_expect(atomic_load_explicit(&word->sleepers, memory_order_relaxed) != 0, 0))
        weft_word_wake(word);
}

/* Returns whether the epoch `now` has reached `value`. Epochs wrap around: a value counts as
 * reached unless it is up to 2^31 ahead. */
static inline bool weft_epoch_reached(uint32_t now, uint32_t value) {
    return (int32_t)(now - value) >= 0;
}

static inline bool weft_word_reached(const struct weft_word *word, uint32_t value) {
    uint32_t now = atomic_load_explicit((_Atomic uint32_t *)&word->value, memory_order_acquire);
    return weft_epoch_reached(now, value);
}

/* Waits until the word has reached `value`, which world PE `pe` has to set. */
void weft_word_wait_slow(struct weft_word *word, uint32_t value, int pe);
static inline void weft_word_wait(struct weft_word *word, uint32_t value, int pe) {
    if (!weft_word_reached(word, value))
        weft_word_wait_slow(word, value, pe);
}

/* Waits for a few turns only and returns whether the word has reached `value`. The caller owns the
 * waiter: the wait may go on over several calls, and the caller ends it. */
bool weft_word_wait_briefly(struct weft_word *word, uint32_t value, struct weft_waiter *waiter);

/* Nanoseconds that this thread has spent in weft_word_wait_slow. */
extern _Thread_local uint64_t weft_waited_ns;

#endif
