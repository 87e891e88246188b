/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: forbidden calls of teams in graphs, each a scene named by the argument. For calls.t;
 * not a test by itself. PEs: none */
#include "graph.h"
#include "on_stream.h"

enum { BYTES = 1000, LAUNCHES = 200 };

static weft_cu_stream a, b;
static shmem_team_t team;
static char *host_source, *host_dest;

static void barrier(void) {
    ON(barrier_on_stream(team, a));
}

/* In host memory, which no kernel with channels accepts: a meeting by kernels. */
static void gather(void) {
    shmemx_set_engine(SHMEMX_ENGINE_SM);
    ON(fcollectmem_on_stream(team, host_dest, host_source, BYTES, a));
}

static shmem_team_t everybody(void) {
    shmem_team_t made = SHMEM_TEAM_INVALID;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0, &made);
    return made;
}

/* The team has ended, and another one has its place. */
static void launch_stale(void (*enqueue)(void)) {
    team = everybody();
    weft_cu_graph_exec graph = graph_capture(a, enqueue);
    graph_replay(graph, a);
    gpu_drain(a);
    shmem_team_destroy(team);
    team = everybody();
    ON(barrier_on_stream(team, a));
    graph_replay(graph, a);
    gpu_drain(a);
}

static void order(weft_cu_stream later, weft_cu_stream earlier) {
    weft_cu_event event;
    gpu_enter();
    GPU(cuEventCreate(&event, WEFT_CU_EVENT_NO_TIMING));
    GPU(cuEventRecord(event, earlier));
    GPU(cuStreamWaitEvent(later, event, 0));
    GPU(cuEventDestroy(event));
    gpu_leave();
}

static void fork_barriers(void) {
    order(b, a);
    ON(barrier_on_stream(SHMEM_TEAM_WORLD, a));
    ON(barrier_on_stream(SHMEM_TEAM_WORLD, b));
    order(a, b);
}

static void branches(void) {
    weft_cu_graph_exec graph = graph_capture(a, fork_barriers);
    for (int i = 0; i < LAUNCHES; i++)
        graph_replay(graph, a);
    gpu_drain(a);
}

static void beside(void) {
    team = SHMEM_TEAM_WORLD;
    weft_cu_graph_exec graph = graph_capture(a, barrier);
    for (int i = 0; i < LAUNCHES; i++) {
        graph_replay(graph, a);
        ON(barrier_on_stream(team, b));
    }
    gpu_drain(a);
    gpu_drain(b);
}

/* Allowed: one after the other. */
static void ordered(void) {
    team = SHMEM_TEAM_WORLD;
    weft_cu_graph_exec graph = graph_capture(a, barrier);
    for (int i = 0; i < LAUNCHES; i++) {
        graph_replay(graph, a);
        order(b, a);
        ON(barrier_on_stream(team, b));
        order(a, b);
    }
    gpu_drain(a);
    graph_drop(graph);
}

/* Members with different engines, which this call depends on and a reduction does not. PE 0 arrives
 * last. */
static void engines(bool sums) {
    char *source = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, BYTES));
    char *dest = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, BYTES * (size_t)shmem_n_pes()));
    int me = shmem_my_pe();
    shmemx_set_engine(me == 0 ? SHMEMX_ENGINE_COPY : SHMEMX_ENGINE_AUTO);
    for (int turn = 1; turn >= 0; turn--) {
        if ((me > 0) == turn && sums)
            ON(int_sum_reduce_on_stream(SHMEM_TEAM_WORLD, (int *)dest, (int *)source, 10, a));
        else if ((me > 0) == turn)
            ON(fcollectmem_on_stream(SHMEM_TEAM_WORLD, dest, source, BYTES, a));
        shmem_barrier_all();
    }
    gpu_drain(a);
}

