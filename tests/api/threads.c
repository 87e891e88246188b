/* SPDX-License-Identifier: BSD-3-Clause */
/* Every family of routines at once from the threads of each PE: thread i of all PEs has a team of
 * its own and uses the families in an order given by its number and a seed. Data that a lock, a
 * signal or a word hands on within a PE is plain private memory, so that a thread sanitizer sees
 * whether the library orders it. PEs: 1 2 3 4 7 */
#include <shmem.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <weft.h>
#include "api/model.h"
#include "tap.h"

enum { THREADS = 3, TURNS = 40, NELEMS = 50 };

static int me, npes;
static long world_lock;
static long under_lock; /* private: protected by the lock within this PE */

/* The memory that a thread works on: one for each thread, in the heap. */
struct ground {
    long put[NELEMS], get[NELEMS], from[NELEMS], strided[3 * NELEMS];
    long gathered[8 * NELEMS], counter, fetched;
    uint64_t signal, word[4];
};
static struct ground *ground;

struct worker {
    int number, turn;
    int next, before; /* in the team */
    shmem_team_t team;
    shmem_ctx_t ctx;
    struct ground *ground;
    struct random random; /* equal on every PE */
    int wrong;
    const char *first_wrong;
};

static void check(struct worker *worker, int right, const char *what) {
    if (!right && worker->wrong++ == 0)
        worker->first_wrong = what;
}

static void meet(struct worker *worker) {
    shmem_ctx_quiet(worker->ctx);
    check(worker, shmem_team_sync(worker->team) == 0, "team_sync");
}

static long value(const struct worker *worker, int pe, int i) {
    return worker->turn * 1000000L + worker->number * 100000L + pe * 1000L + i;
}

static void fill(struct worker *worker) {
    for (int i = 0; i < NELEMS; i++)
        worker->ground->from[i] = value(worker, me, i);
}

static void put_get(struct worker *worker) {
    struct ground *g = worker->ground;
    fill(worker);
    shmem_ctx_long_put(worker->ctx, g->put, g->from, NELEMS / 2, worker->next);
    shmem_long_put_nbi(g->put + NELEMS / 2, g->from + NELEMS / 2, NELEMS / 2, worker->next);
    shmem_long_iput(g->strided, g->from, 3, 1, NELEMS, worker->next);
    shmem_ctx_fence(worker->ctx);
    shmem_quiet();
    meet(worker);
    shmem_ctx_long_get_nbi(worker->ctx, g->get, g->from, NELEMS, worker->next);
    shmem_ctx_quiet(worker->ctx);
    for (int i = 0; i < NELEMS; i++) {
        check(worker, g->put[i] == value(worker, worker->before, i), "put");
        check(worker, g->strided[3 * i] == value(worker, worker->before, i), "iput");
        check(worker, g->get[i] == value(worker, worker->next, i), "get");
    }
    check(worker, shmem_long_g(&g->from[3], worker->next) == value(worker, worker->next, 3), "g");
    meet(worker);
}

static void atomics(struct worker *worker) {
    struct ground *g = worker->ground;
    long before = g->counter;
    meet(worker);
    for (int pe = 0; pe < npes; pe++) {
        shmem_ctx_long_atomic_add(worker->ctx, &g->counter, 2, pe);
        shmem_long_atomic_fetch_inc_nbi(&g->fetched, &g->counter, pe);
    }
    shmem_quiet();
    meet(worker);
    check(worker, g->counter == before + 3 * npes, "add, fetch_inc");
    meet(worker);
}

static void signals(struct worker *worker) {
    struct ground *g = worker->ground;
    uint64_t turn = g->signal + 1;
    fill(worker);
    meet(worker);
    shmem_ctx_long_put_signal(worker->ctx, g->put, g->from, NELEMS, &g->signal, turn,
                              SHMEM_SIGNAL_SET, worker->next);
    check(worker, shmem_signal_wait_until(&g->signal, SHMEM_CMP_EQ, turn) == turn, "signal");
    for (int i = 0; i < NELEMS; i++)
        check(worker, g->put[i] == value(worker, worker->before, i), "put_signal");
    meet(worker);
}

static void waits(struct worker *worker) {
    struct ground *g = worker->ground;
    size_t some[4], found;
    uint64_t goal = g->word[0] + 1;
    meet(worker);
    for (int i = 0; i < 4; i++)
        shmem_ctx_uint64_atomic_inc(worker->ctx, &g->word[i], worker->next);
    check(worker, shmem_uint64_wait_until_any(g->word, 4, NULL, SHMEM_CMP_GE, goal) < 4, "any");
    found = shmem_uint64_wait_until_some(g->word, 4, some, NULL, SHMEM_CMP_GE, goal);
    check(worker, found >= 1 && found <= 4, "some");
    shmem_uint64_wait_until_all(g->word, 4, NULL, SHMEM_CMP_GE, goal);
    check(worker, shmem_uint64_test_all(g->word, 4, NULL, SHMEM_CMP_EQ, goal), "test_all");
    meet(worker);
}

