/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: one PE dies while the others are inside a call that cannot end without it.
 *
 *   scenes CALL VICTIM HOW
 *
 * CALL is a name of the table below, HOW the number of a signal, or "exit". Prints the pid of the
 * PE that will die; it dies when the others have had time to enter the call. Not a test by itself.
 * PEs: none */
#include <shmem.h>
#include <shmemx.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft.h>

enum { NELEMS = 20000, LARGE = 64 << 20, LET_THEM_IN_US = 30000, STATUS_SURVIVED = 98 };

static const char *how;
static int me, npes, victim;
static long word, many[4], lock;
static uint64_t signal_word;
static void *object;
static float source[NELEMS], dest[NELEMS];
static shmem_team_t pair = SHMEM_TEAM_INVALID; /* the victim and the PE before it */
static weft_moe moe;

static void die(void) {
    usleep(LET_THEM_IN_US);
    printf("pid %d\n", (int)getpid());
    fflush(stdout);
    if (strcmp(how, "exit") == 0)
        _exit(3);
    signal(atoi(how), SIG_DFL);
    kill(getpid(), atoi(how));
    pause();
}

static void wait_until(void) {
    shmem_long_wait_until(&word, SHMEM_CMP_EQ, 1);
}

static void wait_until_any(void) {
    shmem_long_wait_until_any(many, 4, NULL, SHMEM_CMP_EQ, 1);
}

static void signal_wait_until(void) {
    shmem_signal_wait_until(&signal_word, SHMEM_CMP_EQ, 1);
}

static void test(void) {
    while (!shmem_long_test(&word, SHMEM_CMP_EQ, 1))
        ;
}

/* A loop of the program's own, which Weft does not control. */
static void poll_by_fetch(void) {
    while (shmem_long_atomic_fetch(&word, me) != 1)
        ;
}

static void compute(void) {
    for (volatile unsigned turns = 0;; turns++)
        ;
}

static void set_lock(void) {
    shmem_set_lock(&lock);
}

static void test_lock(void) {
    while (shmem_test_lock(&lock))
        ;
}

static void allocate(void) {
    shmem_malloc(100);
}

static void grow(void) {
    shmem_malloc(LARGE);
}

static void release(void) {
    shmem_free(object);
}

static void split(void) {
    shmem_team_t all;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &all);
}

/* All PEs, the last one first: it is their host. */
static const int *backwards(void) {
    static int pes[64];
    for (int i = 0; i < npes; i++)
        pes[i] = npes - 1 - i;
    return pes;
}

static void create_team(void) {
    shmem_team_t all;
    shmemx_team_create(backwards(), npes, 0, &all);
}

static void attach_share(void) {
    shmemx_block_t block;
    shmemx_share_t share;
    if (shmemx_block_alloc(SHMEMX_SPACE_HOST, 100, &block) == 0)
        shmemx_share_attach(block, backwards(), npes, 0, &share);
}

static void pad_wait(void) {
    uint32_t pad[2] = {0}, *const pads[] = {pad, pad};
    shmemx_pad_wait_on_stream(pads, 0, 2, 1, 0, 0, SHMEMX_STREAM_HOST);
}

/* The others wait for the pair's other PE, which waits for the victim. */
static void team_sync(void) {
    if (pair != SHMEM_TEAM_INVALID)
        shmem_team_sync(pair);
    shmem_sync_all();
}

static void all_reduce(void) {
    weft_all_reduce(SHMEM_TEAM_WORLD, dest, source, NELEMS, WEFT_F32, WEFT_SUM, WEFT_STREAM_HOST);
}

/* This PE's tokens are for the experts of all PEs, and their results return. */
static struct {
    int32_t experts[64], sources[64 * 64], offsets[2];
    float results[64 * 64], sums[64];
} layer;

static void dispatch(void) {
    weft_moe_rows rows = {layer.results, NULL, NULL, layer.sources, layer.offsets};
    for (int i = 0; i < npes; i++)
        layer.experts[i] = i;
    weft_moe_dispatch(moe, WEFT_F32, source, NULL, layer.experts, NULL, (size_t)npes, &rows,
                      WEFT_STREAM_HOST);
}

static void combine(void) {
    weft_moe_rows rows = {layer.results, NULL, NULL, layer.sources, layer.offsets};
    weft_moe_combine(moe, WEFT_F32, &rows, NULL, layer.experts, 0, layer.sums, NULL,
                     WEFT_STREAM_HOST);
}

static void rms_norm(void) {
    static float residual_out[NELEMS];
    weft_norm norm = {
        .rows = 1, .cols = NELEMS, .dtype = WEFT_F32, .residual_out = residual_out, .out = dest};
    weft_all_reduce_rms_norm(SHMEM_TEAM_WORLD, source, &norm, WEFT_STREAM_HOST);
}

