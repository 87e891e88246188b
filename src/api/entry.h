/* SPDX-License-Identifier: BSD-3-Clause */
/* A call begins with tests of one flag each: the job runs, this thread may call, and the call takes
 * the fast path. It takes the slow path instead in checked mode (api/checked.h), if one of its
 * pointers may be a GPU's (core/dispatch.h), or if it fetches words that the program may be polling
 * while PEs share processors (job/poll.h). */
#ifndef WEFT_API_ENTRY_H
#define WEFT_API_ENTRY_H

#include <stdbool.h>
#include "base/sanitizer.h"
#include "job/job.h"
#include "core/misuse.h"

static inline bool weft_checked(void) {
    return __builtin_expect(weft_job.checked, 0);
}

static inline bool weft_is_slow(void) {
    return __builtin_expect(weft_job.slow, 0);
}

static inline bool weft_fetch_is_slow(void) {
    return __builtin_expect(weft_job.fetch_slow, 0);
}

/* Other threads send messages meanwhile, but this thread's ordering does not depend on theirs, so
 * the load need not be atomic, which would cost an instruction. A fence follows, which the thread
 * sanitizer does not understand: it needs a load that acquires. */
static inline bool weft_order_is_slow(void) {
#ifdef WEFT_THREAD_SANITIZER
    return __atomic_load_n(&weft_job.order_slow, __ATOMIC_ACQUIRE) != 0;
#else
    return __builtin_expect(weft_job.order_slow != 0, 0);
#endif
}

/* Ends the job unless it runs; in checked mode also unless the calling thread may call now. */
WEFT_COLD void weft_entry_check(const char *call);
static inline void weft_check_running(const char *call) {
    if (__builtin_expect(!weft_job.plain, 0))
        weft_entry_check(call);
}

/* Enters the call of a routine that may block, until the end of the enclosing block: at
 * SHMEM_THREAD_SERIALIZED other threads must not call meanwhile. Includes weft_check_running. */
#define WEFT_ENTER(call)                                                       \
    WEFT_IN_CALL(call);                                                        \
    __attribute__((cleanup(weft_entry_end), unused)) const bool weft_entered = \
        __builtin_expect(!weft_job.plain, 0) && weft_entry_begin(call)

WEFT_COLD bool weft_entry_begin(const char *call);
WEFT_COLD void weft_entry_leave(void);
static inline void weft_entry_end(const bool *entered) {
    if (__builtin_expect(*entered, 0))
        weft_entry_leave();
}

#endif
