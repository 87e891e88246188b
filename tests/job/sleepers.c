/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: PEs that wait for a late one sleep longer the longer they wait, in a barrier and for
 * a lock, so that hundreds of them leave it the processors. PEs: 3 */
#include <shmem.h>
#include <sys/resource.h>
#include <unistd.h>
#include "tap.h"

enum { LATE_US = 1500000, SLEEPS_MAX = 120 /* with a sleep every 5 ms there would be 300 */ };

static long lock; /* symmetric */

/* Counts this thread's sleeps; the progress thread sleeps between messages. */
static long count_sleeps(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

/* The case's own sleep counts, too. */
static void expect_few(long before, const char *where) {
    long sleeps = count_sleeps() - before;
    EXPECT(sleeps < SLEEPS_MAX, "%ld sleeps in %s for %d us", sleeps, where, LATE_US);
}

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    tap_start(me);
    tap_case("sleepers in a barrier");
    shmem_barrier_all();
    long before = count_sleeps();
    if (me == 1)
        usleep(LATE_US);
    shmem_barrier_all();
    expect_few(before, "a barrier");
    tap_case("sleepers for a lock");
    if (me == 1)
        shmem_set_lock(&lock);
    shmem_barrier_all();
    before = count_sleeps();
    if (me == 1)
        usleep(LATE_US);
    else
        shmem_set_lock(&lock);
    expect_few(before, "a lock");
    shmem_clear_lock(&lock);
    shmem_finalize();
    return tap_finish();
}
