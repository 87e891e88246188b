/* SPDX-License-Identifier: BSD-3-Clause */
/* A loop counts as polling if it does little else: a few fetches without a change take less than
 * some microseconds. A program that works between its fetches keeps its processor. A program
 * that fetches an unchanging word yields less and less often while no other thread wants the
 * processor. */
#include "job/poll.h"
#include <sched.h>
#include "base/clock.h"
#include "job/wait.h"

enum {
    LOOKS_MIN = 16, /* fetches without a change between two yields */
    LOOKS_MAX = 1024,
    LOOK_NS = 500,           /* the longest time between two fetches of a polling loop */
    MESSAGES_NS = 30 * 1000, /* between two polls of the engine, each of which takes 300 ns */
};

_Atomic uint64_t weft_poll_seen[WEFT_POLL_WORDS];

static _Thread_local struct {
    uint32_t looks, interval;
    uint64_t since_ns, messages_ns;
} polling = {.interval = LOOKS_MIN};

static void give_way(uint64_t now_ns) {
    sched_yield();
    polling.since_ns = weft_clock_ns();
    bool alone = polling.since_ns - now_ns < WEFT_YIELD_ALONE_NS;
    if (!alone)
        polling.interval = LOOKS_MIN;
    else if (polling.interval < LOOKS_MAX)
        polling.interval *= 2;
}

/* Delivers messages now and then and returns the time afterwards. The word may be near, so polling
 * the engine must cost less here than in other waits. */
static uint64_t look_for_messages(void) {
    void (*look)(void) = weft_wait_look;
    uint64_t now_ns = weft_clock_ns();
    if (!look || now_ns - polling.messages_ns < MESSAGES_NS)
        return now_ns;
    look();
    return polling.messages_ns = weft_clock_ns();
}

uint64_t weft_poll_again(uint64_t value, const char *call) {
    if (++polling.looks < polling.interval)
        return value;
    WEFT_IN_CALL(call);
    if (weft_job_aborted())
        weft_job_die_aborted();
    uint64_t now_ns = look_for_messages();
    bool polls = now_ns - polling.since_ns < (uint64_t)polling.looks * LOOK_NS;
    polling.looks = 0;
    polling.since_ns = now_ns;
    if (polls)
        give_way(now_ns);
    return value;
}
