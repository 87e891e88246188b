/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a thread that waits for a late PE gets short time slices, whichever call it waits
 * in, so that its peers do not wait for their turn on a crowded machine. A wait that ends at once
 * leaves them as they are. PEs: 2 */
#include <shmem.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "tap.h"

/* Several rounds, because on a busy machine the other PE may be late itself. */
enum { ROUNDS = 5, LATE_US = 10000, OWN_NS = 1000000, SHORT_NS = 100000 };

/* The first version of sched_setattr(2)'s struct sched_attr. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static int me;
static int word; /* symmetric */

static unsigned long slice_ns(void) {
    struct attributes now = {.size = sizeof now};
    syscall(SYS_sched_getattr, 0, &now, sizeof now, 0);
    return now.runtime;
}

/* Returns whether this thread now has slices of OWN_NS: they can be set and read from Linux 6.12
 * on. */
static bool slice_begin(void) {
    struct attributes own = {.size = sizeof own};
    syscall(SYS_sched_getattr, 0, &own, sizeof own, 0);
    own.runtime = OWN_NS;
    return syscall(SYS_sched_setattr, 0, &own, 0) == 0 && slice_ns() == OWN_NS;
}

static void *barrier(void *unused) {
    bool have = slice_begin();
    for (int round = 0; round < ROUNDS; round++) {
        if (me == 1)
            usleep(LATE_US);
        shmem_barrier_all();
    }
    EXPECT(!have || me == 1 || slice_ns() == SHORT_NS, "slices of %lu ns", slice_ns());
    return unused;
}

static void *wait_until(void *unused) {
    bool have = slice_begin();
    for (int round = 1; round <= ROUNDS; round++) {
        if (me == 1) {
            usleep(LATE_US);
            shmem_int_p(&word, round, 0);
        } else {
            shmem_int_wait_until(&word, SHMEM_CMP_GE, round);
        }
    }
    EXPECT(!have || me == 1 || slice_ns() == SHORT_NS, "slices of %lu ns", slice_ns());
    return unused;
}

static void *no_wait(void *unused) {
    bool have = slice_begin();
    shmem_int_wait_until(&word, SHMEM_CMP_GE, 0);
    EXPECT(!have || slice_ns() == OWN_NS, "slices of %lu ns", slice_ns());
    return unused;
}

static void run(const char *name, void *(*body)(void *)) {
    pthread_t thread;
    tap_case(name);
    pthread_create(&thread, NULL, body, NULL);
    pthread_join(thread, NULL);
    shmem_barrier_all();
}

static void *probe(void *have) {
    *(bool *)have = slice_begin();
    return NULL;
}

int main(void) {
    int provided;
    bool have;
    pthread_t thread;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    me = shmem_my_pe();
    tap_start(me);
    pthread_create(&thread, NULL, probe, &have);
    pthread_join(thread, NULL);
    run(have ? "in a barrier" : "in a barrier # SKIP before Linux 6.12", barrier);
    run(have ? "for a word" : "for a word # SKIP before Linux 6.12", wait_until);
    run("not where there is nothing to wait for", no_wait);
    shmem_finalize();
    return tap_finish();
}
