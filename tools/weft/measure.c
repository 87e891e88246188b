/* SPDX-License-Identifier: BSD-3-Clause */
/* Every measurement is a loop of n equal calls, run several times: timed by the host's clock if
 * host calls are complete on return, and by the GPU's if a stream executes them. In a graph the
 * calls are recorded once and replayed, which shows their time without the processor. */
#include "measure.h"
#include <errno.h>
#include <shmemx.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft.h>
#include "base/clock.h"
#include "base/cuda.h"
#include "base/log.h"

enum { RUNS = 9, WINDOW = 8 }; /* WINDOW: calls of an _NBI measurement before a wait */

/* Symmetric memory of one space. */
struct ground {
    char *source, *dest;
    uint64_t *signal;
};

static struct ground host, gpu;
static weft_cu_context context; /* of this PE's GPU, from the library */
static weft_cu_stream stream;
static weft_cu_event first, last;
static int me;

/* The current measurement. */
static const struct ground *ground;
static size_t bytes;
static uint64_t signals; /* values up to here have been used */

/* Makes call i of n; for a call before the loop, i is n. */
typedef void call_body(int i);

static void require(int result) {
    if (result == 0)
        return;
    fprintf(stderr, "weft perf: %s\n", weft_last_error());
    shmem_global_exit(1);
}

static void check(int error, const char *call) {
    require(weft_cuda_check(error, call));
}

/* --- The calls -------------------------------------------------------------------------------- */

static void put(int i) {
    (void)i;
    shmem_putmem(ground->dest, ground->source, bytes, 1);
    shmem_quiet();
}

static void get(int i) {
    (void)i;
    shmem_getmem(ground->dest, ground->source, bytes, 1);
}

static void put_window(int i) {
    (void)i;
    for (int k = 0; k < WINDOW; k++)
        shmem_putmem_nbi(ground->dest, ground->source, bytes, 1);
    shmem_quiet();
}

static void get_window(int i) {
    (void)i;
    for (int k = 0; k < WINDOW; k++)
        shmem_getmem_nbi(ground->dest, ground->source, bytes, 1);
    shmem_quiet();
}

static void bi_put(int i) {
    (void)i;
    shmem_putmem(ground->dest, ground->source, bytes, 1 - me);
    shmem_quiet();
}

static void bi_get(int i) {
    (void)i;
    shmem_getmem(ground->dest, ground->source, bytes, 1 - me);
}

static void atomic(int i) {
    shmem_uint64_atomic_fetch_add((uint64_t *)(void *)ground->dest, (uint64_t)i, 1);
}

static void all_gather_on(weft_stream where) {
    require(weft_all_gather(SHMEM_TEAM_WORLD, ground->dest, ground->source, bytes, WEFT_U8, where));
}

static void all_reduce_on(weft_stream where) {
    require(weft_all_reduce(SHMEM_TEAM_WORLD, ground->dest, ground->source, bytes / sizeof(float),
                            WEFT_F32, WEFT_SUM, where));
}

static void all_gather(int i) {
    (void)i;
    all_gather_on(WEFT_STREAM_HOST);
}

static void all_reduce(int i) {
    (void)i;
    all_reduce_on(WEFT_STREAM_HOST);
}

static void send(uint64_t value, int pe) {
    shmem_putmem_signal(ground->dest, ground->source, bytes, ground->signal, value,
                        SHMEM_SIGNAL_SET, pe);
}

/* A round trip. No value is used twice in a row, so that a graph's values can be reused. */
static void ping_pong(int i) {
    uint64_t value = signals + (uint64_t)i + 1;
    if (me == 0)
        send(value, 1);
    shmem_signal_wait_until(ground->signal, SHMEM_CMP_EQ, value);
    if (me == 1)
        send(value, 0);
}

static void barrier(int i) {
    (void)i;
    shmem_barrier_all();
}

static void stream_put(int i) {
    (void)i;
    require(shmemx_putmem_on_stream(ground->dest, ground->source, bytes, 1, stream));
}

static void stream_get(int i) {
    (void)i;
    require(shmemx_getmem_on_stream(ground->dest, ground->source, bytes, 1, stream));
}

static void stream_bi_put(int i) {
    (void)i;
    require(shmemx_putmem_on_stream(ground->dest, ground->source, bytes, 1 - me, stream));
}

static void stream_bi_get(int i) {
    (void)i;
    require(shmemx_getmem_on_stream(ground->dest, ground->source, bytes, 1 - me, stream));
}

