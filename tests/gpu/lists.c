/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: teams of random lists of PEs on streams: the first call of each is captured into a
 * graph, with barriers, collectives by either engine and reductions, and replayed; each replay
 * moves other data. Teams follow each other in the same slot. PEs: 3 4 6, also staged */
#include "api/group.h"
#include "graph.h"
#include "on_stream.h"

enum { TEAMS = 12, REPLAYS = 6, BYTES = 3000, EACH = BYTES / GROUP_MAX, NELEMS = 1000 };

static int me, npes;
static struct group group;
static shmem_team_t team;
static unsigned char *given, *all, *split[2], *of_root; /* device heap */
static int *number, *sum;                               /* device heap */
static long *mark, *marks, *seen; /* device heap: one, and one of each member */

static void enqueue(void) {
    ON(barrier_on_stream(team, gpu_stream));
    for (int i = 0; i < group.count; i++)
        ON(putmem_on_stream(marks + group.member, mark, sizeof *mark, group.pes[i], gpu_stream));
    ON(barrier_on_stream(team, gpu_stream));
    ON(getmem_on_stream(seen, marks, (size_t)group.count * sizeof *marks, me, gpu_stream));
    for (int engine = 0; engine < 2; engine++) {
        shmemx_set_engine(engine ? SHMEMX_ENGINE_SM : SHMEMX_ENGINE_COPY);
        ON(alltoallmem_on_stream(team, split[engine], given, EACH, gpu_stream));
    }
    shmemx_set_engine(SHMEMX_ENGINE_AUTO);
    ON(fcollectmem_on_stream(team, all, given, BYTES, gpu_stream));
    ON(broadcastmem_on_stream(team, of_root, given, BYTES, group.count - 1, gpu_stream));
    ON(int_sum_reduce_on_stream(team, sum, number, NELEMS, gpu_stream));
    ON(sync_on_stream(team, gpu_stream));
}

static uint64_t key(int replay, int pe) {
    return group.tag * 1000 + (uint64_t)(replay * 20 + pe);
}

static int value(int replay, int pe, int i) {
    return replay * 1000000 + pe * 10000 + i;
}

static void prepare(int replay) {
    int numbers[NELEMS];
    long own = value(replay, me, 0);
    for (int i = 0; i < NELEMS; i++)
        numbers[i] = value(replay, me, i);
    gpu_write(given, gpu_data(BYTES, key(replay, me)), BYTES);
    gpu_write(number, numbers, sizeof numbers);
    gpu_write(mark, &own, sizeof own);
    gpu_poison(all, (size_t)BYTES * (size_t)npes);
    gpu_poison(split[0], BYTES);
    gpu_poison(split[1], BYTES);
    gpu_poison(of_root, BYTES);
}

static void check(int replay) {
    int expected[NELEMS] = {0};
    for (int i = 0; i < group.count; i++) {
        int pe = group.pes[i];
        long its = value(replay, pe, 0);
        const char *data = gpu_data(BYTES, key(replay, pe));
        gpu_expect(seen + i, &its, sizeof its, "the mark of PE %d", pe);
        gpu_expect(all + (size_t)i * BYTES, data, BYTES, "what PE %d gave to all", pe);
        for (int engine = 0; engine < 2; engine++)
            gpu_expect(split[engine] + i * EACH, data + group.member * EACH, EACH,
                       "what PE %d gave to this one", pe);
        if (i == group.count - 1)
            gpu_expect(of_root, data, BYTES, "what the root gave");
        for (int k = 0; k < NELEMS; k++)
            expected[k] += value(replay, pe, k);
    }
    gpu_expect(sum, expected, sizeof expected, "the sum");
}

static void run_team(void) {
    ON(team_create(group.pes, group.count, group.tag, &team));
    weft_cu_graph_exec graph = graph_capture(gpu_stream, enqueue);
    for (int replay = 0; replay < REPLAYS; replay++) {
        prepare(replay);
        shmem_team_sync(team);
        if (replay % 3 == 2)
            enqueue();
        else
            graph_replay(graph, gpu_stream);
        gpu_drain(gpu_stream);
        check(replay);
        shmem_team_sync(team);
    }
    graph_drop(graph);
    shmem_team_destroy(team);
}

int main(void) {
    shmem_init();
    gpu_start();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    size_t n = (size_t)npes;
    given = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, BYTES));
    all = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, BYTES * n));
    split[0] = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, BYTES));
    split[1] = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, BYTES));
    of_root = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, BYTES));
    number = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, NELEMS * sizeof *number));
    sum = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, NELEMS * sizeof *sum));
    mark = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, sizeof *mark));
    marks = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, n * sizeof *marks));
    seen = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, n * sizeof *seen));
    struct random random = {gpu_seed};
    tap_case("teams of random lists");
    for (uint64_t i = 0; i < TEAMS; i++) {
        group = group_draw(&random, me, npes);
        group.tag = i;
        if (group.member >= 0)
            run_team();
    }
    shmem_barrier_all();
    return gpu_finish();
}
