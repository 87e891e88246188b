/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress (pitfall 7): one-sided operations complete on a PE that computes, or sleeps in the
 * kernel, without any library call, and that PE sees them when it looks. */
#include <pthread.h>
#include <shmem.h>
#include <signal.h>
#include <unistd.h>
#include "tap.h"
#include "api/model.h"

enum { WORDS = 512 };

static long words[WORDS];
static long counter;
static uint64_t sig;
static volatile int go_on;
static int me, npes;

/* The operations of the other PEs on the target, each form at least once, until it has
 * completed. */
static void work_on(int target, long base) {
    long mine[WORDS], back[WORDS], fetched = -1;
    for (int i = 0; i < WORDS; i++)
        mine[i] = base + i;
    if (me == (target + 1) % npes) {
        shmem_long_put_nbi(words, mine, WORDS / 2, target);
        shmem_long_iput(words + WORDS / 2, mine + WORDS / 2, 1, 1, WORDS / 2, target);
        shmem_quiet();
        shmem_long_get_nbi(back, words, WORDS, target);
        shmem_quiet();
        for (int i = 0; i < WORDS; i++)
            EXPECT(back[i] == mine[i], "element %d: %ld", i, back[i]);
        shmem_long_put_signal(&words[1], &mine[1], 1, &sig, 7, SHMEM_SIGNAL_SET, target);
    }
    for (int i = 0; i < 100; i++)
        shmem_long_atomic_fetch_add(&counter, 1, target);
    shmem_long_atomic_fetch_inc_nbi(&fetched, &counter, target);
    shmem_quiet();
    EXPECT(fetched >= 100, "a fetch that the target had to help with: %ld", fetched);
}

static void check_at_target(long base) {
    for (int i = 0; i < WORDS; i++)
        EXPECT(words[i] == base + i, "element %d: %ld", i, words[i]);
    EXPECT(counter == 101 * (npes - 1) && sig == 7, "%ld and %llu", counter,
           (unsigned long long)sig);
    counter = 0;
    sig = 0;
}

/* The target reads a variable of its own, without a call, until a peer has stored there. */
static void computing(int target) {
    static int finished;
    finished = go_on = 0;
    shmem_barrier_all();
    if (me == target) {
        uint64_t sum = 0;
        while (!go_on)
            sum = sum * 3 + 1;
        EXPECT(sum != 7, "%llu", (unsigned long long)sum);
        check_at_target(1000 * target);
    } else {
        work_on(target, 1000 * target);
        if (shmem_int_atomic_fetch_inc(&finished, (target + 1) % npes) == npes - 2)
            shmem_int_p((int *)&go_on, 1, target);
    }
    shmem_barrier_all();
}

/* A thread that makes no library call wakes its PE, which may be on a host of its own. */
static void *wake(void *unused) {
    while (!go_on)
        usleep(200);
    kill(getpid(), SIGUSR1);
    return unused;
}

/* The target sleeps in sigwait until the last peer has finished. */
static void sleeping(int target) {
    static int finished;
    pthread_t waker;
    sigset_t set;
    int got = 0;
    finished = go_on = 0;
    shmem_barrier_all();
    if (me == target) {
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        EXPECT(pthread_create(&waker, NULL, wake, NULL) == 0, "no thread");
        sigwait(&set, &got);
        EXPECT(got == SIGUSR1, "woken by %d", got);
        pthread_join(waker, NULL);
        check_at_target(5000 * target);
    } else {
        work_on(target, 5000 * target);
        if (shmem_int_atomic_fetch_inc(&finished, (target + 1) % npes) == npes - 2)
            shmem_int_p((int *)&go_on, 1, target);
    }
    shmem_barrier_all();
}

int main(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL); /* before the library could start a thread */
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    tap_case("7: at a PE that computes");
    for (int target = 0; target < npes && npes > 1; target++)
        computing(target);
    tap_case("7: at a PE that sleeps in the kernel");
    for (int target = 0; target < npes && npes > 1; target++)
        sleeping(target);
    int result = tap_finish();
    shmem_finalize();
    return result;
}
