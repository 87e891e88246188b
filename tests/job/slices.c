/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a thread that waits for a late PE gets short time slices, whichever call it waits
 * in, so that its peers do not wait for their turn on a crowded machine. A wait that ends at once
 * leaves them as they are. PEs: 2 */
#include <shmem.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>
#include "slices.h"
#include "tap.h"

/* Several rounds, because on a busy machine the other PE may be late itself. */
enum { ROUNDS = 5, LATE_US = 10000, OWN_NS = 1000000, SHORT_NS = 100000 };

static int me;
static int word; /* symmetric */

static void *barrier(void *unused) {
    bool have = slice_set(OWN_NS);
    for (int round = 0; round < ROUNDS; round++) {
        if (me == 1)
            usleep(LATE_US);
        shmem_barrier_all();
    }
    EXPECT(!have || me == 1 || slice_ns() == SHORT_NS, "slices of %lu ns", slice_ns());
    return unused;
}

static void *wait_until(void *unused) {
    bool have = slice_set(OWN_NS);
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
    bool have = slice_set(OWN_NS);
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
    *(bool *)have = slice_set(OWN_NS);
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
