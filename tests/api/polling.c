/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a flag goes around PEs that share a processor, each of which polls its own flag in a
 * loop. A loop fails some hundred times for each hop, instead of until the end of its time slice;
 * with every call that such loops use. Run by polling.t on one processor. PEs: none */
#include <shmem.h>
#include "tap.h"

enum { ROUNDS = 40, LOOKS_MAX = 20000 /* per hop; a time slice has some 300000 */ };

static uint64_t flag, pair[2]; /* symmetric: the round that they have reached */
static int me, npes;

static int is_there_wait(uint64_t round) {
    shmem_uint64_wait_until(&flag, SHMEM_CMP_EQ, round);
    return 1;
}

static int is_there_test(uint64_t round) {
    return shmem_uint64_test(&flag, SHMEM_CMP_EQ, round);
}

static int is_there_test_met(uint64_t round) {
    return !shmem_uint64_test(&flag, SHMEM_CMP_NE, round);
}

static int is_there_test_all(uint64_t round) {
    return !shmem_uint64_test_all(&flag, 1, NULL, SHMEM_CMP_NE, round);
}

static int is_there_g(uint64_t round) {
    return shmem_uint64_g(&flag, me) == round;
}

static int is_there_narrow(uint64_t round) {
    return shmem_uint8_g((uint8_t *)&flag, me) == round;
}

static int is_there_get(uint64_t round) {
    uint64_t seen;
    shmem_uint64_get(&seen, &flag, 1, me);
    return seen == round;
}

static int is_there_getmem_nbi(uint64_t round) {
    uint64_t seen;
    shmem_getmem_nbi(&seen, &flag, sizeof seen, me);
    shmem_quiet();
    return seen == round;
}

static int is_there_fetch(uint64_t round) {
    return shmem_uint64_atomic_fetch(&flag, me) == round;
}

static int is_there_fetch_of_context(uint64_t round) {
    return shmem_ctx_uint64_atomic_fetch(SHMEM_CTX_DEFAULT, &flag, me) == round;
}

static int is_there_fetch_add(uint64_t round) {
    return shmem_uint64_atomic_fetch_add(&flag, 0, me) == round;
}

static int is_there_compare_swap(uint64_t round) {
    return shmem_uint64_atomic_compare_swap(&flag, round, round, me) == round;
}

static int is_there_signal(uint64_t round) {
    return shmem_signal_fetch(&flag) == round;
}

static int is_there_of_two(uint64_t round) {
    return shmem_uint64_g(&pair[0], me) == round || shmem_uint64_g(&flag, me) == round;
}

static const struct way {
    const char *name;
    int (*is_there)(uint64_t round);
} ways[] = {{"wait_until", is_there_wait},
            {"test", is_there_test},
            {"test while it is met", is_there_test_met},
            {"test_all while it is met", is_there_test_all},
            {"g", is_there_g},
            {"g of a byte", is_there_narrow},
            {"get", is_there_get},
            {"getmem_nbi", is_there_getmem_nbi},
            {"atomic_fetch", is_there_fetch},
            {"atomic_fetch of a context", is_there_fetch_of_context},
            {"atomic_fetch_add of 0", is_there_fetch_add},
            {"atomic_compare_swap", is_there_compare_swap},
            {"signal_fetch", is_there_signal},
            {"g of two words in turn", is_there_of_two}};

/* Returns the number of failed tests in all rounds. */
static long go_round(const struct way *way) {
    long looks = 0;
    shmem_barrier_all();
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        for (int turn = me == 0; turn < 1; turn++)
            while (!way->is_there(round))
                looks++;
        shmem_uint64_atomic_set(&flag, round, (me + 1) % npes);
        for (int turn = me != 0; turn < 1; turn++)
            while (!way->is_there(round))
                looks++;
    }
    shmem_barrier_all();
    flag = 0;
    shmem_barrier_all();
    return looks;
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    for (const struct way *way = ways; way < ways + sizeof ways / sizeof *ways; way++) {
        tap_case(way->name);
        long looks = go_round(way);
        EXPECT(looks < (long)ROUNDS * LOOKS_MAX, "%ld looks in vain in %d rounds", looks, ROUNDS);
    }
    shmem_finalize();
    return tap_finish();
}
