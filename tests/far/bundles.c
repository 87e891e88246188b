/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: if many small puts write to one place, the last one determines its value, and all
 * have arrived when they must have: before a signal, an atomic, a large put, the word after a
 * fence, and when a third PE is notified after a quiet. Puts that no call waits for arrive soon,
 * even if their PE makes no further call. PEs: 3
 * Far: each Far: list:0,1,1 reorder=16,delay_us=50,refuse=5 */
#include <time.h>
#include "draw.h"

enum { WORDS = 700, LARGE = 100000, SOON_MS = 2000 };

static uint64_t words[WORDS], flag, answer;
static unsigned char large[LARGE];
static int me;

/* Writes words in a random order, each at least twice; the last time with `round`. */
static uint64_t write_words(uint64_t *state, uint64_t round) {
    uint64_t count = 1 + draw(state) % WORDS;
    for (uint64_t i = 0; i < count; i++)
        shmem_uint64_p(&words[draw(state) % count], round - 1, 1);
    for (uint64_t i = 0; i < count; i++)
        shmem_uint64_p(&words[i], round, 1);
    return count;
}

static void announce_by_signal(uint64_t value) {
    shmem_putmem_signal(large, large, 1, &flag, value, SHMEM_SIGNAL_SET, 1);
}

static void announce_by_atomic(uint64_t value) {
    shmem_uint64_atomic_set(&flag, value, 1);
}

static void announce_by_fence(uint64_t value) {
    shmem_fence();
    shmem_uint64_p(&flag, value, 1);
}

static void announce_by_large_put(uint64_t value) {
    shmem_putmem(large, large, LARGE, 1);
    announce_by_signal(value);
}

static void expect_words(const uint64_t *found, uint64_t count, uint64_t round) {
    uint64_t i = 0;
    while (i < count && found[i] == round)
        i++;
    EXPECT(i == count, "round %lu: word %lu is %lu", (unsigned long)round, (unsigned long)i,
           (unsigned long)found[i < count ? i : 0]);
}

/* PE 0 writes and announces the number of words to PE 1. */
static void check_announced(const char *name, void (*announce)(uint64_t value), int count) {
    uint64_t state = 7;
    tap_case(name);
    flag = answer = 0;
    shmem_barrier_all();
    for (uint64_t round = 2; me < 2 && round < (uint64_t)count + 2; round++) {
        if (me == 0) {
            uint64_t written = write_words(&state, round);
            announce(round * WORDS * 2 + written);
            shmem_uint64_wait_until(&answer, SHMEM_CMP_EQ, round);
        } else {
            shmem_uint64_wait_until(&flag, SHMEM_CMP_GE, round * WORDS * 2);
            expect_words(words, flag % (WORDS * 2), round);
            shmem_uint64_p(&answer, round, 0);
        }
    }
    shmem_barrier_all();
}

/* PE 2 is notified after a quiet and looks at PE 1. */
static void check_quiet(int count) {
    static uint64_t found[WORDS];
    uint64_t state = 11;
    tap_case("small puts are complete behind a quiet");
    flag = answer = 0;
    shmem_barrier_all();
    for (uint64_t round = 2; round < (uint64_t)count + 2; round++) {
        if (me == 0) {
            uint64_t written = write_words(&state, round);
            shmem_quiet();
            shmem_uint64_p(&flag, round * WORDS * 2 + written, 2);
            shmem_uint64_wait_until(&answer, SHMEM_CMP_EQ, round);
        } else if (me == 2) {
            shmem_uint64_wait_until(&flag, SHMEM_CMP_GE, round * WORDS * 2);
            uint64_t written = flag % (WORDS * 2);
            shmem_getmem(found, words, written * sizeof *found, 1);
            expect_words(found, written, round);
            shmem_uint64_p(&answer, round, 0);
        }
    }
    shmem_barrier_all();
}

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* PE 0 computes until its peer reports through memory that all words have arrived. */
static void check_arrival(int count) {
    uint64_t state = 13;
    tap_case("small puts come soon, though their PE computes");
    answer = 0;
    shmem_barrier_all();
    for (uint64_t round = 2; me < 2 && round < (uint64_t)count + 2; round++) {
        uint64_t last = draw(&state) % WORDS;
        if (me == 0) {
            for (uint64_t i = 0; i <= last; i++)
                shmem_uint64_p(&words[i], round, 1);
            long begin_ms = now_ms();
            while (__atomic_load_n(&answer, __ATOMIC_ACQUIRE) != round &&
                   now_ms() - begin_ms < SOON_MS)
                continue;
            EXPECT(answer == round, "round %lu: words have not come in %d ms", (unsigned long)round,
                   SOON_MS);
        } else {
            shmem_uint64_wait_until(&words[last], SHMEM_CMP_EQ, round);
            shmem_uint64_p(&answer, round, 0);
        }
    }
    shmem_barrier_all();
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    tap_start(me);
    check_announced("small puts come before a signal", announce_by_signal, rounds(20));
    check_announced("small puts come before an atomic", announce_by_atomic, rounds(20));
    check_announced("small puts come before what follows a fence", announce_by_fence, rounds(20));
    check_announced("small puts come before a large one", announce_by_large_put, rounds(5));
    check_quiet(rounds(20));
    check_arrival(rounds(20));
    int result = tap_finish();
    shmem_finalize();
    return result;
}
