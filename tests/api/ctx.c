/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts: lifetime and handles, PE numbers of their team, results for invalid handles,
 * exhaustion, and one context for each of several threads. */
#include <shmem.h>
#include <pthread.h>
#include "tap.h"

static int me, npes;

static void life(void) {
    static const long options[] = {0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE, SHMEM_CTX_NOSTORE,
                                   SHMEM_CTX_SERIALIZED | SHMEM_CTX_NOSTORE};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        shmem_ctx_t ctx = SHMEM_CTX_INVALID, other;
        shmem_team_t team = SHMEM_TEAM_INVALID;
        EXPECT(shmem_ctx_create(options[i], &ctx) == 0 && ctx != SHMEM_CTX_INVALID, "option %zu",
               i);
        EXPECT(shmem_ctx_get_team(ctx, &team) == 0 && team == SHMEM_TEAM_WORLD, "its team");
        EXPECT(shmem_ctx_create(0, &other) == 0 && other != ctx, "two at a time");
        shmem_ctx_fence(ctx);
        shmem_ctx_quiet(ctx);
        shmem_ctx_destroy(ctx);
        EXPECT(shmem_ctx_get_team(ctx, &team) != 0, "destroyed, and still there");
        shmem_ctx_t next;
        shmem_ctx_create(0, &next); /* most likely in the place of the other */
        EXPECT(shmem_ctx_get_team(ctx, &team) != 0, "the old handle names the new context");
        shmem_ctx_destroy(next);
        shmem_ctx_destroy(other);
    }
}

static void invalid(void) {
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    shmem_team_t team = SHMEM_TEAM_WORLD;
    EXPECT(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &ctx) != 0, "no team");
    EXPECT(ctx == SHMEM_CTX_INVALID, "no team");
    EXPECT(shmem_ctx_create(1L << 40, &ctx) != 0 && ctx == SHMEM_CTX_INVALID, "no such option");
    EXPECT(shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0, "no context");
    EXPECT(team == SHMEM_TEAM_INVALID, "no context");
    EXPECT(shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &team) == 0, "the default context");
    EXPECT(team == SHMEM_TEAM_WORLD, "the default context");
    shmem_ctx_destroy(SHMEM_CTX_INVALID);
    shmem_ctx_fence(SHMEM_CTX_INVALID);
    shmem_ctx_quiet(SHMEM_CTX_INVALID);
    shmem_ctx_pe_quiet(SHMEM_CTX_INVALID, NULL, 3);
    shmem_pe_quiet(NULL, 0);
    shmem_ctx_pe_quiet(SHMEM_CTX_DEFAULT, NULL, 0);
}

/* Creating too many contexts returns an error, and places are reused. */
static void many(void) {
    enum { MOST = 5000 };
    static shmem_ctx_t all[MOST];
    int made = 0;
    while (made < MOST && shmem_ctx_create(0, &all[made]) == 0)
        made++;
    EXPECT(made >= 512, "only %d contexts", made);
    EXPECT(made == MOST || all[made] == SHMEM_CTX_INVALID, "a handle from a failure");
    for (int i = 0; i < made; i++)
        shmem_ctx_destroy(all[i]);
    for (int i = 0; i < 10 * MOST; i++) {
        shmem_ctx_t ctx;
        EXPECT(shmem_ctx_create(0, &ctx) == 0, "again, %d", i);
        shmem_ctx_destroy(ctx);
    }
}

/* The odd PEs, or all from `start` on with a stride: member i is the world's start + i * stride. */
static void numbers_of_the_team(int start, int stride, int size) {
    static long word[16];
    static int pes[16];
    shmem_team_t team, got;
    shmem_ctx_t ctx;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, size, NULL, 0, &team);
    for (int i = 0; i < 16; i++)
        word[i] = -1;
    shmem_barrier_all();
    if (team != SHMEM_TEAM_INVALID) {
        EXPECT(shmem_team_create_ctx(team, 0, &ctx) == 0, "no context");
        EXPECT(shmem_ctx_get_team(ctx, &got) == 0 && got == team, "another team");
        for (int member = 0; member < size; member++) {
            pes[member] = member;
            shmem_ctx_long_p(ctx, &word[shmem_team_my_pe(team)], member, member);
            long back = shmem_ctx_long_atomic_fetch(ctx, &word[shmem_team_my_pe(team)], member);
            EXPECT(back == member, "member %d holds %ld", member, back);
        }
        shmem_ctx_pe_quiet(ctx, pes, (size_t)size);
        shmem_ctx_destroy(ctx);
    }
    shmem_barrier_all();
    for (int i = 0; i < size; i++) {
        long expected = team == SHMEM_TEAM_INVALID ? -1 : shmem_team_my_pe(team);
        EXPECT(word[i] == expected, "word of member %d: %ld, not %ld", i, word[i], expected);
    }
    shmem_team_destroy(team);
    shmem_barrier_all();
}

