/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: thousands of collectives of all kinds and sizes in succession, on the same arrays
 * and without synchronisation between them, with PEs delayed at random: first on WORLD, then by
 * several threads at once, each on a team of its own. A source is overwritten as soon as its call
 * returns. PEs: 1 2 3 4 7 */
#include <shmem.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>
#include "tap.h"
#include "api/model.h"

enum { CALLS = 6000, THREADS = 3, NELEMS = 3000 };

/* A sequence of calls on one team. Members make equal choices from equal random numbers. */
struct stream {
    shmem_team_t team;
    uint64_t seed;
    int my_pe, npes;
    uint64_t *dest, *source; /* npes * NELEMS and NELEMS elements */
    struct random common, own;
    uint64_t call;
    const char *wrong; /* the first routine whose result is wrong */
    uint64_t wrong_call;
};

/* Returns an element that a member contributes to a call. */
static uint64_t value(const struct stream *stream, int member, size_t i) {
    struct random random = random_of(stream->seed * 1000003 + stream->call, member);
    return random_next(&random) + i * UINT64_C(0x9E3779B97F4A7C15);
}

static void expect(struct stream *stream, const char *what, size_t at, uint64_t wanted) {
    if (stream->dest[at] == wanted || stream->wrong)
        return;
    stream->wrong = what;
    stream->wrong_call = stream->call;
}

static void fill(struct stream *stream, size_t nelems) {
    for (size_t i = 0; i < nelems; i++)
        stream->source[i] = value(stream, stream->my_pe, i);
}

static void broadcast(struct stream *stream, size_t nelems) {
    int root = (int)random_below(&stream->common, (size_t)stream->npes);
    fill(stream, nelems);
    shmem_uint64_broadcast(stream->team, stream->dest, stream->source, nelems, root);
    for (size_t i = 0; i < nelems; i++)
        expect(stream, "broadcast", i, value(stream, root, i));
}

static void fcollect(struct stream *stream, size_t nelems) {
    fill(stream, nelems);
    shmem_uint64_fcollect(stream->team, stream->dest, stream->source, nelems);
    for (int member = 0; member < stream->npes; member++)
        for (size_t i = 0; i < nelems; i++)
            expect(stream, "fcollect", (size_t)member * nelems + i, value(stream, member, i));
}

static void collect(struct stream *stream, size_t nelems) {
    size_t at = 0;
    fill(stream, nelems);
    shmem_uint64_collect(stream->team, stream->dest, stream->source,
                         nelems / (size_t)(stream->my_pe + 1));
    for (int member = 0; member < stream->npes; member++)
        for (size_t i = 0; i < nelems / (size_t)(member + 1); i++)
            expect(stream, "collect", at++, value(stream, member, i));
}

static void alltoall(struct stream *stream, size_t nelems) {
    size_t each = nelems / (size_t)stream->npes;
    fill(stream, nelems);
    shmem_uint64_alltoall(stream->team, stream->dest, stream->source, each);
    for (int member = 0; member < stream->npes; member++)
        for (size_t i = 0; i < each; i++)
            expect(stream, "alltoall", (size_t)member * each + i,
                   value(stream, member, (size_t)stream->my_pe * each + i));
}

static uint64_t sum(const struct stream *stream, int members, size_t i) {
    uint64_t total = 0;
    for (int member = 0; member < members; member++)
        total += value(stream, member, i);
    return total;
}

static void reduce(struct stream *stream, size_t nelems) {
    fill(stream, nelems);
    shmem_uint64_sum_reduce(stream->team, stream->dest, stream->source, nelems);
    for (size_t i = 0; i < nelems; i++)
        expect(stream, "sum_reduce", i, sum(stream, stream->npes, i));
}

static void exscan(struct stream *stream, size_t nelems) {
    fill(stream, nelems);
    shmem_uint64_sum_exscan(stream->team, stream->dest, stream->source, nelems);
    for (size_t i = 0; i < nelems; i++)
        expect(stream, "sum_exscan", i, sum(stream, stream->my_pe, i));
}

static void run(struct stream *stream, int calls) {
    static void (*const bodies[])(struct stream *, size_t) = {
        broadcast, broadcast, broadcast, fcollect, collect, alltoall, reduce, exscan};
    for (int call = 0; call < calls; call++) {
        size_t limit = random_below(&stream->common, 20) ? 200 : NELEMS;
        size_t nelems = random_below(&stream->common, limit) + 1;
        size_t which = random_below(&stream->common, sizeof bodies / sizeof *bodies);
        if (random_below(&stream->own, 100) == 0)
            usleep((unsigned)random_below(&stream->own, 300));
        stream->call++;
        bodies[which](stream, nelems);
    }
}

static void stream_open(struct stream *stream, shmem_team_t team, uint64_t seed) {
    *stream = (struct stream){.team = team,
                              .seed = seed,
                              .my_pe = shmem_team_my_pe(team),
                              .npes = shmem_team_n_pes(team),
                              .common = random_of(seed, -2),
                              .own = random_of(seed, 1000 + shmem_my_pe())};
    stream->source = shmem_malloc(NELEMS * sizeof *stream->source);
    stream->dest = shmem_malloc(NELEMS * (size_t)shmem_n_pes() * sizeof *stream->dest);
}

static void stream_close(struct stream *stream) {
    EXPECT(!stream->wrong, "call %lu: %s", (unsigned long)stream->wrong_call, stream->wrong);
    shmem_free(stream->dest);
    shmem_free(stream->source);
}

static void one_team(void) {
    tap_case("one team, consecutive calls");
    struct stream stream;
    stream_open(&stream, SHMEM_TEAM_WORLD, 1);
    run(&stream, CALLS);
    stream_close(&stream);
}

static void *work(void *stream) {
    run(stream, CALLS / THREADS);
    return NULL;
}

/* Thread t's team is WORLD in another order, so that members have different numbers in each. */
static void many_teams(void) {
    tap_case("threads at once, each on a team of its own");
    struct stream streams[THREADS];
    pthread_t threads[THREADS];
    int npes = shmem_n_pes();
    for (int t = 0; t < THREADS; t++) {
        shmem_team_t team = SHMEM_TEAM_WORLD;
        if (t > 0)
            shmem_team_split_strided(SHMEM_TEAM_WORLD, t % 2 ? npes - 1 : 0, t % 2 ? -1 : 1, npes,
                                     NULL, 0, &team);
        stream_open(&streams[t], team, 100 + (uint64_t)t);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, work, &streams[t]);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    for (int t = 0; t < THREADS; t++) {
        stream_close(&streams[t]);
        if (t > 0)
            shmem_team_destroy(streams[t].team);
    }
}

int main(void) {
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    tap_start(shmem_my_pe());
    one_team();
    if (provided == SHMEM_THREAD_MULTIPLE)
        many_teams();
    shmem_finalize();
    return tap_finish();
}