/* Both tokens of each PE are for the last expert, whose PE has room for fewer rows. */
static void overflow(void) {
    int npes = shmem_n_pes(), experts[2] = {npes - 1, npes - 1};
    weft_moe_shape shape = {(size_t)npes, 1, 4, 0, 2, 2 * (size_t)npes - 1, WEFT_F32};
    char *room = allocated(shmemx_calloc(SHMEMX_SPACE_DEVICE, 16, BYTES));
    weft_moe_rows rows = {room, NULL, NULL, (int32_t *)(room + BYTES),
                          (int32_t *)(room + 2 * BYTES)};
    weft_moe moe;
    EXPECT(weft_moe_create(SHMEM_TEAM_WORLD, &shape, &moe) == 0, "%s", weft_last_error());
    gpu_write(room + 3 * BYTES, experts, sizeof experts);
    int error = weft_moe_dispatch(moe, WEFT_F32, room + 4 * BYTES, NULL,
                                  (int32_t *)(room + 3 * BYTES), NULL, 2, &rows, (weft_stream)a);
    EXPECT(error == 0, "%s", weft_last_error());
    gpu_drain(a);
}

/* Each PE sends `rows` rows to the last one, whose dest has room for one of each; its source has
 * two.
 */
static void exchange_rows(int64_t rows) {
    size_t npes = (size_t)shmem_n_pes();
    int64_t splits[64] = {0}, *numbers = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, 3 * BYTES));
    char *room = allocated(shmemx_calloc(SHMEMX_SPACE_DEVICE, 2, BYTES));
    weft_row_exchange shape = {
        .nparts = 1, .cols = 4, .dtype = WEFT_F32, .source_rows = 2, .dest_rows = npes};
    splits[npes - 1] = rows;
    gpu_write(numbers, splits, npes * sizeof *splits);
    int error =
        weft_all_to_allv_on_device(SHMEM_TEAM_WORLD, &shape, room, numbers + npes,
                                   numbers + 2 * npes, room + BYTES, numbers, NULL, (weft_stream)a);
    EXPECT(error == 0, "%s", weft_last_error());
    gpu_drain(a);
}

/* PE 0 sends block 0 to a block, or to a PE. */
static void kv_shuffle(int64_t block, int peer) {
    void *const caches[] = {allocated(shmemx_calloc(SHMEMX_SPACE_DEVICE, 4, 64))};
    int64_t *numbers = allocated(shmemx_calloc(SHMEMX_SPACE_DEVICE, 3, 64));
    int32_t pair[2] = {shmem_my_pe() == 0 ? peer : -1, WEFT_KV_SENDS};
    weft_kv_caches shape = {caches, 1, 4, 64};
    gpu_write(numbers, &block, sizeof block);
    gpu_write(numbers + 16, pair, sizeof pair);
    int error = weft_kv_shuffle(SHMEM_TEAM_WORLD, &shape, (int32_t *)(numbers + 16), numbers + 8,
                                numbers, 1, (weft_stream)a);
    EXPECT(error == 0, "%s", weft_last_error());
    gpu_drain(a);
}

int main(int argc, char **argv) {
    const char *scene = argc > 1 ? argv[1] : "";
    shmem_init();
    gpu_start();
    host_source = allocated(shmem_malloc(BYTES));
    host_dest = allocated(shmem_malloc((size_t)shmem_n_pes() * BYTES));
    a = gpu_stream_new();
    b = gpu_stream_new();
    ON(barrier_all_on_stream(a));
    if (strcmp(scene, "stale_barrier") == 0)
        launch_stale(barrier);
    else if (strcmp(scene, "stale_meeting") == 0)
        launch_stale(gather);
    else if (strcmp(scene, "branches") == 0)
        branches();
    else if (strcmp(scene, "beside") == 0)
        beside();
    else if (strcmp(scene, "engines") == 0)
        engines(false);
    else if (strcmp(scene, "engines_and_sums") == 0)
        engines(true);
    else if (strcmp(scene, "overflow") == 0)
        overflow();
    else if (strcmp(scene, "exchange_dest") == 0)
        exchange_rows(2);
    else if (strcmp(scene, "exchange_source") == 0)
        exchange_rows(3);
    else if (strcmp(scene, "exchange_negative") == 0)
        exchange_rows(-1);
    else if (strcmp(scene, "kv_block") == 0)
        kv_shuffle(4, 1);
    else if (strcmp(scene, "kv_peer") == 0)
        kv_shuffle(3, 0);
    else
        ordered();
    shmem_barrier_all();
    return gpu_finish();
}