static void stream_all_gather(int i) {
    (void)i;
    all_gather_on((weft_stream)stream);
}

static void stream_all_reduce(int i) {
    (void)i;
    all_reduce_on((weft_stream)stream);
}

static void stream_send(uint64_t value, int pe) {
    require(shmemx_putmem_signal_on_stream(ground->dest, ground->source, bytes, ground->signal,
                                           value, SHMEM_SIGNAL_SET, pe, stream));
}

static void stream_ping_pong(int i) {
    uint64_t value = signals + (uint64_t)i + 1;
    if (me == 0)
        stream_send(value, 1);
    require(shmemx_signal_wait_until_on_stream(ground->signal, SHMEM_CMP_EQ, value, stream));
    if (me == 1)
        stream_send(value, 0);
}

static void stream_barrier(int i) {
    (void)i;
    require(shmemx_barrier_all_on_stream(stream));
}

static const struct {
    call_body *host, *stream; /* stream NULL: there is no such call on a stream */
    int pes;                  /* number of PEs that take part; 0: all */
    int parts;                /* number of calls, or of one-way messages, in a body */
    bool host_only;           /* a host call does not take GPU memory, or does not use memory */
} calls[MEASURE_CALLS] = {
    [MEASURE_PUT] = {put, stream_put, 1, 1, false},
    [MEASURE_GET] = {get, stream_get, 1, 1, false},
    [MEASURE_SIGNAL] = {ping_pong, stream_ping_pong, 2, 2, false},
    [MEASURE_BARRIER] = {barrier, stream_barrier, 0, 1, true},
    [MEASURE_PUT_NBI] = {put_window, NULL, 1, WINDOW, false},
    [MEASURE_GET_NBI] = {get_window, NULL, 1, WINDOW, false},
    [MEASURE_BI_PUT] = {bi_put, stream_bi_put, 2, 1, false},
    [MEASURE_BI_GET] = {bi_get, stream_bi_get, 2, 1, false},
    [MEASURE_ATOMIC] = {atomic, NULL, 1, 1, false},
    [MEASURE_ALL_GATHER] = {all_gather, stream_all_gather, 0, 1, true},
    [MEASURE_ALL_REDUCE] = {all_reduce, stream_all_reduce, 0, 1, true},
};

bool measure_offers(enum measure_call call, enum measure_way way) {
    if (way == MEASURE_STREAM || way == MEASURE_GRAPH)
        return calls[call].stream != NULL;
    return way == MEASURE_HOST || !calls[call].host_only;
}

size_t measure_moves(enum measure_call call, size_t nbytes) {
    switch (call) {
    case MEASURE_SIGNAL:
    case MEASURE_BARRIER:
    case MEASURE_ATOMIC:
        return 0;
    case MEASURE_BI_PUT:
    case MEASURE_BI_GET:
        return 2 * nbytes;
    case MEASURE_ALL_GATHER:
        return (size_t)shmem_n_pes() * nbytes;
    default:
        return nbytes;
    }
}

/* --- Time ------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *runs) {
    qsort(runs, RUNS, sizeof *runs, compare);
    return runs[RUNS / 2];
}

static double host_us(call_body *body, int n) {
    double runs[RUNS];
    for (int run = -1; run < RUNS; run++) {
        uint64_t begin = weft_clock_ns();
        for (int i = 0; i < n; i++)
            body(i);
        if (run >= 0)
            runs[run] = 1e-3 * (double)(weft_clock_ns() - begin) / n;
    }
    return median(runs);
}

static weft_cu_graph_exec record(call_body *body, int n) {
    weft_cu_graph graph;
    weft_cu_graph_exec exec;
    check(weft_cuda.cuStreamBeginCapture(stream, WEFT_CU_CAPTURE_RELAXED), "cuStreamBeginCapture");
    for (int i = 0; i < n; i++)
        body(i);
    check(weft_cuda.cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
    check(weft_cuda.cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiate");
    check(weft_cuda.cuGraphDestroy(graph), "cuGraphDestroy");
    return exec;
}

/* Makes n calls: by the graph or, without one, one by one. */
static double run_us(call_body *body, int n, weft_cu_graph_exec graph) {
    float milliseconds = 0;
    check(weft_cuda.cuEventRecord(first, stream), "cuEventRecord");
    if (graph)
        check(weft_cuda.cuGraphLaunch(graph, stream), "cuGraphLaunch");
    for (int i = 0; !graph && i < n; i++)
        body(i);
    check(weft_cuda.cuEventRecord(last, stream), "cuEventRecord");
    check(weft_cuda.cuStreamSynchronize(stream), "cuStreamSynchronize");
    check(weft_cuda.cuEventElapsedTime(&milliseconds, first, last), "cuEventElapsedTime");
    return 1e3 * milliseconds / n;
}

