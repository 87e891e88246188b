/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: one PE dies while the GPUs of the others wait for it.
 *
 *   scenes SCENE VICTIM HOW
 *
 * SCENE is a name of the table below, after "cut_" with products that are cut however small they
 * are. HOW is the number of a signal, or "exit" for shmem_global_exit(7), "check" for exit(-1), as
 * where a call of CUDA has failed, "kernel" for weft_abort with status 7, "heard" for the same with
 * a victim that then enters a barrier, "summed" for one that enters a reduction, "stale" for a
 * kernel with a handle that has been freed, or "late" for a victim that ends normally. Every PE
 * prints its pid, and PE VICTIM "victim" and its pid when it is about to die. Not a test by itself.
 * PEs: none */
#include "graph.h"
#include "image.h"
#include <shmemx.h>
#include <weft.h>
#include <weft/device.cuh>
#include <signal.h>
#include <unistd.h>
#include "gpu/scenes/waits.h"

enum {
    BYTES = 100000,
    FEW = 64,
    LET_THEM_IN_US = 50000,
    MANY = 200,
    FLOOD = 5000,
    BUSY_S = 20,
    LIMIT_MS = 200,
    GOES_ON_US = 900000,
    INSIDE_THREADS = 64
};

static int me, npes, victim;
static int inside; /* on the victim: how many PEs are about to wait for it */
static int added;
static const char *how;
static weft_cu_stream stream;
static char *source, *dest;
static float *numbers, *sums;
static uint64_t *device_word, *host_word;
static weft_device_team handle, freed;
static weft_moe moe;
static weft_cu_function meet_kernel, abort_kernel, wait_kernel;

static void say(const char *what) {
    char line[64];
    int length = snprintf(line, sizeof line, "%s %d\n", what, (int)getpid());
    if (write(STDOUT_FILENO, line, (size_t)length) < 0)
        _exit(99);
}

/* Tells the victim that this PE is about to wait for it. */
static void go_in(void) {
    static bool is_in;
    if (!is_in)
        shmem_int_atomic_inc(&inside, victim);
    is_in = true;
}

static void launch(weft_cu_function kernel, weft_device_team *with, int number) {
    void *arguments[] = {with, &number, NULL};
    image_launch(kernel, 2, 32, stream, arguments);
}

/* The host only performs its own part. */
static void die_by_kernel(weft_cu_function kernel, weft_device_team *with, int number) {
    launch(kernel, with, number);
    for (;;)
        pause();
}

/* The host continues with an operation that others wait for, and waits then: they are the first to
 * exit. */
static void die_by_aborted_kernel(void (*tell)(void)) {
    launch(abort_kernel, &handle, 7);
    gpu_drain(stream);
    tell();
    pause();
}

static void sum(void) {
    shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &added, &inside, 1);
}

static void die(void) {
    shmem_int_wait_until(&inside, SHMEM_CMP_GE, npes - 1);
    usleep(LET_THEM_IN_US);
    say("victim");
    if (strcmp(how, "kernel") == 0)
        die_by_kernel(abort_kernel, &handle, 7);
    if (strcmp(how, "heard") == 0)
        die_by_aborted_kernel(shmem_barrier_all);
    if (strcmp(how, "summed") == 0)
        die_by_aborted_kernel(sum);
    if (strcmp(how, "stale") == 0)
        die_by_kernel(meet_kernel, &freed, 1);
    if (strcmp(how, "late") == 0)
        exit(0);
    if (strcmp(how, "exit") == 0)
        shmem_global_exit(7);
    if (strcmp(how, "check") == 0)
        exit(-1);
    kill(getpid(), atoi(how));
    pause();
}

static void must(int rc) {
    if (rc == 0)
        return;
    fprintf(stderr, "scenes: %d\n", rc);
    _exit(98);
}

/* Waits as a user does: in CUDA, without Weft. */
static void synchronize(void) {
    go_in();
    gpu_drain(stream);
}

static void wait_for_device_word(void) {
    must(shmemx_signal_wait_until_on_stream(device_word, SHMEM_CMP_EQ, 1, stream));
    synchronize();
}

static void wait_for_host_word(void) {
    must(shmemx_signal_wait_until_on_stream(host_word, SHMEM_CMP_EQ, 1, stream));
    synchronize();
}

static void enqueue_barrier(void) {
    must(shmemx_barrier_all_on_stream(stream));
}

static void barrier(void) {
    enqueue_barrier();
    synchronize();
}

