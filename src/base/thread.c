/* SPDX-License-Identifier: BSD-3-Clause */
/* A new thread inherits its creator's signal mask, so the mask is set around the creation. */
#include "base/thread.h"
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/clock.h"

static _Atomic unsigned running;
static _Atomic bool
    joined; /* a thread was joined since the last call of weft_thread_others_ended */

int weft_thread_start(pthread_t *thread, void *(*body)(void *), void *argument) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int result = pthread_create(thread, NULL, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result == 0)
        running++;
    return -result;
}

void weft_thread_join(pthread_t thread) {
    pthread_join(thread, NULL);
    running--;
    joined = true;
}

void weft_thread_count(int change) {
    running += (unsigned)change;
    joined = joined || change < 0;
}

/* The struct sched_attr of sched_setattr(2), whose header <linux/sched/types.h> conflicts with
 * <sched.h>. */
struct scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};

/* Under SCHED_OTHER the runtime is the length of a time slice. In a container that forbids the
 * system call the thread keeps the usual slices, which is not an error. */
void weft_thread_shorten_slices(void) {
    enum { SLICE_NS = 100 * 1000 };
    struct scheduling now = {.size = sizeof now};
    if (syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) != 0 || now.policy != SCHED_OTHER)
        return;
    now.runtime_ns = SLICE_NS;
    syscall(SYS_sched_setattr, 0, &now, 0);
}

/* The main thread stays listed after its end. /proc/self/task has two links more than subfolders.
 */
static bool others_are_listed(void) {
    struct stat tasks;
    return stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink > 2 + 1 + running;
}

/* Waits a moment if a thread was joined, because the kernel lists such a thread a little longer. */
bool weft_thread_others_ended(void) {
    enum { MOMENT_MS = 10 };
    bool listed = others_are_listed();
    for (int waited_ms = 0; listed && joined && waited_ms < MOMENT_MS; waited_ms++) {
        weft_clock_sleep_ms(1);
        listed = others_are_listed();
    }
    joined = false;
    return !listed;
}
