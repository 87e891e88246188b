/* SPDX-License-Identifier: BSD-3-Clause */
/* A loop is one that polls if it does hardly anything else: then some looks in vain take less than
 * a few microseconds. A program that works between its looks keeps its processor. */
#include "core/poll.h"
#include <sched.h>
#include <time.h>
#include "base/clock.h"

enum {
    LOOKS = 16,          /* in vain, from one yield to the next */
    LOOKS_NS = 16 * 500, /* that they take at most in a loop that polls */
    YIELDS = 512,        /* then sleep, as waits do (core/wait.c) */
    TIMER_NS = 30 * 1000,
};

_Atomic uint64_t weft_poll_seen[WEFT_POLL_WORDS];

static _Thread_local struct {
    uint32_t looks, yields; /* the yields for one value of one word */
    uint64_t number;        /* of that word and value */
    uint64_t since_ns;
} polling;

static void give_way(void) {
    struct timespec briefly = {.tv_nsec = TIMER_NS};
    if (polling.yields < YIELDS) {
        polling.yields++;
        sched_yield();
    } else {
        clock_nanosleep(CLOCK_MONOTONIC, 0, &briefly, NULL);
    }
}

void weft_poll_again(uint64_t number, const char *call) {
    if (++polling.looks % LOOKS != 0)
        return;
    if (weft_job_aborted())
        weft_job_die_aborted(call);
    if (polling.number != number)
        polling.yields = 0;
    polling.number = number;
    if (weft_clock_ns() - polling.since_ns < LOOKS_NS)
        give_way();
    polling.since_ns = weft_clock_ns();
}
