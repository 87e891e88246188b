/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: calls on a stream captured once into a CUDA graph and replayed, with new data each
 * time and eager calls in between: puts, gets, signals in device and host words, each collective by
 * each engine, several in one graph, and odd and even numbers of barriers. 1000 replays each, 60 if
 * PEs share a GPU, and on pretended ones 8, or 60 with WEFT_TEST_LONG. PEs: 1 2 3 4, also staged */
#include "graph.h"
#include "on_stream.h"

enum { NELEMS = 250, BYTES = NELEMS * 4, MEMBERS = 8, ROOM = BYTES * MEMBERS };

static unsigned char *source, *dest, *gathered;
static uint64_t *device_word, *host_word;
static int me, npes, left, right;

/* --- Captured calls: each waits until all have checked the last round ------------------------- */

static void put(void) {
    ON(barrier_all_on_stream(gpu_stream));
    ON(putmem_on_stream(dest, source, BYTES, right, gpu_stream));
    ON(barrier_all_on_stream(gpu_stream));
}

static void get(void) {
    ON(sync_on_stream(SHMEM_TEAM_WORLD, gpu_stream));
    ON(getmem_on_stream(dest, source, BYTES, left, gpu_stream));
    ON(quiet_on_stream(gpu_stream));
    ON(barrier_on_stream(SHMEM_TEAM_WORLD, gpu_stream));
}

/* A graph compares with equal numbers in every replay, so words are reset to 0. */
static void ring(uint64_t *word, int sig_op) {
    ON(barrier_all_on_stream(gpu_stream));
    ON(putmem_signal_on_stream(dest, source, BYTES, word, 1, sig_op, right, gpu_stream));
    ON(signal_wait_until_on_stream(word, SHMEM_CMP_EQ, 1, gpu_stream));
    ON(signal_op_on_stream(word, 0, SHMEM_SIGNAL_SET, me, gpu_stream));
}
static void ring_set(void) {
    ring(device_word, SHMEM_SIGNAL_SET);
}
static void ring_added(void) {
    ring(device_word, SHMEM_SIGNAL_ADD);
}
static void ring_of_hosts(void) {
    ring(host_word, SHMEM_SIGNAL_SET);
}
static void ring_of_hosts_added(void) {
    ring(host_word, SHMEM_SIGNAL_ADD);
}

static void broadcast(void) {
    ON(broadcastmem_on_stream(SHMEM_TEAM_WORLD, dest, source, BYTES, npes - 1, gpu_stream));
}
static void fcollect(void) {
    ON(fcollectmem_on_stream(SHMEM_TEAM_WORLD, dest, source, BYTES, gpu_stream));
}
static void alltoall(void) {
    ON(alltoallmem_on_stream(SHMEM_TEAM_WORLD, dest, source, BYTES, gpu_stream));
}
static void reduce(void) {
    ON(uint32_sum_reduce_on_stream(SHMEM_TEAM_WORLD, (void *)dest, (void *)source, NELEMS,
                                   gpu_stream));
}
static void scatter(void) {
    ON(uint32_sum_reducescatter_on_stream(SHMEM_TEAM_WORLD, (void *)dest, (void *)source, NELEMS,
                                          gpu_stream));
}

/* Gathered, and summed up again: the sum of block i of all members' first blocks. */
static void several(void) {
    ON(alltoallmem_on_stream(SHMEM_TEAM_WORLD, gathered, source, BYTES, gpu_stream));
    ON(barrier_all_on_stream(gpu_stream));
    ON(fcollectmem_on_stream(SHMEM_TEAM_WORLD, dest, gathered, BYTES, gpu_stream));
    ON(uint32_sum_reduce_on_stream(SHMEM_TEAM_WORLD, (void *)gathered, (void *)source, NELEMS,
                                   gpu_stream));
    ON(broadcastmem_on_stream(SHMEM_TEAM_WORLD, dest, gathered, BYTES, npes - 1, gpu_stream));
}

static void barriers(int n) {
    for (int i = 0; i < n; i++)
        ON(barrier_all_on_stream(gpu_stream));
    fcollect();
}
static void one_barrier(void) {
    barriers(1);
}
static void two_barriers(void) {
    barriers(2);
}
static void three_barriers(void) {
    barriers(3);
}

/* --- Expected results ------------------------------------------------------------------------- */

static uint64_t key_of(uint64_t round, int pe) {
    return round * 64 + (uint64_t)pe + 1;
}

/* Returns block `block` of a PE's data in this round. */
static const unsigned char *block_of(uint64_t round, int pe, int block) {
    return (const unsigned char *)gpu_data(ROOM, key_of(round, pe)) + (size_t)block * BYTES;
}