static double stream_us(call_body *body, int n, bool in_graph) {
    double runs[RUNS];
    weft_cuda.cuCtxPushCurrent(context);
    body(n);
    check(weft_cuda.cuStreamSynchronize(stream), "cuStreamSynchronize");
    weft_cu_graph_exec graph = in_graph ? record(body, n) : NULL;
    for (int run = -1; run < RUNS; run++) {
        double us = run_us(body, n, graph);
        if (run >= 0)
            runs[run] = us;
    }
    if (graph)
        check(weft_cuda.cuGraphExecDestroy(graph), "cuGraphExecDestroy");
    weft_cuda.cuCtxPopCurrent(&context);
    return median(runs);
}

/* Long enough for the clock, short enough for a waiting user. */
static int repeats(enum measure_way way, int parts) {
    int n = way == MEASURE_HOST ? 2000 : 50;
    for (size_t size = 4096; size < bytes; size *= 8)
        n /= 4;
    if (parts == WINDOW)
        n /= WINDOW;
    return n > 4 ? n : 4;
}

double measure_us(enum measure_call call, enum measure_way way, size_t nbytes) {
    double us = 0;
    ground = way == MEASURE_HOST ? &host : &gpu;
    bytes = nbytes;
    int n = repeats(way, calls[call].parts);
    shmem_barrier_all();
    if (calls[call].pes == 0 || me < calls[call].pes) {
        if (way == MEASURE_STREAM || way == MEASURE_GRAPH)
            us = stream_us(calls[call].stream, n, way == MEASURE_GRAPH);
        else
            us = host_us(calls[call].host, n);
    }
    signals += (uint64_t)n + 1;
    shmem_barrier_all();
    return us / calls[call].parts;
}

/* --- Setup ------------------------------------------------------------------------------------ */

/* Random data, because memory and links may be faster with zeros. */
static void fill(const struct ground *on, size_t size) {
    uint64_t *words = malloc(size), x = 88172645463325252U + (uint64_t)me;
    for (size_t i = 0; words && i < size / sizeof *words; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        words[i] = x;
    }
    if (words)
        shmem_putmem(on->source, words, size, me);
    free(words);
}

static bool prepare(struct ground *on, shmemx_space_t space, size_t size, size_t result_size) {
    on->source = shmemx_malloc(space, size);
    on->dest = on->source ? shmemx_malloc(space, result_size) : NULL;
    on->signal = on->dest ? shmemx_calloc(space, 1, sizeof *on->signal) : NULL;
    if (on->signal)
        fill(on, size);
    return on->signal != NULL;
}

static void open_stream(void) {
    int ordinal;
    weft_cu_device device;
    require(shmemx_device(&ordinal));
    check(weft_cuda.cuDeviceGet(&device, ordinal), "cuDeviceGet");
    check(weft_cuda.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    weft_cuda.cuCtxPushCurrent(context);
    check(weft_cuda.cuStreamCreateWithPriority(&stream, WEFT_CU_STREAM_NON_BLOCKING, 0),
          "cuStreamCreate");
    check(weft_cuda.cuEventCreate(&first, 0), "cuEventCreate");
    check(weft_cuda.cuEventCreate(&last, 0), "cuEventCreate");
    weft_cuda.cuCtxPopCurrent(&context);
}

bool measure_open(size_t size, size_t result_size, const char **reason) {
    static char text[256];
    me = shmem_my_pe();
    if (!prepare(&host, SHMEMX_SPACE_HOST, size, result_size))
        require(weft_fail_bare(-ENOMEM, "no memory for %zu bytes: pass a smaller -m", result_size));
    bool there = prepare(&gpu, SHMEMX_SPACE_DEVICE, size, result_size);
    if (there)
        open_stream();
    else
        snprintf(text, sizeof text, "%s", weft_last_error());
    *reason = text;
    shmem_barrier_all();
    return there;
}

void measure_close(void) {
    if (!stream)
        return;
    weft_cuda.cuCtxPushCurrent(context);
    weft_cuda.cuEventDestroy(first);
    weft_cuda.cuEventDestroy(last);
    weft_cuda.cuStreamDestroy(stream);
    weft_cuda.cuCtxPopCurrent(&context);
}