/* This PE sends a row to each. */
static void exchange_rows(void) {
    static int64_t splits[64], received[64], offsets[64];
    weft_row_exchange shape = {.nparts = 1, .cols = 1, .dtype = WEFT_F32};
    shape.source_rows = shape.dest_rows = (size_t)npes;
    for (int i = 0; i < npes; i++)
        splits[i] = 1;
    weft_all_to_allv_on_device(SHMEM_TEAM_WORLD, &shape, dest, received, offsets, source, splits,
                               NULL, WEFT_STREAM_HOST);
}

/* Each PE and the next one are a pair. */
static void kv_shuffle(void) {
    void *const caches[] = {object};
    weft_kv_caches shape = {caches, 1, 2, 50};
    int32_t pair[2] = {me % 2 ? me - 1 : me + 1 < npes ? me + 1 : -1, me % 2};
    int64_t from = 0, to = 1;
    weft_kv_shuffle(SHMEM_TEAM_WORLD, &shape, pair, &from, &to, 1, WEFT_STREAM_HOST);
}

/* Calls shmem_global_exit at the moment of the death. */
static void global_exit(void) {
    usleep(LET_THEM_IN_US);
    shmem_global_exit(7);
}

static void broadcast(void) {
    shmem_float_broadcast(SHMEM_TEAM_WORLD, dest, source, 1, victim);
}

static void broadcast_much(void) {
    shmem_float_broadcast(SHMEM_TEAM_WORLD, dest, source, NELEMS, victim);
}

static void alltoall(void) {
    shmem_float_alltoall(SHMEM_TEAM_WORLD, dest, source, NELEMS / (size_t)npes);
}

static void fcollect(void) {
    shmem_float_fcollect(SHMEM_TEAM_WORLD, dest, source, NELEMS / (size_t)npes);
}

static void collect(void) {
    shmem_float_collect(SHMEM_TEAM_WORLD, dest, source, (size_t)(me + 1));
}

static void sum_reduce(void) {
    shmem_float_sum_reduce(SHMEM_TEAM_WORLD, dest, source, 1);
}

static void sum_reduce_much(void) {
    shmem_float_sum_reduce(SHMEM_TEAM_WORLD, dest, source, NELEMS);
}

static void sum_exscan(void) {
    shmem_float_sum_exscan(SHMEM_TEAM_WORLD, dest, source, NELEMS);
}

static const struct scene {
    const char *name;
    void (*enter)(void);
} scenes[] = {
    {"barrier_all", shmem_barrier_all},
    {"sync_all", shmem_sync_all},
    {"wait_until", wait_until},
    {"wait_until_any", wait_until_any},
    {"signal_wait_until", signal_wait_until},
    {"test", test},
    {"atomic_fetch", poll_by_fetch},
    {"compute", compute},
    {"set_lock", set_lock},
    {"test_lock", test_lock},
    {"malloc", allocate},
    {"malloc_growth", grow},
    {"free", release},
    {"team_split_strided", split},
    {"team_sync", team_sync},
    {"team_create", create_team},
    {"share_attach", attach_share},
    {"pad_wait", pad_wait},
    {"broadcast", broadcast},
    {"broadcast_much", broadcast_much},
    {"alltoall", alltoall},
    {"fcollect", fcollect},
    {"collect", collect},
    {"sum_reduce", sum_reduce},
    {"sum_reduce_much", sum_reduce_much},
    {"sum_exscan", sum_exscan},
    {"weft_all_reduce", all_reduce},
    {"weft_moe_dispatch", dispatch},
    {"weft_moe_combine", combine},
    {"weft_all_to_allv_on_device", exchange_rows},
    {"weft_kv_shuffle", kv_shuffle},
    {"weft_all_reduce_rms_norm", rms_norm},
    {"finalize", shmem_finalize},
    {"global_exit", global_exit},
};

static void prepare(void) {
    int before = (victim + npes - 1) % npes, first = before < victim ? before : victim;
    int distance = victim > before ? victim - before : before - victim;
    if (npes > 1)
        shmem_team_split_strided(SHMEM_TEAM_WORLD, first, distance, 2, NULL, 0, &pair);
    object = shmem_malloc(100);
    if (!object) {
        fprintf(stderr, "PE %d got no symmetric memory for 100 bytes\n", me);
        shmem_global_exit(1);
    }
    weft_moe_shape shape = {(size_t)npes, 1, 1, 0, (size_t)npes, 0, WEFT_F32};
    if (weft_moe_create(SHMEM_TEAM_WORLD, &shape, &moe) != 0)
        shmem_global_exit(1);
    if (me == victim)
        shmem_set_lock(&lock);
    shmem_barrier_all();
}

int main(int argc, char **argv) {
    if (argc != 4)
        return STATUS_SURVIVED;
    how = argv[3];
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    victim = atoi(argv[2]);
    prepare();
    if (me == victim)
        die();
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        if (strcmp(scenes[i].name, argv[1]) == 0)
            scenes[i].enter();
    return STATUS_SURVIVED;
}