static void enqueue_fcollect(void) {
    must(shmemx_fcollectmem_on_stream(SHMEM_TEAM_WORLD, dest, source, BYTES, stream));
}

static void fcollect(void) {
    enqueue_fcollect();
    synchronize();
}

static void fcollect_by_engine(void) {
    must(shmemx_set_engine(SHMEMX_ENGINE_COPY));
    fcollect();
}

static void fcollect_by_kernels(void) {
    must(shmemx_set_engine(SHMEMX_ENGINE_SM));
    fcollect();
}

/* One kernel each, which waits for packets of the victim's. */
static void enqueue_packets(void) {
    must(shmemx_float_sum_reduce_on_stream(SHMEM_TEAM_WORLD, sums, numbers, FEW, stream));
    must(shmemx_fcollectmem_on_stream(SHMEM_TEAM_WORLD, dest, source, FEW, stream));
}

static void packets(void) {
    enqueue_packets();
    synchronize();
}

/* The root waits until the victim has begun the second but last. */
static void enqueue_broadcasts(void) {
    enum { ROW = 3 };
    int root = (victim + 1) % npes;
    for (int i = 0; i < ROW; i++)
        must(shmemx_broadcastmem_on_stream(SHMEM_TEAM_WORLD, dest, source, FEW, root, stream));
}

static void broadcasts(void) {
    enqueue_broadcasts();
    synchronize();
}

/* Products of 16 x 16 matrices of each member: what they gather, or a part of the sum, is the
 * victim's. */
static weft_matrix square(void *data, size_t rows) {
    return (weft_matrix){data, rows, 16, 16, WEFT_F32, false};
}

static void enqueue_gather_matmul(void) {
    weft_matrix a = square(numbers, 16), b = square(source, 16),
                c = square(dest, 16 * (size_t)npes);
    must(weft_all_gather_matmul(SHMEM_TEAM_WORLD, &a, &b, 1, &c, NULL, (weft_stream)stream));
}

static void enqueue_matmul_scatter(void) {
    weft_matrix a = square(source, 16 * (size_t)npes), b = square(numbers, 16),
                c = square(dest, 16);
    must(weft_matmul_reduce_scatter(SHMEM_TEAM_WORLD, &a, &b, WEFT_SUM, &c, (weft_stream)stream));
}

static void enqueue_matmul_reduce(void) {
    weft_matrix a = square(source, 16), b = square(numbers, 16), c = square(dest, 16);
    must(weft_matmul_all_reduce(SHMEM_TEAM_WORLD, &a, &b, WEFT_SUM, &c, (weft_stream)stream));
}

/* More rows than are gathered before a product, in a shape that the kernels for Hopper take. */
static void enqueue_gather_rows(void) {
    enum { ROWS = 272, SIDE = 8 };
    weft_matrix a = {numbers, ROWS, SIDE, SIDE, WEFT_BF16, false};
    weft_matrix b = {source, SIDE, SIDE, SIDE, WEFT_BF16, true};
    weft_matrix c = {dest, ROWS * (size_t)npes, SIDE, SIDE, WEFT_BF16, false};
    must(weft_all_gather_matmul(SHMEM_TEAM_WORLD, &a, &b, 1, &c, NULL, (weft_stream)stream));
}

static void gather_rows(void) {
    enqueue_gather_rows();
    synchronize();
}

/* Sums in such a shape. */
static void enqueue_rows(bool scatters) {
    enum { ROWS = 64, SIDE = 8 };
    size_t all = ROWS * (size_t)npes;
    weft_matrix a = {source, all, SIDE, SIDE, WEFT_BF16, false};
    weft_matrix b = {numbers, SIDE, SIDE, SIDE, WEFT_BF16, true};
    weft_matrix c = {dest, scatters ? ROWS : all, SIDE, SIDE, WEFT_BF16, false};
    must((scatters ? weft_matmul_reduce_scatter : weft_matmul_all_reduce)(
        SHMEM_TEAM_WORLD, &a, &b, WEFT_SUM, &c, (weft_stream)stream));
}

static void rows_scatter(void) {
    enqueue_rows(true);
    synchronize();
}

static void rows_reduce(void) {
    enqueue_rows(false);
    synchronize();
}

static void gather_matmul(void) {
    enqueue_gather_matmul();
    synchronize();
}

static void matmul_scatter(void) {
    enqueue_matmul_scatter();
    synchronize();
}

static void matmul_reduce(void) {
    enqueue_matmul_reduce();
    synchronize();
}

