/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks (pitfall 53): exclusion by locks in static memory, in the heap, in an array; operations
 * that clearing completes; test_lock; many locks at once. Fairness is in the tests of the lock
 * itself, which see its queue. */
#include <shmem.h>
#include "tap.h"
#include "api/model.h"

enum { TURNS = 200 };

static int me, npes;

/* A counter on PE `home` that only a lock protects: read, add and write are not atomic. */
static void exclusion(long *lock, long *counter, int home) {
    shmem_barrier_all();
    for (int turn = 0; turn < TURNS; turn++) {
        shmem_set_lock(lock);
        shmem_long_p(counter, shmem_long_g(counter, home) + 1, home);
        shmem_clear_lock(lock); /* completes the put before another PE has the lock */
    }
    shmem_barrier_all();
    EXPECT(me != home || *counter == (long)TURNS * npes, "%ld, not %ld", *counter,
           (long)TURNS * npes);
}

/* Whole records, put without blocking under the lock: the next holder sees one record or the other
 * entirely. */
static void completion(void) {
    static long lock, record[100];
    shmem_barrier_all();
    for (int turn = 0; turn < TURNS; turn++) {
        long seen[100], mine[100];
        shmem_set_lock(&lock);
        shmem_long_get(seen, record, 100, npes - 1);
        for (int i = 1; i < 100; i++)
            EXPECT(seen[i] == seen[0] + (seen[0] ? i : 0), "turn %d: %ld and %ld at %d", turn,
                   seen[0], seen[i], i);
        for (int i = 0; i < 100; i++)
            mine[i] = 1000L * turn + 7 * me + 1 + i;
        shmem_long_put_nbi(record, mine, 100, npes - 1);
        shmem_clear_lock(&lock);
    }
    shmem_barrier_all();
}

/* test_lock takes a free lock and returns 0; it leaves a held lock alone and returns 1. */
static void testing(void) {
    static long lock, counter, tries;
    for (int holder = 0; holder < npes; holder++) {
        shmem_barrier_all();
        if (me == holder)
            EXPECT(shmem_test_lock(&lock) == 0, "a free lock");
        shmem_barrier_all();
        if (me != holder)
            EXPECT(shmem_test_lock(&lock) == 1, "a lock that PE %d holds", holder);
        shmem_barrier_all();
        if (me == holder)
            shmem_clear_lock(&lock);
    }
    shmem_barrier_all();
    for (int turn = 0; turn < TURNS / 4; turn++) { /* both ways to take it, mixed */
        if (turn % 2)
            shmem_set_lock(&lock);
        else
            while (shmem_test_lock(&lock) != 0)
                tries++;
        shmem_long_p(&counter, shmem_long_g(&counter, 0) + 1, 0);
        shmem_clear_lock(&lock);
    }
    shmem_barrier_all();
    EXPECT(me != 0 || counter == (long)(TURNS / 4) * npes, "%ld", counter);
}

/* Locks are independent: one PE holds many, in any order, while others hold theirs. */
static void many(void) {
    enum { MANY = 32 };
    long *locks = shmem_calloc(MANY, sizeof *locks);
    static long counters[MANY];
    struct random random = random_of(1, me);
    for (int turn = 0; turn < TURNS; turn++) {
        size_t low = random_below(&random, MANY - 1),
               high = low + 1 + random_below(&random, MANY - low - 1);
        shmem_set_lock(&locks[low]); /* in the same order on all PEs, or they could deadlock */
        shmem_set_lock(&locks[high]);
        shmem_long_p(&counters[low], shmem_long_g(&counters[low], 0) + 1, 0);
        shmem_long_p(&counters[high], shmem_long_g(&counters[high], 0) + 1, 0);
        shmem_clear_lock(&locks[turn % 2 ? low : high]);
        shmem_clear_lock(&locks[turn % 2 ? high : low]);
    }
    shmem_barrier_all();
    long sum = 0;
    for (int i = 0; i < MANY; i++) {
        sum += counters[i];
        if (i % npes == me) {
            EXPECT(shmem_test_lock(&locks[i]) == 0, "lock %d is not free at the end", i);
            shmem_clear_lock(&locks[i]);
        }
    }
    EXPECT(me != 0 || sum == 2L * TURNS * npes, "%ld", sum);
    shmem_barrier_all();
    shmem_free(locks);
}

int main(void) {
    static long in_statics, counter_in_statics;
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    tap_case("53: exclusion, by a lock in static memory and one in the heap");
    exclusion(&in_statics, &counter_in_statics, npes - 1);
    long *in_heap = shmem_calloc(3, sizeof *in_heap);
    exclusion(&in_heap[1], &in_heap[2], 0);
    EXPECT(in_heap[0] == 0, "the neighbour: %ld", in_heap[0]);
    shmem_free(in_heap);
    tap_case("53: clearing completes puts");
    completion();
    tap_case("53: testing");
    testing();
    tap_case("53: many locks");
    many();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