static void collectives(struct worker *worker) {
    struct ground *g = worker->ground;
    int root = (int)(random_below(&worker->random, (uint64_t)npes)), wrong = 0;
    long sum = 0, scan = 0;
    fill(worker);
    wrong |= shmem_long_broadcast(worker->team, g->put, g->from, NELEMS, root);
    wrong |= shmem_long_fcollect(worker->team, g->gathered, g->from, NELEMS);
    wrong |= shmem_long_sum_reduce(worker->team, g->get, g->from, NELEMS);
    wrong |= shmem_long_sum_exscan(worker->team, g->strided, g->from, NELEMS);
    check(worker, wrong == 0, "a collective failed");
    for (int pe = 0; pe < npes; pe++) {
        scan += pe < me ? value(worker, pe, 7) : 0;
        sum += value(worker, pe, 7);
        check(worker, g->gathered[pe * NELEMS + 7] == value(worker, pe, 7), "fcollect");
    }
    check(worker, g->put[7] == value(worker, root, 7), "broadcast");
    check(worker, g->get[7] == sum && g->strided[7] == scan, "reduce, scan");
    wrong = shmem_long_alltoall(worker->team, g->gathered, g->from, NELEMS / 8);
    check(worker, wrong == 0 && g->gathered[0] == value(worker, 0, me * (NELEMS / 8)), "alltoall");
    meet(worker);
}

/* Tensor operators, on private memory. */
static void operators(struct worker *worker) {
    float from[NELEMS], to[NELEMS], all[8 * NELEMS];
    for (int i = 0; i < NELEMS; i++)
        from[i] = (float)(worker->number + me + i);
    int wrong =
        weft_all_reduce(worker->team, to, from, NELEMS, WEFT_F32, WEFT_SUM, WEFT_STREAM_HOST) ||
        weft_all_gather(worker->team, all, from, NELEMS, WEFT_F32, WEFT_STREAM_HOST);
    check(worker, wrong == 0, weft_last_error());
    float sum = (float)(npes * (worker->number + 9) + npes * (npes - 1) / 2);
    check(worker, to[9] == sum, "all_reduce");
    check(worker, all[(npes - 1) * NELEMS + 9] == (float)(worker->number + npes + 8), "all_gather");
}

static void teams_and_contexts(struct worker *worker) {
    shmem_team_t part, x, y;
    shmem_ctx_t ctx, own;
    int size = 1 + (int)random_below(&worker->random, (uint64_t)npes);
    int failed = shmem_team_split_strided(worker->team, npes - 1, -1, size, NULL, 0, &part);
    check(worker, failed == 0, "split_strided");
    if (part != SHMEM_TEAM_INVALID) {
        check(worker, shmem_team_create_ctx(part, SHMEM_CTX_PRIVATE, &ctx) == 0, "team_create_ctx");
        check(worker, shmem_team_translate_pe(part, 0, SHMEM_TEAM_WORLD) == npes - 1, "translate");
        shmem_ctx_long_p(ctx, &worker->ground->fetched, 1, shmem_team_my_pe(part));
        shmem_ctx_destroy(ctx);
        shmem_team_sync(part);
    }
    shmem_team_destroy(part);
    failed = shmem_team_split_2d(worker->team, 2, NULL, 0, &x, NULL, 0, &y);
    check(worker, failed == 0 && shmem_team_sync(x) == 0 && shmem_team_sync(y) == 0, "split_2d");
    shmem_team_destroy(y);
    shmem_team_destroy(x);
    check(worker, shmem_ctx_create(SHMEM_CTX_SERIALIZED, &own) == 0, "ctx_create");
    shmem_ctx_session_start(own, SHMEM_CTX_SESSION_BATCH, NULL, 0);
    shmem_ctx_session_stop(own);
    shmem_ctx_destroy(own);
}

static void locks(struct worker *worker) {
    if (worker->turn % 2 || shmem_test_lock(&world_lock) != 0)
        shmem_set_lock(&world_lock);
    under_lock++;
    shmem_clear_lock(&world_lock);
}

static void questions(struct worker *worker) {
    int initialized = 0, level = -1, major, minor;
    char name[SHMEM_MAX_NAME_LEN];
    shmem_team_t team;
    shmem_query_initialized(&initialized);
    shmem_query_thread(&level);
    shmem_info_get_version(&major, &minor);
    shmem_info_get_name(name);
    check(worker, initialized && level == SHMEM_THREAD_MULTIPLE && major == 1, "queries");
    check(worker, shmem_my_pe() == me && shmem_n_pes() == npes, "my_pe");
    check(worker, shmem_pe_accessible(npes - 1) && !shmem_pe_accessible(npes), "pe_accessible");
    check(worker, shmem_addr_accessible(worker->ground, worker->next), "addr_accessible");
    check(worker, shmem_ptr(worker->ground, me) == worker->ground, "ptr");
    check(worker, shmem_ctx_get_team(worker->ctx, &team) == 0 && team == worker->team, "get_team");
}

