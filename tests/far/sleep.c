/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a thread that waits long for a far PE leaves the processor to others, in a wait for
 * a word, in a barrier and for a lock, also if polling the engine takes long; and a message wakes
 * it, not a timer. PEs: 2 3 Far: each Far: each slow_look_us=50 */
#include <shmem.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>
#include "tap.h"

enum { LATE_US = 600000, ROUNDS = 30, TRIES = 4, NAP_US = 25000 };
enum { SOON_NS = 500000, LOCK_SOON_NS = 5000000 };

static int me, npes;
static long lock, flag, sent_ns; /* symmetric */
static int crowded;              /* symmetric: others need the processors, so no wake-up is soon */

static long now_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Measured by PE 0. */
static void look_for_crowd(void) {
    enum { MANY = 2 }; /* per processor */
    static int seen;
    double load = 0;
    FILE *file = me == 0 ? fopen("/proc/loadavg", "r") : NULL;
    if (file && fscanf(file, "%lf", &load) == 1)
        seen = load > MANY * (double)sysconf(_SC_NPROCESSORS_ONLN);
    if (file)
        fclose(file);
    shmem_int_broadcast(SHMEM_TEAM_WORLD, &crowded, &seen, 1, 0);
}

static void tell_all(long value) {
    for (int pe = 1; pe < npes; pe++) {
        shmem_long_p(&sent_ns, now_ns(CLOCK_MONOTONIC), pe);
        shmem_long_p(&flag, value, pe);
    }
}

static void wait_for_word(void) {
    if (me == 0)
        tell_all(1);
    else
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
}

/* PE 0 holds the lock at the start. */
static void pass_lock_on(void) {
    if (me != 0)
        shmem_set_lock(&lock);
    shmem_clear_lock(&lock);
}

/* All PEs wait for PE 0, which is late. */
static void check_idle(const char *where, void (*wait)(void)) {
    shmem_barrier_all();
    long used = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (me == 0)
        usleep(LATE_US);
    wait();
    used = now_ns(CLOCK_PROCESS_CPUTIME_ID) - used;
    EXPECT(used < LATE_US * 200L, "%.3f s of processor time in %s for a wait of %.1f s",
           (double)used * 1e-9, where, LATE_US * 1e-6);
}

/* Returns whether `mine` is true on all PEs. Collective. */
static int is_true_for_all(int mine) {
    static int untrue; /* symmetric: the number of PEs */
    untrue = 0;
    shmem_barrier_all();
    for (int pe = 0; pe < npes && !mine; pe++)
        shmem_int_atomic_inc(&untrue, pe);
    shmem_barrier_all();
    return untrue == 0;
}

/* The wait has grown used to long sleeps: without a bell, one of 70 ms. */
static int lock_comes_soon(void) {
    long now;
    if (me == 0)
        shmem_set_lock(&lock);
    shmem_barrier_all();
    if (me == 0) {
        usleep(LATE_US);
        tell_all(0);
        shmem_clear_lock(&lock);
        return is_true_for_all(1);
    }
    shmem_set_lock(&lock);
    now = now_ns(CLOCK_MONOTONIC);
    shmem_clear_lock(&lock);
    return is_true_for_all(now - sent_ns < LOCK_SOON_NS);
}

/* A timer of 2 ms would end a quarter of the waits soon enough by chance. */
static int count_soon(void) {
    int soon = 0;
    for (long round = 1; round <= ROUNDS; round++) {
        if (me == 0) {
            usleep(NAP_US);
            tell_all(round);
        } else {
            shmem_long_wait_until(&flag, SHMEM_CMP_EQ, round);
            soon += now_ns(CLOCK_MONOTONIC) - sent_ns < SOON_NS;
        }
        shmem_barrier_all();
    }
    flag = 0;
    shmem_barrier_all();
    return soon;
}

/* Returns whether on every PE half of the wake-ups were soon. */
static int wakes_soon(void) {
    int soon = count_soon();
    return is_true_for_all(me == 0 || soon >= ROUNDS / 2);
}

static int succeeds(int (*attempt)(void)) {
    for (int i = 0; i < TRIES; i++)
        if (attempt())
            return 1;
    return 0;
}

/* Runs a case about soon wake-ups. */
static void soon_case(const char *name, const char *skipped, int (*attempt)(void)) {
    tap_case(crowded ? skipped : name);
    EXPECT(crowded || succeeds(attempt), "not once in %d tries", TRIES);
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    tap_case("a long wait for a word is idle");
    check_idle("a wait", wait_for_word);
    flag = 0;
    tap_case("and one in a barrier");
    check_idle("a barrier", shmem_barrier_all);
    tap_case("and one for a lock");
    if (me == 0)
        shmem_set_lock(&lock);
    check_idle("a lock", pass_lock_on);
    look_for_crowd();
    soon_case("messages wake who sleeps: half of the wakes come within 500 us",
              "messages wake who sleeps # SKIP many want a processor", wakes_soon);
    soon_case("and a release who sleeps for the lock, within 5 ms",
              "and a release who sleeps for the lock # SKIP many want a processor",
              lock_comes_soon);
    shmem_barrier_all();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