/* A session is a hint, and changes no result of its operations. */
static void sessions(void) {
    static long word[64];
    const shmem_ctx_session_config_t config = {.total_ops = 64};
    shmem_ctx_t own, all[2];
    shmem_ctx_create(0, &own);
    all[0] = own;
    all[1] = SHMEM_CTX_DEFAULT;
    for (int i = 0; i < 2; i++) {
        shmem_ctx_session_start(all[i], SHMEM_CTX_SESSION_BATCH, &config,
                                SHMEM_CTX_SESSION_TOTAL_OPS);
        shmem_ctx_session_start(all[i], 0, NULL, 0); /* has no further effect */
        for (long turn = 0; turn < 64; turn++)
            shmem_ctx_long_p(all[i], &word[turn], 1000 * i + turn, (me + 1) % npes);
        shmem_ctx_quiet(all[i]);
        EXPECT(shmem_ctx_long_g(all[i], &word[63], (me + 1) % npes) == 1000 * i + 63, "a put");
        shmem_ctx_session_stop(all[i]);
        shmem_ctx_session_stop(all[i]);
        shmem_barrier_all();
        for (long turn = 0; turn < 64; turn++)
            EXPECT(word[turn] == 1000 * i + turn, "word %ld is %ld", turn, word[turn]);
        shmem_barrier_all();
    }
    shmem_ctx_session_start(own, SHMEM_CTX_SESSION_BATCH, NULL, 0);
    shmem_ctx_destroy(own); /* also ends the session */
    shmem_ctx_session_start(SHMEM_CTX_INVALID, SHMEM_CTX_SESSION_BATCH, &config,
                            SHMEM_CTX_SESSION_TOTAL_OPS);
    shmem_ctx_session_stop(SHMEM_CTX_INVALID);
}

/* Destroying a team destroys its contexts. */
static void end_of_the_team(void) {
    shmem_team_t team, got;
    shmem_ctx_t ctx, other;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team);
    shmem_team_create_ctx(team, 0, &ctx);
    shmem_ctx_create(0, &other);
    shmem_team_destroy(team);
    EXPECT(shmem_ctx_get_team(ctx, &got) != 0, "a context of no team");
    EXPECT(shmem_ctx_get_team(other, &got) == 0 && got == SHMEM_TEAM_WORLD, "the world's is gone");
    shmem_ctx_destroy(other);
}

/* Each thread uses its own context to count up a word of every PE. */
static uint64_t counts[8];

static void *count(void *index) {
    shmem_ctx_t ctx;
    uint64_t *word = &counts[(uintptr_t)index];
    EXPECT(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0, "thread %zu", (size_t)(uintptr_t)index);
    for (int i = 0; i < 1000; i++)
        for (int pe = 0; pe < npes; pe++)
            shmem_ctx_uint64_atomic_inc(ctx, word, pe);
    shmem_ctx_quiet(ctx);
    shmem_ctx_destroy(ctx);
    shmem_uint64_wait_until(word, SHMEM_CMP_EQ, (uint64_t)(1000 * npes));
    return NULL;
}

static void threads(void) {
    pthread_t all[8];
    for (uintptr_t i = 0; i < 8; i++)
        pthread_create(&all[i], NULL, count, (void *)i);
    for (int i = 0; i < 8; i++)
        pthread_join(all[i], NULL);
    for (int i = 0; i < 8; i++)
        EXPECT(counts[i] == (uint64_t)(1000 * npes), "thread %d: %llu", i,
               (unsigned long long)counts[i]);
    shmem_barrier_all();
}

int main(void) {
    int provided = -1, asked = -1;
    int failed = shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    tap_case("thread level");
    shmem_query_thread(&asked);
    EXPECT(failed == 0 && provided == SHMEM_THREAD_MULTIPLE && asked == provided, "%d %d %d",
           failed, provided, asked);
    tap_case("life of a context");
    life();
    tap_case("invalid handles");
    invalid();
    tap_case("all contexts in use");
    many();
    tap_case("PE numbers of the team");
    for (int size = 1; size <= npes; size++) {
        numbers_of_the_team(0, 1, size);
        numbers_of_the_team(npes - 1, -1, size);
        numbers_of_the_team(npes - size, 1, size);
    }
    if (npes > 2)
        numbers_of_the_team(0, 2, (npes + 1) / 2);
    tap_case("sessions");
    sessions();
    tap_case("the end of the team");
    end_of_the_team();
    tap_case("a context for each thread");
    threads();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