/* The tokens of all members are for the first expert. */
static weft_moe_rows rows_of_experts(void) {
    int32_t *offsets = (int32_t *)sums;
    return (weft_moe_rows){dest, NULL, NULL, offsets + 64, offsets};
}

static void enqueue_dispatch(void) {
    weft_moe_rows rows = rows_of_experts();
    const int32_t *experts = (const int32_t *)source;
    must(weft_moe_dispatch(moe, WEFT_F32, numbers, NULL, experts, NULL, 4, &rows,
                           (weft_stream)stream));
}

static void enqueue_combine(void) {
    weft_moe_rows rows = rows_of_experts();
    const int32_t *experts = (const int32_t *)source;
    must(weft_moe_combine(moe, WEFT_F32, &rows, NULL, experts, 4, numbers, NULL,
                          (weft_stream)stream));
}

static void moe_dispatch(void) {
    enqueue_dispatch();
    synchronize();
}

static void moe_combine(void) {
    enqueue_combine();
    synchronize();
}

static void enqueue_norm(void) {
    weft_norm norm = {
        .rows = 2, .cols = 16, .dtype = WEFT_F32, .epsilon = 1, .residual_out = sums, .out = dest};
    must(weft_all_reduce_rms_norm(SHMEM_TEAM_WORLD, source, &norm, (weft_stream)stream));
}

static void rms_norm(void) {
    enqueue_norm();
    synchronize();
}

/* Sends no rows: all numbers are zero. */
static void exchange_rows(void) {
    int64_t *received = (int64_t *)sums;
    weft_row_exchange shape = {
        .nparts = 1, .cols = 16, .dtype = WEFT_F32, .source_rows = 1, .dest_rows = 1};
    must(weft_all_to_allv_on_device(SHMEM_TEAM_WORLD, &shape, dest, received, received + npes,
                                    source, (const int64_t *)numbers, NULL, (weft_stream)stream));
    synchronize();
}

/* Sends nothing to nobody. */
static void kv_shuffle(void) {
    static const int32_t no_pair[2] = {-1, 0};
    void *const caches[] = {dest};
    weft_kv_caches shape = {caches, 1, 2, 64};
    gpu_write(sums, no_pair, sizeof no_pair);
    must(weft_kv_shuffle(SHMEM_TEAM_WORLD, &shape, (const int32_t *)sums, (const int64_t *)numbers,
                         (const int64_t *)numbers, 1, (weft_stream)stream));
    synchronize();
}

/* One release is not enough for all work in the queue. */
static void many_by_engine(void) {
    must(shmemx_set_engine(SHMEMX_ENGINE_COPY));
    for (int i = 0; i < MANY; i++)
        enqueue_fcollect();
    synchronize();
}

/* More than a driver queues: the call itself blocks. */
static void flood(void) {
    must(shmemx_set_engine(SHMEMX_ENGINE_COPY));
    go_in();
    for (int i = 0; i < FLOOD; i++)
        must(shmemx_alltoallmem_on_stream(SHMEM_TEAM_WORLD, dest, source, 64, stream));
    synchronize();
}

static void stream_destroyed(void) {
    must(shmemx_set_engine(SHMEMX_ENGINE_COPY));
    enqueue_fcollect();
    go_in();
    gpu_enter();
    GPU(cuStreamDestroy(stream));
    GPU(cuCtxSynchronize());
    gpu_leave();
}

/* No call of Weft is made any more: all replay until the victim stops. */
static void replay(void (*enqueue)(void)) {
    weft_cu_graph_exec exec = graph_capture(stream, enqueue);
    if (me != victim)
        go_in();
    for (int i = 0; me != victim || i < MANY; i++) {
        graph_replay(exec, gpu_stream);
        gpu_drain(gpu_stream);
    }
}

static void replay_kernels(void) {
    replay(enqueue_barrier);
}

static void replay_packets(void) {
    replay(enqueue_packets);
}

static void replay_matmul(void) {
    replay(enqueue_matmul_reduce);
}

static void replay_engine(void) {
    must(shmemx_set_engine(SHMEMX_ENGINE_COPY));
    replay(enqueue_fcollect);
}

/* Kernels of the program, which Weft does not see. */
static void own_kernel(void) {
    launch(meet_kernel, &handle, 1);
    synchronize();
}

/* Kernels of the program, and no call of Weft is made any more. */
static void own_kernels(void) {
    if (me != victim)
        go_in();
    for (int i = 0; me != victim || i < MANY; i++) {
        launch(meet_kernel, &handle, 3);
        gpu_drain(stream);
    }
}

