/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks: exclusion and visibility among PEs and threads, in the heap and in statics; first come,
 * first served; test_lock; waiters that sleep. The queue of waiters is observed from inside: the
 * upper word of PE 0's long counts arrivals. PEs: 1 2 3 4 7 */
#include <shmem.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#include "tap.h"

enum { THREADS = 3, TURNS = 300, PAYLOAD = 40 };

static int me, npes;
static long static_lock, static_payload[PAYLOAD];
static long *heap_lock, *heap_payload;

/* The data under a lock: equal numbers on the last PE, incremented one by one with operations that
 * are not atomic. */
struct guarded {
    long *lock, *payload;
    int wrong; /* payloads whose numbers were not all equal */
};

static void raise_payload(struct guarded *guarded) {
    long copy[PAYLOAD];
    shmem_long_get(copy, guarded->payload, PAYLOAD, npes - 1);
    long before = copy[0];
    for (int i = 0; i < PAYLOAD; i++) {
        guarded->wrong += copy[i] != before;
        copy[i]++;
    }
    shmem_long_put(guarded->payload, copy, PAYLOAD, npes - 1);
}

/* Every third turn uses test_lock first. */
static void *raise_often(void *argument) {
    struct guarded *guarded = argument;
    for (int turn = 0; turn < TURNS; turn++) {
        if (turn % 3 != 0 || shmem_test_lock(guarded->lock) != 0)
            shmem_set_lock(guarded->lock);
        raise_payload(guarded);
        shmem_clear_lock(guarded->lock);
    }
    return NULL;
}

static void exclusion(long *lock, long *payload, int nthreads) {
    pthread_t thread[THREADS];
    struct guarded guarded[THREADS];
    for (int i = 0; i < PAYLOAD; i++)
        payload[i] = 0;
    shmem_barrier_all();
    for (int i = 0; i < nthreads; i++) {
        guarded[i] = (struct guarded){lock, payload, 0};
        pthread_create(&thread[i], NULL, raise_often, &guarded[i]);
    }
    for (int i = 0; i < nthreads; i++) {
        pthread_join(thread[i], NULL);
        EXPECT(guarded[i].wrong == 0, "thread %d saw %d torn payloads", i, guarded[i].wrong);
    }
    shmem_barrier_all();
    long expected = (long)npes * nthreads * TURNS,
         is = shmem_long_g(&payload[PAYLOAD - 1], npes - 1);
    EXPECT(is == expected, "%ld turns, not %ld", is, expected);
    shmem_barrier_all();
}

/* Two locks held at a time, in one order. */
static void nested(void) {
    for (int turn = 0; turn < TURNS; turn++) {
        shmem_set_lock(&static_lock);
        shmem_set_lock(heap_lock);
        struct guarded both = {NULL, heap_payload, 0};
        raise_payload(&both);
        EXPECT(both.wrong == 0, "turn %d", turn);
        shmem_clear_lock(turn % 2 ? &static_lock : heap_lock);
        shmem_clear_lock(turn % 2 ? heap_lock : &static_lock);
    }
    shmem_barrier_all();
}

static void testing(long *lock) {
    static long held;
    held = 0;
    shmem_barrier_all();
    if (me == npes - 1) {
        EXPECT(shmem_test_lock(lock) == 0, "a free lock");
        for (int pe = 0; pe < npes; pe++)
            shmem_long_atomic_set(&held, 1, pe);
    }
    shmem_long_wait_until(&held, SHMEM_CMP_EQ, 1);
    for (int turn = 0; turn < 50; turn++)
        EXPECT(shmem_test_lock(lock) == 1, "a held lock");
    shmem_barrier_all();
    if (me == npes - 1)
        shmem_clear_lock(lock);
    shmem_barrier_all();
    if (me == 0) {
        EXPECT(shmem_test_lock(lock) == 0, "a lock that became free");
        shmem_clear_lock(lock);
    }
    shmem_barrier_all();
}

/* Returns how many have arrived at the lock: tickets are 256 apart. */
static uint32_t comers(long *lock) {
    return shmem_uint32_atomic_fetch((uint32_t *)lock + 1, 0) / 256;
}

static long served; /* on PE 0, under the lock */

struct comer {
    long *lock;
    uint32_t place; /* how many arrive before */
    long served;    /* how many have been served before */
};

