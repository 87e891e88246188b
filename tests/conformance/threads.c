/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads (pitfalls 8, 12, 33, 50): all calls concurrently from several threads of a PE, waits that
 * block no other thread, a quiet for the operations of all threads, teams and contexts that threads
 * make and use side by side. */
#include <shmem.h>
#include <pthread.h>
#include <stdlib.h>
#include "conformance/ring.h"
#include "tap.h"
#include "api/model.h"

enum { THREADS = 4, TURNS = 100 };

static _Atomic int wrong;

/* Runs `body` on every thread with its number; adds the results to the number of errors. */
static void on_all(void *(*body)(void *)) {
    pthread_t all[THREADS];
    wrong = 0;
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&all[i], NULL, body, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(all[i], NULL);
    EXPECT(wrong == 0, "%d wrong results", wrong);
    shmem_barrier_all();
}

/* Each thread waits for another; only the last of them is set from outside. A wait that blocks a
 * put or an atomic of another thread would hang here. */
static long chain[THREADS + 1];

static void *wait_and_pass_on(void *index) {
    uintptr_t i = (uintptr_t)index;
    shmem_long_wait_until(&chain[i], SHMEM_CMP_EQ, 1);
    shmem_long_atomic_set(&chain[i + 1], 1,
                          i % 2 ? me : next); /* this PE's next thread, or a peer's */
    return NULL;
}

static void waits_block_nobody(void) {
    pthread_t all[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&all[i], NULL, wait_and_pass_on, (void *)i);
    for (int turn = 0; turn < TURNS;
         turn++) { /* meanwhile the first thread makes all kinds of calls */
        static long word, counter;
        shmem_long_p(&word, turn, next);
        shmem_long_atomic_inc(&counter, next);
        shmem_quiet();
        EXPECT(shmem_long_g(&word, next) == turn, "put beside waiting threads");
    }
    shmem_barrier_all();
    shmem_long_atomic_set(&chain[0], 1, next);
    for (int i = 0; i < THREADS; i++)
        pthread_join(all[i], NULL);
    shmem_long_wait_until(&chain[THREADS], SHMEM_CMP_EQ, 1);
    shmem_barrier_all();
}

/* Threads put on one shareable context, and one of them completes all of it. */
static shmem_ctx_t shared_ctx;
static long data[THREADS][64];

static void *put_on_shared(void *index) {
    static long values[THREADS][64]; /* in use until the quiet */
    uintptr_t i = (uintptr_t)index;
    for (int j = 0; j < 64; j++)
        values[i][j] = (long)i * 1000 + j + me;
    shmem_ctx_long_put_nbi(shared_ctx, data[i], values[i], 64, next);
    return NULL;
}

static void quiet_for_all(void) {
    static uint64_t told;
    pthread_t all[THREADS];
    EXPECT(shmem_ctx_create(0, &shared_ctx) == 0, "no context");
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&all[i], NULL, put_on_shared, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(all[i], NULL);
    shmem_ctx_quiet(shared_ctx);
    shmem_signal_set(&told, 1, next);
    shmem_signal_wait_until(&told, SHMEM_CMP_EQ, 1);
    for (int i = 0; i < THREADS; i++)
        for (int j = 0; j < 64; j++)
            EXPECT(data[i][j] == i * 1000 + j + before, "thread %d, element %d: %ld", i, j,
                   data[i][j]);
    shmem_barrier_all();
    shmem_ctx_destroy(shared_ctx);
}

/* All calls that are not collective, from all threads at once, on words of their own. */
static void *everything(void *index) {
    static long words[THREADS][4], back[THREADS];
    static uint64_t sigs[THREADS];
    uintptr_t i = (uintptr_t)index;
    struct random random = random_of(i, me);
    for (int turn = 1; turn <= TURNS; turn++) {
        shmem_ctx_t ctx;
        long value = (long)(random_next(&random) >> 1), fetched = 0;
        wrong += shmem_ctx_create(turn % 2 ? SHMEM_CTX_PRIVATE : SHMEM_CTX_SERIALIZED, &ctx) != 0;
        shmem_ctx_long_put_nbi(ctx, &words[i][0], &value, 1, me);
        shmem_ctx_quiet(ctx);
        wrong += shmem_ctx_long_g(ctx, &words[i][0], me) != value;
        shmem_ctx_long_atomic_fetch_add_nbi(ctx, &fetched, &words[i][1], 1, me);
        shmem_ctx_destroy(ctx);
        wrong += fetched != turn - 1;
        shmem_long_put_signal(&words[i][2], &value, 1, &sigs[i], 1, SHMEM_SIGNAL_ADD, me);
        wrong += shmem_signal_wait_until(&sigs[i], SHMEM_CMP_EQ, (uint64_t)turn) != (uint64_t)turn;
        wrong += words[i][2] != value;
        shmem_fence();
        shmem_quiet();
        wrong += !shmem_long_test(&words[i][1], SHMEM_CMP_EQ, turn);
        wrong += shmem_long_wait_until_any(words[i], 2, NULL, SHMEM_CMP_GE, turn) > 1;
        shmem_getmem(&back[i], &words[i][0], sizeof back[i], me);
        wrong += back[i] != value || shmem_my_pe() != me || !shmem_ptr(&words[i], me);
    }
    return NULL;
}