/* In each of the ways that kernels have. */
static void wait_inside(enum scene_wait wait) {
    int way = (int)wait;
    void *arguments[] = {&handle, &device_word, &way, &victim};
    image_launch(wait_kernel, 2, INSIDE_THREADS, stream, arguments);
    synchronize();
}

static void inside_signal(void) {
    wait_inside(SCENE_SIGNAL);
}

static void inside_signal_of_warp(void) {
    wait_inside(SCENE_SIGNAL_OF_WARP);
}

static void inside_signal_of_block(void) {
    wait_inside(SCENE_SIGNAL_OF_BLOCK);
}

static void inside_long_limit(void) {
    wait_inside(SCENE_LONG_LIMIT);
}

static void inside_barrier(void) {
    wait_inside(SCENE_BARRIER);
}

static void inside_sync(void) {
    wait_inside(SCENE_SYNC);
}

static void inside_grid_barrier(void) {
    wait_inside(SCENE_GRID_BARRIER);
}

static void inside_packet(void) {
    wait_inside(SCENE_PACKET);
}

static void inside_bytes(void) {
    wait_inside(SCENE_BYTES);
}

static void host_wait(void) {
    go_in();
    shmem_signal_wait_until(device_word, SHMEM_CMP_EQ, 1);
}

static void host_collective(void) {
    go_in();
    shmem_float_sum_reduce(SHMEM_TEAM_WORLD, sums, numbers, BYTES / sizeof *sums);
}

static void host_put(void) {
    go_in();
    for (;;)
        shmem_putmem(dest, source, BYTES, victim);
}

static void host_quiet(void) {
    go_in();
    shmem_putmem_nbi(dest, source, BYTES, victim);
    shmem_quiet();
    shmem_barrier_all();
}

static void host_handle(void) {
    weft_device_team other;
    go_in();
    shmemx_device_team(SHMEM_TEAM_WORLD, 2, 0, &other);
}

static void host_handle_end(void) {
    go_in();
    shmemx_device_team_free(&handle);
}

static void sleep_long(void *unused) {
    (void)unused;
    sleep(BUSY_S);
}

/* Checks that fail on every PE, after a call in which the victim takes part, too. */
static void check_behind_barrier(void) {
    go_in();
    shmem_barrier_all();
    exit(9);
}

static void check_behind_sum(void) {
    go_in();
    sum();
    exit(9);
}

/* A GPU busy with work that nobody can release. */
static void busy(void) {
    gpu_enter();
    GPU(cuLaunchHostFunc(stream, sleep_long, NULL));
    gpu_leave();
    barrier();
}

/* A wait with a limit: the program gets the error from CUDA, and continues to its end. */
static void bounded_wait(void) {
    uint32_t *addresses[64], **pads = (void *)numbers;
    for (int pe = 0; pe < npes; pe++)
        addresses[pe] = shmemx_ptr(SHMEMX_SPACE_DEVICE, dest, pe);
    gpu_write(pads, addresses, sizeof *pads * (size_t)npes);
    uint64_t ms = strcmp(how, "late") == 0 ? LIMIT_MS : BUSY_S * 1000;
    must(shmemx_pad_wait_on_stream(pads, me, npes, victim, 0, ms, stream));
    go_in();
    gpu_enter();
    int error = gpu.cuStreamSynchronize(stream);
    gpu_leave();
    say(error ? "raised" : "nothing");
    usleep(GOES_ON_US);
    exit(error == 0);
}