/* The first thread has WORLD to itself, and with it the heap, which grows meanwhile. */
static void world(struct worker *worker) {
    if (worker->number != 0)
        return;
    size_t bytes = (size_t)1 << (10 + random_below(&worker->random, 13));
    char *object = shmem_malloc(bytes);
    check(worker, object != NULL, "malloc");
    shmem_putmem(object, "a", 1, worker->next);
    shmem_barrier_all();
    check(worker, object[0] == 'a', "an object of a heap that grows");
    object = shmem_realloc(object, bytes + 5000);
    check(worker, object && object[0] == 'a', "realloc");
    shmem_sync_all();
    shmem_free(object);
}

static void *work(void *argument) {
    static void (*const family[])(struct worker *) = {
        put_get, atomics,   signals, waits,    collectives, teams_and_contexts,
        locks,   questions, world,   operators};
    struct worker *worker = argument;
    for (worker->turn = 1; worker->turn <= TURNS; worker->turn++)
        family[random_below(&worker->random, sizeof family / sizeof *family)](worker);
    locks(worker);
    return NULL;
}

static void everything_at_once(uint64_t seed) {
    pthread_t thread[THREADS];
    struct worker worker[THREADS];
    for (int i = 0; i < THREADS; i++) {
        worker[i] = (struct worker){.number = i,
                                    .next = (me + 1) % npes,
                                    .before = (me + npes - 1) % npes,
                                    .ground = &ground[i],
                                    .random = random_of(seed, i)};
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &worker[i].team);
        shmem_team_create_ctx(worker[i].team, 0, &worker[i].ctx);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, work, &worker[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        EXPECT(worker[i].wrong == 0, "thread %d: %d wrong, first: %s", i, worker[i].wrong,
               worker[i].first_wrong);
        shmem_ctx_destroy(worker[i].ctx);
        shmem_team_destroy(worker[i].team);
    }
    EXPECT(under_lock >= THREADS, "%ld under the lock", under_lock);
}

/* One thread writes memory that no other PE sees and sets a word of its own PE; the other waits for
 * it. */
enum { HANDED = 100, HANDED_LONG = 10000 };
static uint64_t turns;
static long handed[2]; /* private, by parity of the turn */
static uint64_t static_word;

static uint64_t *words(int i) {
    return i == 0 ? &static_word : &ground[0].signal;
}

static void *hand(void *index) {
    uint64_t *word = words((int)(uintptr_t)index), *back = &ground[1].signal;
    for (uint64_t turn = 1; turn <= turns; turn++) {
        handed[turn % 2] = (long)turn * 3;
        if (turn % 3 == 0)
            shmem_uint64_atomic_set(word, turn, me);
        else if (turn % 3 == 1)
            shmem_signal_set(word, turn, me);
        else
            shmem_uint64_atomic_inc(word, me);
        shmem_uint64_wait_until(back, SHMEM_CMP_GE, turn);
    }
    return NULL;
}

static void *receive(void *index) {
    uint64_t *word = words((int)(uintptr_t)index), *back = &ground[1].signal;
    for (uint64_t turn = 1; turn <= turns; turn++) {
        if (turn % 4 == 0)
            shmem_signal_wait_until(word, SHMEM_CMP_EQ, turn);
        else if (turn % 4 == 1)
            while (shmem_uint64_atomic_fetch(word, me) < turn)
                ;
        else if (turn % 4 == 2)
            shmem_uint64_wait_until_any(word, 1, NULL, SHMEM_CMP_GE, turn);
        else
            while (!shmem_uint64_test(word, SHMEM_CMP_GE, turn))
                ;
        EXPECT(handed[turn % 2] == (long)turn * 3, "turn %d: %ld", (int)turn, handed[turn % 2]);
        shmem_uint64_atomic_set(back, turn, me);
    }
    return NULL;
}

static void hand_over(uintptr_t which) {
    pthread_t one, other;
    *words((int)which) = ground[1].signal = 0;
    shmem_barrier_all();
    pthread_create(&one, NULL, hand, (void *)which);
    pthread_create(&other, NULL, receive, (void *)which);
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    shmem_barrier_all();
}

int main(void) {
    int provided = -1;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    me = shmem_my_pe();
    npes = shmem_n_pes();
    ground = shmem_calloc(THREADS, sizeof *ground);
    tap_start(me);
    tap_case("all families at once");
    EXPECT(provided == SHMEM_THREAD_MULTIPLE, "level %d", provided);
    bool is_long = getenv("WEFT_TEST_LONG") != NULL;
    for (uint64_t seed = 1; seed <= (is_long ? 100 : 2); seed++)
        everything_at_once(seed);
    turns = is_long ? HANDED_LONG : HANDED;
    tap_case("from thread to thread by a word in the heap");
    hand_over(1);
    tap_case("from thread to thread by a static word");
    hand_over(0);
    shmem_free(ground);
    int result = tap_finish();
    shmem_finalize();
    return result;
}