/* One counter for all threads of all PEs, through contexts and without. */
static long counter;

static void *count(void *index) {
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    if ((uintptr_t)index % 2)
        shmem_ctx_create(0, &ctx);
    for (int i = 0; i < 5 * TURNS; i++)
        shmem_ctx_long_atomic_inc(ctx, &counter, 0);
    if (ctx != SHMEM_CTX_DEFAULT)
        shmem_ctx_destroy(ctx);
    return NULL;
}

/* Threads of a PE on teams of their own: they split, sync and destroy concurrently. */
static shmem_team_t teams[THREADS];

static void *use_own_team(void *index) {
    static long words[THREADS];
    uintptr_t i = (uintptr_t)index;
    int n = shmem_team_n_pes(teams[i]), rank = shmem_team_my_pe(teams[i]);
    for (int turn = 1; turn <= TURNS; turn++) {
        int there = shmem_team_translate_pe(teams[i], (rank + 1) % n, SHMEM_TEAM_WORLD);
        shmem_long_p(&words[i], turn, there);
        shmem_quiet();
        wrong += shmem_team_sync(teams[i]) != 0;
        wrong += words[i] != turn;
        wrong += shmem_team_sync(teams[i]) != 0;
        if (turn % 10 == 0) {
            shmem_team_t child;
            wrong += shmem_team_split_strided(teams[i], n - 1, -1, n, NULL, 0, &child) != 0;
            wrong += shmem_team_my_pe(child) != n - 1 - rank || shmem_team_sync(child) != 0;
            shmem_team_destroy(child);
        }
    }
    return NULL;
}

static void own_teams(void) {
    for (int i = 0; i < THREADS; i++)
        EXPECT(shmem_team_split_strided(SHMEM_TEAM_WORLD, i % 2 ? npes - 1 : 0, i % 2 ? -1 : 1,
                                        npes, NULL, 0, &teams[i]) == 0,
               "team %d", i);
    on_all(use_own_team);
    for (int i = 0; i < THREADS; i++)
        shmem_team_destroy(teams[i]);
}

/* Several threads wait for one word. */
static long gate;

static void *wait_at_gate(void *index) {
    if ((uintptr_t)index % 2)
        shmem_long_wait_until(&gate, SHMEM_CMP_GE, 7);
    else
        while (!shmem_long_test(&gate, SHMEM_CMP_EQ, 7))
            ;
    wrong += gate != 7;
    return NULL;
}

static void one_gate(void) {
    pthread_t all[THREADS];
    wrong = 0;
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&all[i], NULL, wait_at_gate, (void *)i);
    shmem_barrier_all();
    shmem_long_atomic_set(&gate, 7, next);
    for (int i = 0; i < THREADS; i++)
        pthread_join(all[i], NULL);
    EXPECT(wrong == 0, "%d threads passed too early", wrong);
    shmem_barrier_all();
}

int main(void) {
    int provided = -1, queried = -1;
    int failed = shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    ring_start();
    tap_case("50: the level");
    shmem_query_thread(&queried);
    EXPECT(failed == 0 && provided == SHMEM_THREAD_MULTIPLE && queried == provided, "%d %d %d",
           failed, provided, queried);
    tap_case("8: waits block no other thread");
    waits_block_nobody();
    tap_case("8: several threads wait for one word");
    one_gate();
    tap_case("12: a quiet for all threads");
    quiet_for_all();
    tap_case("50: every call from every thread");
    on_all(everything);
    tap_case("50: one counter");
    on_all(count);
    EXPECT(me != 0 || counter == 5L * TURNS * THREADS * npes, "%ld", counter);
    tap_case("33: a team for each thread");
    own_teams();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