static const struct scene {
    const char *name;
    void (*enter)(void);
    bool all; /* the victim, too, until it dies */
} scenes[] = {
    {"wait_for_device_word", wait_for_device_word, false},
    {"wait_for_host_word", wait_for_host_word, false},
    {"barrier", barrier, false},
    {"fcollect_by_engine", fcollect_by_engine, false},
    {"fcollect_by_kernels", fcollect_by_kernels, false},
    {"packets", packets, false},
    {"broadcasts", broadcasts, false},
    {"gather_matmul", gather_matmul, false},
    {"gather_rows", gather_rows, false},
    {"matmul_scatter", matmul_scatter, false},
    {"matmul_reduce", matmul_reduce, false},
    {"rows_scatter", rows_scatter, false},
    {"rows_reduce", rows_reduce, false},
    {"moe_dispatch", moe_dispatch, false},
    {"moe_combine", moe_combine, false},
    {"exchange_rows", exchange_rows, false},
    {"kv_shuffle", kv_shuffle, false},
    {"rms_norm", rms_norm, false},
    {"many_by_engine", many_by_engine, false},
    {"flood", flood, false},
    {"stream_destroyed", stream_destroyed, false},
    {"replay_kernels", replay_kernels, true},
    {"replay_packets", replay_packets, true},
    {"replay_engine", replay_engine, true},
    {"replay_matmul", replay_matmul, true},
    {"own_kernel", own_kernel, false},
    {"own_kernels", own_kernels, true},
    {"inside_signal", inside_signal, false},
    {"inside_signal_of_warp", inside_signal_of_warp, false},
    {"inside_signal_of_block", inside_signal_of_block, false},
    {"inside_long_limit", inside_long_limit, false},
    {"inside_barrier", inside_barrier, false},
    {"inside_sync", inside_sync, false},
    {"inside_grid_barrier", inside_grid_barrier, false},
    {"inside_packet", inside_packet, false},
    {"inside_bytes", inside_bytes, false},
    {"host_wait", host_wait, false},
    {"host_collective", host_collective, false},
    {"host_put", host_put, false},
    {"host_quiet", host_quiet, false},
    {"host_handle", host_handle, false},
    {"host_handle_end", host_handle_end, false},
    {"check_behind_barrier", check_behind_barrier, false},
    {"check_behind_sum", check_behind_sum, false},
    {"busy", busy, false},
    {"bounded_wait", bounded_wait, false},
};

/* Operations that are slow the first time, or on the host. */
static void use_once(void) {
    enqueue_barrier();
    enqueue_packets();
    enqueue_broadcasts();
    enqueue_gather_matmul();
    enqueue_gather_rows();
    enqueue_rows(true);
    enqueue_rows(false);
    enqueue_matmul_scatter();
    enqueue_matmul_reduce();
    enqueue_dispatch();
    enqueue_combine();
    enqueue_norm();
    gpu_drain(stream);
}

static void set_up(void) {
    me = shmem_my_pe();
    npes = shmem_n_pes();
    source = shmemx_calloc(SHMEMX_SPACE_DEVICE, BYTES * (size_t)npes, 1);
    dest = shmemx_calloc(SHMEMX_SPACE_DEVICE, BYTES * (size_t)npes, 1);
    numbers = shmemx_calloc(SHMEMX_SPACE_DEVICE, BYTES, 1);
    sums = shmemx_calloc(SHMEMX_SPACE_DEVICE, BYTES, 1);
    device_word = shmemx_calloc(SHMEMX_SPACE_DEVICE, 1, sizeof *device_word);
    host_word = shmem_calloc(1, sizeof *host_word);
    must(!source || !dest || !numbers || !sums || !device_word || !host_word);
    stream = gpu_stream_new();
    weft_moe_shape shape = {(size_t)npes, 1, 16, 0, 4, 0, WEFT_F32};
    must(weft_moe_create(SHMEM_TEAM_WORLD, &shape, &moe));
    must(shmemx_device_team(SHMEM_TEAM_WORLD, 2, 0, &freed));
    must(shmemx_device_team(SHMEM_TEAM_WORLD, 2, INSIDE_THREADS * 16, &handle));
    weft_device_team copy = freed;
    must(shmemx_device_team_free(&copy));
    meet_kernel = image_kernel("weftk_scene_meet");
    abort_kernel = image_kernel("weftk_scene_abort");
    wait_kernel = image_kernel("weftk_scene_wait");
}

static void play(const struct scene *scene) {
    if (scene->all || me != victim)
        scene->enter();
    if (me == victim)
        die();
    shmem_barrier_all();
}

int main(int argc, char **argv) {
    if (argc != 4) {
        puts("1..0 # SKIP played by tests/gpu/death.t");
        return 0;
    }
    const char *scene = argv[1];
    if (strncmp(scene, "cut_", 4) == 0) {
        setenv("SHMEMX_ALGORITHM", "meet", 1);
        scene += 4;
    }
    if (strncmp(scene, "hopper_", 7) == 0) {
        setenv("WEFT_PRODUCTS", "own", 1);
        setenv("WEFT_FAKE_SMS", "4", 1);
        scene += 7;
    }
    shmem_init();
    gpu_start();
    victim = atoi(argv[2]);
    how = argv[3];
    set_up();
    if (strncmp(scene, "own_", 4) != 0) /* these have no kernels but their own */
        use_once();
    say("pid");
    shmem_barrier_all();
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        if (strcmp(scenes[i].name, scene) == 0)
            play(&scenes[i]);
    return 97;
}
