/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting that never hangs on a dead PE and never burns a core that someone else needs.
 *
 * A wait spins while every PE has a processor, then yields, then sleeps: on a futex where the word
 * is the library's own (weft_word_set wakes it), by a short timer where users store to the word.
 * In a job with far PEs a wait has messages delivered as it goes (weft_wait_look), and one that
 * sleeps for a word of users is woken by those that the progress thread delivers (weft_arrivals).
 * Every wait looks at the job's abort word and leaves the process when the job is over. What the
 * writer did before is acquired by the load of the word itself, not by a fence behind it, because
 * the thread sanitizer follows loads alone. */
#ifndef WEFT_JOB_WAIT_H
#define WEFT_JOB_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "job/member_list.h"

/* A word of the library, alone on its cache line. Values only grow (modulo 2^32): epochs. */
struct weft_word {
    _Alignas(64) _Atomic uint32_t value;
    _Atomic uint32_t sleepers; /* beside the value: the setter owns the line already */
};

struct weft_stall;
enum { WEFT_PE_ANY = -1, WEFT_PE_NONE = -2 /* but a GPU */ };
enum { WEFT_YIELD_ALONE_NS = 1000 }; /* a yield that comes back sooner has let nobody run */

/* What a wait for the user's words waits for; `write` says it in words (core/awaited.h). */
struct weft_awaited {
    void (*write)(const struct weft_awaited *awaited, char *text, size_t bytes);
};

struct weft_waiter {
    const char *call; /* that a wait for a word is in; or the name of one of the program's own */
    int pe;           /* world PE that is waited for, or one of the two below */
    uint32_t turns;
    bool departed;                /* `pe` has, and the condition was looked at behind that */
    bool limited;                 /* the program has set a limit: see weft_boot_go_alone */
    bool by_messages;             /* nothing else ends it */
    uint8_t looks, failures;      /* of the watch below */
    uint32_t arrivals;            /* of messages, before the condition was looked at last */
    uint64_t since_ns, look_ns;   /* when the wait first asked, and of the watch's next look */
    const struct weft_word *word; /* that is waited for; NULL: it is none of the library */
    const struct weft_member_list
        *member_list; /* of an active set that is waited for, of npes; or NULL */
    int npes;
    const struct weft_awaited *awaited; /* NULL: the word is the library's */
    const struct weft_waiter *outer;    /* a wait that a signal handler of this thread has broken */
    struct weft_stall *stall;           /* where all PEs see this wait; NULL: it is a short one */
};

/* Who watches over waits that last (core/hang.c). `look` is called once a wait has lasted for
 * after_ns, and then when waiter->look_ns has come; NULL: never. `nested` is called for a wait for
 * a word within another one of the same thread. */
struct weft_wait_watch {
    void (*look)(struct weft_waiter *waiter, uint64_t now_ns);
    void (*nested)(const struct weft_waiter *waiter);
    uint64_t after_ns;
};
extern struct weft_wait_watch weft_wait_watch;

/* Has it watch this PE's waits from now on, for WEFT_HANG_SECONDS each. */
void weft_hang_watch(void);

/* Set while PEs of the job are far, NULL else: delivers messages that have come, if no other thread
 * is at that, and never blocks. */
extern void (*_Atomic weft_wait_look)(void);

/* How often messages were delivered to this PE, for who sleeps for a word that messages may store
 * to. It stands in the control page, because another process may apply them. */
struct weft_arrivals;
struct weft_arrivals *weft_arrivals(void);
uint32_t weft_arrivals_count(void);

/* Behind each burst of messages: wakes who sleeps until some arrive. */
void weft_arrivals_tell(struct weft_arrivals *arrivals);

/* Sleeps until some arrive that had not when `seen` was read. Gives the count to read next. */
uint32_t weft_arrivals_sleep(uint32_t seen, uint64_t rest_ns);

/* Ends a wait: nobody sees it any more. A wait that never rested need not come here. */
void weft_waiter_hide(struct weft_waiter *waiter);
static inline void weft_waiter_end(struct weft_waiter *waiter) {
    if (__builtin_expect(waiter->stall != NULL, 0))
        weft_waiter_hide(waiter);
}

/* Whether it has gone into shmem_finalize: then it sets and clears nothing any more, but all that
 * it did before is visible. */
bool weft_pe_departed(int pe);

/* One turn of a wait on a word that wakes nobody: one that users store to, say. It ends early when
 * messages arrive. */
void weft_waiter_turn(struct weft_waiter *waiter);

/* One turn of a wait that sleeps in its own way: false when the time for that has come. */
bool weft_waiter_awake(struct weft_waiter *waiter);

/* Before each sleep of such a wait: how long it may last. A sleeper sees the abort word this late
 * at most. */
uint32_t weft_waiter_rest_ms(struct weft_waiter *waiter);

/* Waits until `condition`, an expression over acquiring loads, holds. Where it does already there
 * is no waiter to make. */
#define WEFT_WAIT_UNTIL(condition) WEFT_WAIT_FOR(NULL, condition)

/* The same, with the record of what is awaited, which is made only if there is something to wait
 * for. */
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

/* Sets the word (release, and a full fence behind it) and wakes whoever sleeps on it. */
void weft_word_wake(struct weft_word *word);
static inline void weft_word_set(struct weft_word *word, uint32_t value) {
    atomic_exchange_explicit(&word->value, value, memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&word->sleepers, memory_order_relaxed) != 0, 0))
        weft_word_wake(word);
}

/* Counts it up by one, likewise. */
static inline void weft_word_count(struct weft_word *word) {
    atomic_fetch_add(&word->value, 1);
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
void weft_word_wait_slow(struct weft_word *word, uint32_t value, int pe);
static inline void weft_word_wait(struct weft_word *word, uint32_t value, int pe) {
    if (!weft_word_reached(word, value))
        weft_word_wait_slow(word, value, pe);
}

/* The same, but gives up, with false, after a few turns. It is the caller's wait, which goes on
 * over several of these and which the caller ends. */
bool weft_word_wait_briefly(struct weft_word *word, uint32_t value, struct weft_waiter *waiter);

/* Nanoseconds that this thread has spent in weft_word_wait_slow. */
extern _Thread_local uint64_t weft_waited_ns;

#endif
