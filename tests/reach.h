/* SPDX-License-Identifier: BSD-3-Clause */
/* Which PEs a test may expect to reach by loads and stores: all, but in a job on several hosts,
 * which oshrun (WEFT_INTERFACE) or tests/run.py tells, only the members of SHMEM_TEAM_SHARED.
 * What a placement makes of that team is asserted in tests/job/placement.c. */
#ifndef TESTS_REACH_H
#define TESTS_REACH_H

#include <shmem.h>
#include <stdbool.h>
#include <stdlib.h>

static inline bool reach_is_on_one_host(void) {
    return !getenv("WEFT_PRETEND_HOSTS") && !getenv("WEFT_TEST_HOSTS") && !getenv("WEFT_INTERFACE");
}

static inline bool reach_is_near(int pe) {
    return reach_is_on_one_host() ||
           shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, SHMEM_TEAM_SHARED) >= 0;
}

static inline bool reach_is_near_to_all(void) {
    return reach_is_on_one_host() ||
           shmem_team_n_pes(SHMEM_TEAM_SHARED) == shmem_team_n_pes(SHMEM_TEAM_WORLD);
}

/* Stores to PE `pe`'s copy of `object`, or puts where it is far. Whatever makes stores visible
 * comes next: the put is complete. */
static inline void reach_store(long *object, long value, int pe) {
    if (reach_is_near(pe)) {
        *(long *)shmem_ptr(object, pe) = value;
    } else {
        shmem_long_p(object, value, pe);
        shmem_quiet();
    }
}

#endif
