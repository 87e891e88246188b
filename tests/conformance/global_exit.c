/* SPDX-License-Identifier: BSD-3-Clause */
/* shmem_global_exit (pitfall 49): the last PE ends the job while others compute forever, wait, or
 * are in a barrier. The job's status is the argument, 0 for success. Other cases are in
 * tests/api/exit.t. */
#include <shmem.h>
#include <stdlib.h>
#include "tap.h"

static int me, npes;
static long never;

static void stay(void) {
    switch (me % 3) {
    case 0:
        for (volatile unsigned spin = 0;; spin++)
            ;
    case 1:
        shmem_long_wait_until(&never, SHMEM_CMP_EQ, 1);
        break;
    default:
        shmem_barrier_all();
    }
}

int main(void) {
    static int arrived;
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    tap_case("49: the job's status is 0, though no other PE has ended");
    EXPECT(shmem_n_pes() == npes, "%d", npes);
    int failed = tap_finish();
    if (failed)
        return failed;
    shmem_int_atomic_inc(&arrived, npes - 1);
    if (me < npes - 1)
        stay();
    shmem_int_wait_until(&arrived, SHMEM_CMP_EQ, npes);
    shmem_global_exit(0);
}
