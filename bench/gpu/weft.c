/* SPDX-License-Identifier: BSD-3-Clause */
/* Weft on GPUs, by its public calls: shmem.h and shmemx.h. */
#include <shmemx.h>
#include <weft.h>
#include "gpu.h"

static char *source, *dest;            /* device heap */
static uint64_t *signal_word, signals; /* values up to here have been used */
static size_t bytes;
static int peer; /* the next PE */
static const char *library;

static void require(int result, const char *call) {
    if (result < 0)
        give_up(call, weft_last_error());
}

static void *device_memory(size_t size) {
    void *p = shmemx_malloc(SHMEMX_SPACE_DEVICE, size);
    if (!p)
        give_up("shmemx_malloc", weft_last_error());
    return p;
}

static void meet(void) {
    CUDA(cudaStreamSynchronize(stream));
    shmem_barrier_all();
}

/* --- Calls of the host ----------------------------------------------------------------------- */

static void host_put(int i) {
    (void)i;
    shmem_putmem(dest, source, 8, peer);
    shmem_quiet();
}

static void host_p(int i) {
    shmem_uint64_p((uint64_t *)dest, (uint64_t)i, peer);
    shmem_quiet();
}

static void host_g(int i) {
    (void)i;
    (void)shmem_uint64_g((uint64_t *)dest, peer);
}

static void host_latencies(void) {
    if (me == 0) {
        report("host put 8 B + quiet", host_us(host_put, 500), "us", library);
        report("host p 8 B + quiet", host_us(host_p, 500), "us", library);
        report("host g 8 B", host_us(host_g, 500), "us", library);
    }
    meet();
}

/* --- On a stream ----------------------------------------------------------------------------- */

static void barrier(int i) {
    (void)i;
    require(shmemx_barrier_all_on_stream(stream), "shmemx_barrier_all_on_stream");
}

static void put(int i) {
    (void)i;
    require(shmemx_putmem_on_stream(dest, source, bytes, peer, stream), "shmemx_putmem_on_stream");
}

static void get(int i) {
    (void)i;
    require(shmemx_getmem_on_stream(dest, source, bytes, peer, stream), "shmemx_getmem_on_stream");
}

static void all_gather(int i) {
    (void)i;
    require(shmemx_fcollectmem_on_stream(SHMEM_TEAM_WORLD, dest, source, bytes, stream),
            "shmemx_fcollectmem_on_stream");
}

/* The values of a graph come round with it, and no two in a row are the same. */
static void ping_pong(int i) {
    uint64_t value = signals + (uint64_t)i + 1;
    if (me == 0)
        require(shmemx_putmem_signal_on_stream(dest, source, bytes, signal_word, value,
                                               SHMEM_SIGNAL_SET, 1, stream),
                "shmemx_putmem_signal_on_stream");
    require(shmemx_signal_wait_until_on_stream(signal_word, SHMEM_CMP_EQ, value, stream),
            "shmemx_signal_wait_until_on_stream");
    if (me == 1)
        require(shmemx_putmem_signal_on_stream(dest, source, bytes, signal_word, value,
                                               SHMEM_SIGNAL_SET, 0, stream),
                "shmemx_putmem_signal_on_stream");
}

static void row(const char *text, double value, const char *unit) {
    report(text, value, unit, library);
}

static void synchronisation(void) {
    char text[64];
    row("barrier on a stream, in graphs", graph_us(barrier, 50), "us");
    meet();
    row("barrier on a stream, eager", eager_us(barrier, 200), "us");
    meet();
    for (int k = 0; k < LENGTH(signal_sizes); k++) {
        bytes = signal_sizes[k];
        snprintf(text, sizeof text, "signal ping-pong %s, one way", size_name(bytes));
        if (me < 2)
            row(text, 0.5 * graph_us(ping_pong, 50), "us");
        signals += 100;
        meet();
    }
}

static void bandwidth(const char *name, enqueue *body, int one_way) {
    char text[64];
    for (int k = 0; k < LENGTH(copy_sizes); k++) {
        bytes = copy_sizes[k];
        snprintf(text, sizeof text, "%s %s, %s", name, size_name(bytes),
                 one_way ? "one way" : "both ways");
        if (me == 0 || !one_way)
            row(text, gigabytes_per_second(bytes, graph_us(body, calls_for(bytes))), "GB/s");
        meet();
    }
}

static void all_gathers(void) {
    char text[64];
    for (int k = 0; k < LENGTH(shard_sizes); k++) {
        bytes = shard_sizes[k];
        fill(source, bytes, (uint64_t)me + 1);
        CUDA(cudaMemset(dest, 0xa5, bytes * (size_t)npes));
        CUDA(cudaDeviceSynchronize());
        meet();
        snprintf(text, sizeof text, "all-gather %s shards", size_name(bytes));
        row(text, graph_us(all_gather, calls_for(bytes)), "us");
        CUDA(cudaStreamSynchronize(stream));
        for (int pe = 0; pe < npes; pe++)
            check(text, dest + (size_t)pe * bytes, bytes, (uint64_t)pe + 1);
        meet();
    }
}

static void engine(shmemx_engine_t which, const char *name) {
    library = name;
    require(shmemx_set_engine(which), "shmemx_set_engine");
    bandwidth("put", put, 1);
    bandwidth("put", put, 0);
    bandwidth("get", get, 1);
    bandwidth("get", get, 0);
    all_gathers();
}

int main(void) {
    begin();
    shmem_init();
    size_t largest = shard_sizes[LENGTH(shard_sizes) - 1];
    peer = (me + 1) % npes;
    library = "Weft";
    source = device_memory(largest);
    dest = device_memory(largest * (size_t)npes);
    signal_word = device_memory(sizeof *signal_word);
    fill(source, largest, (uint64_t)me + 1);
    meet();
    host_latencies();
    synchronisation();
    engine(SHMEMX_ENGINE_AUTO, "Weft");
    engine(SHMEMX_ENGINE_SM, "Weft, multiprocessors");
    engine(SHMEMX_ENGINE_COPY, "Weft, copy engines");
    shmem_finalize();
    return 0;
}