static void *come(void *argument) {
    struct comer *comer = argument;
    while (comers(comer->lock) != comer->place)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    shmem_set_lock(comer->lock);
    comer->served = shmem_long_g(&served, 0);
    shmem_long_p(&served, comer->served + 1, 0);
    shmem_clear_lock(comer->lock);
    return NULL;
}

/* PE 0 holds the lock until two threads of every PE have arrived, PE by PE, twice; each arrives
 * when it sees that all before it have. */
static void in_order(long *lock) {
    pthread_t thread[2];
    struct comer comer[2];
    shmem_barrier_all();
    uint32_t first = comers(lock) + 1;
    served = 0;
    shmem_barrier_all();
    if (me == 0)
        shmem_set_lock(lock);
    for (int i = 0; i < 2; i++) {
        comer[i] = (struct comer){lock, first + (uint32_t)(i * npes + me), -1};
        pthread_create(&thread[i], NULL, come, &comer[i]);
    }
    if (me == 0) {
        while (comers(lock) != first + (uint32_t)(2 * npes))
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        shmem_clear_lock(lock);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        EXPECT(comer[i].served == i * npes + me, "came as %d and was served as %ld", i * npes + me,
               comer[i].served);
    }
    shmem_barrier_all();
}

static double cpu_seconds(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* A thread that waits long for a lock leaves the processor to others. */
static void sleeping(long *lock) {
    const struct timespec hold = {.tv_nsec = 400000000};
    shmem_barrier_all();
    uint32_t before = comers(lock);
    double used = cpu_seconds();
    shmem_barrier_all();
    if (me == 0) {
        shmem_set_lock(lock);
        while (comers(lock) != before + (uint32_t)npes)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        nanosleep(&hold, NULL);
    } else {
        while (comers(lock) == before)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        shmem_set_lock(lock);
    }
    shmem_clear_lock(lock);
    used = cpu_seconds() - used;
    EXPECT(used < 0.2, "%.3f s of processor time for a wait of 0.4 s", used);
    shmem_barrier_all();
}

/* A zeroed lock starts with its first ticket again: the last PE, which had that ticket, waits long
 * for PE 0, which has it now, and is not taken for the holder. */
static void zeroed_again(long *lock) {
    const struct timespec hold = {.tv_nsec = 30000000};
    int last = me == npes - 1 && me != 0;
    *lock = 0;
    shmem_barrier_all();
    if (last) {
        shmem_set_lock(lock);
        shmem_clear_lock(lock);
    }
    shmem_barrier_all();
    *lock = 0;
    shmem_barrier_all();
    if (me == 0)
        shmem_set_lock(lock);
    shmem_barrier_all();
    if (me == 0)
        nanosleep(&hold, NULL);
    if (last)
        shmem_set_lock(lock);
    if (me == 0 || last)
        shmem_clear_lock(lock);
    shmem_barrier_all();
}

/* A lock whose tickets are about to wrap around. */
static void wrap_around(long *lock) {
    if (me == 0)
        *(_Atomic uint64_t *)lock = UINT64_C(0xfffff000fffff000);
    exclusion(lock, heap_payload, THREADS);
    sleeping(lock);
}

int main(void) {
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    heap_lock = shmem_calloc(1, sizeof *heap_lock);
    heap_payload = shmem_calloc(PAYLOAD, sizeof *heap_payload);
    tap_case("exclusion among PEs, a lock in statics");
    exclusion(&static_lock, heap_payload, 1);
    tap_case("exclusion among PEs, a lock in the heap");
    exclusion(heap_lock, static_payload, 1);
    tap_case("exclusion among PEs and their threads");
    exclusion(heap_lock, heap_payload, THREADS);
    exclusion(&static_lock, static_payload, THREADS);
    tap_case("two locks at a time");
    nested();
    tap_case("test_lock");
    testing(heap_lock);
    testing(&static_lock);
    tap_case("first come, first served");
    in_order(heap_lock);
    in_order(&static_lock);
    tap_case("a long wait sleeps");
    sleeping(heap_lock);
    tap_case("a lock that is zeroed and used again");
    zeroed_again(heap_lock);
    tap_case("tickets wrap around");
    wrap_around(heap_lock);
    shmem_barrier_all();
    shmem_free(heap_payload);
    shmem_free(heap_lock);
    int result = tap_finish();
    shmem_finalize();
    return result;
}