static void from_left(uint64_t round) {
    gpu_expect(dest, block_of(round, left, 0), BYTES, "round %d", (int)(round % 10000));
}
static void from_last(uint64_t round) {
    gpu_expect(dest, block_of(round, npes - 1, 0), BYTES, "round %d", (int)(round % 10000));
}
static void from_all(uint64_t round) {
    for (int i = 0; i < npes; i++)
        gpu_expect(dest + (size_t)i * BYTES, block_of(round, i, 0), BYTES, "round %d, block %d",
                   (int)(round % 10000), i);
}
static void for_me(uint64_t round) {
    for (int i = 0; i < npes; i++)
        gpu_expect(dest + (size_t)i * BYTES, block_of(round, i, me), BYTES, "round %d, block %d",
                   (int)(round % 10000), i);
}
static void expect_sum(uint64_t round, int block) {
    static uint32_t sum[NELEMS], term[NELEMS];
    memset(sum, 0, sizeof sum);
    for (int pe = 0; pe < npes; pe++) {
        memcpy(term, block_of(round, pe, block), sizeof term);
        for (int i = 0; i < NELEMS; i++)
            sum[i] += term[i];
    }
    gpu_expect(dest, sum, BYTES, "round %d", (int)(round % 10000));
}
static void sum_of_firsts(uint64_t round) {
    expect_sum(round, 0);
}
static void sum_for_me(uint64_t round) {
    expect_sum(round, me);
}
/* The broadcast sum overlaps the first block; the gathered blocks follow it. */
static void sum_and_blocks(uint64_t round) {
    expect_sum(round, 0);
    for (int i = 1; i < npes; i++)
        gpu_expect(dest + (size_t)i * BYTES, block_of(round, 0, i), BYTES, "round %d, block %d",
                   (int)(round % 10000), i);
}

/* --- Replays -------------------------------------------------------------------------------------
 */

static const struct scene {
    const char *name;
    void (*enqueue)(void);
    void (*check)(uint64_t round);
} scenes[] = {
    {"put between barriers", put, from_left},
    {"get between barriers", get, from_left},
    {"put with signal, wait", ring_set, from_left},
    {"put with signal added, wait", ring_added, from_left},
    {"put with signal in a host word, wait", ring_of_hosts, from_left},
    {"put with signal added to a host word, wait", ring_of_hosts_added, from_left},
    {"broadcast", broadcast, from_last},
    {"fcollect", fcollect, from_all},
    {"alltoall", alltoall, for_me},
    {"reduce", reduce, sum_of_firsts},
    {"reducescatter", scatter, sum_for_me},
    {"several collectives", several, sum_and_blocks},
    {"a barrier and a collective", one_barrier, from_all},
    {"two barriers and a collective", two_barriers, from_all},
    {"three barriers and a collective", three_barriers, from_all},
};
enum { NSCENES = sizeof scenes / sizeof *scenes };

static int replays(void) {
    bool shared = gpu_count < npes; /* they take turns of milliseconds then */
    return gpu_rounds(shared || gpu_is_pretended() ? 60 : 1000, 8);
}

/* New data, poison, a replay or an eager call, and a check; and replays in a row at the end. */
static void play(const struct scene *scene, uint64_t first) {
    weft_cu_graph_exec exec = graph_capture(gpu_stream, scene->enqueue);
    uint64_t end = first + (uint64_t)replays();
    for (uint64_t round = first; round <= end; round++) {
        gpu_write(source, gpu_data(ROOM, key_of(round, me)), ROOM);
        gpu_poison(dest, ROOM);
        if (round < end && gpu_draw(round, 5) == 0)
            scene->enqueue();
        else
            for (int i = 0; i < (round == end ? 20 : 1); i++)
                graph_replay(exec, gpu_stream);
        gpu_drain(gpu_stream);
        scene->check(round);
    }
    graph_drop(exec);
    shmem_barrier_all();
}

int main(void) {
    static const char *const engines[] = {"auto", "SM", "copy engine"};
    static char name[128];
    shmem_init();
    gpu_start();
    me = shmem_my_pe(), npes = shmem_n_pes();
    left = (me + npes - 1) % npes, right = (me + 1) % npes;
    source = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, ROOM));
    dest = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, ROOM));
    gathered = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, ROOM));
    device_word = allocated(shmemx_calloc(SHMEMX_SPACE_DEVICE, 1, sizeof *device_word));
    host_word = allocated(shmem_calloc(1, sizeof *host_word));
    for (int s = 0; s < NSCENES; s++)
        for (int engine = 0; engine < 3; engine++) {
            if (engine == 0 && s % 3 != 0)
                continue;
            snprintf(name, sizeof name, "%s, %s", scenes[s].name, engines[engine]);
            tap_case(name);
            shmemx_set_engine((shmemx_engine_t)engine);
            play(&scenes[s], (uint64_t)(1 + s * 3 + engine) * 10000);
        }
    return gpu_finish();
}
