// SPDX-License-Identifier: BSD-3-Clause
// NVSHMEM by the same calls of its host interface. Its headers are C++.
#include <nvshmem_host.h>
#include "gpu.h"

static char *source, *dest;
static uint64_t *signal_word, signals; // values up to here have been used
static size_t bytes;
static int peer;
static char library[64];

static void meet() {
    CUDA(cudaStreamSynchronize(stream));
    nvshmem_barrier_all();
}

static void host_put(int) {
    nvshmem_putmem(dest, source, 8, peer);
    nvshmem_quiet();
}

static void host_p(int i) {
    nvshmem_uint64_p(reinterpret_cast<uint64_t *>(dest), static_cast<uint64_t>(i), peer);
    nvshmem_quiet();
}

static void host_g(int) {
    (void)nvshmem_uint64_g(reinterpret_cast<uint64_t *>(dest), peer);
}

static void barrier(int) {
    nvshmemx_barrier_all_on_stream(stream);
}
static void put(int) {
    nvshmemx_putmem_on_stream(dest, source, bytes, peer, stream);
}
static void get(int) {
    nvshmemx_getmem_on_stream(dest, source, bytes, peer, stream);
}

static void all_gather(int) {
    nvshmemx_fcollectmem_on_stream(NVSHMEM_TEAM_WORLD, dest, source, bytes, stream);
}

static void ping_pong(int i) {
    uint64_t value = signals + static_cast<uint64_t>(i) + 1;
    if (me == 0)
        nvshmemx_putmem_signal_on_stream(dest, source, bytes, signal_word, value,
                                         NVSHMEM_SIGNAL_SET, 1, stream);
    nvshmemx_signal_wait_until_on_stream(signal_word, NVSHMEM_CMP_EQ, value, stream);
    if (me == 1)
        nvshmemx_putmem_signal_on_stream(dest, source, bytes, signal_word, value,
                                         NVSHMEM_SIGNAL_SET, 0, stream);
}

static void row(const char *text, double value, const char *unit) {
    report(text, value, unit, library);
}

static void latencies() {
    char text[64];
    if (me == 0) {
        row("host put 8 B + quiet", host_us(host_put, 500), "us");
        row("host p 8 B + quiet", host_us(host_p, 500), "us");
        row("host g 8 B", host_us(host_g, 500), "us");
    }
    meet();
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

static void bandwidth(const char *name, enqueue *body, bool one_way) {
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

static void all_gathers() {
    char text[64];
    for (int k = 0; k < LENGTH(shard_sizes); k++) {
        bytes = shard_sizes[k];
        fill(source, bytes, static_cast<uint64_t>(me) + 1);
        CUDA(cudaMemset(dest, 0xa5, bytes * static_cast<size_t>(npes)));
        CUDA(cudaDeviceSynchronize());
        meet();
        snprintf(text, sizeof text, "all-gather %s shards", size_name(bytes));
        row(text, graph_us(all_gather, calls_for(bytes)), "us");
        for (int pe = 0; pe < npes; pe++)
            check(text, dest + static_cast<size_t>(pe) * bytes, bytes,
                  static_cast<uint64_t>(pe) + 1);
        meet();
    }
}

static void initialise(size_t heap) {
    char text[32];
    snprintf(text, sizeof text, "%zu", heap);
    setenv("NVSHMEM_SYMMETRIC_SIZE", text, 1);
    setenv("NVSHMEM_REMOTE_TRANSPORT", "none", 0);
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    if (me == 0 && nvshmemx_get_uniqueid(&id) != 0)
        give_up("nvshmemx_get_uniqueid", "failed");
    hand_out("nvshmem", &id, sizeof id);
    if (nvshmemx_set_attr_uniqueid_args(me, npes, &id, &attributes) != 0 ||
        nvshmemx_hostlib_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) != 0)
        give_up("nvshmemx_hostlib_init_attr", "failed");
}

int main() {
    begin();
    size_t largest = shard_sizes[LENGTH(shard_sizes) - 1];
    initialise(largest * (static_cast<size_t>(npes) + 2));
    int major = 0, minor = 0, patch = 0;
    nvshmemx_vendor_get_version_info(&major, &minor, &patch);
    snprintf(library, sizeof library, "NVSHMEM %d.%d.%d", major, minor, patch);
    peer = (me + 1) % npes;
    source = static_cast<char *>(nvshmem_malloc(largest));
    dest = static_cast<char *>(nvshmem_malloc(largest * static_cast<size_t>(npes)));
    signal_word = static_cast<uint64_t *>(nvshmem_calloc(1, sizeof *signal_word));
    if (!source || !dest || !signal_word)
        give_up("nvshmem_malloc", "failed");
    fill(source, largest, static_cast<uint64_t>(me) + 1);
    meet();
    latencies();
    bandwidth("put", put, true);
    bandwidth("put", put, false);
    bandwidth("get", get, true);
    bandwidth("get", get, false);
    all_gathers();
    nvshmemx_hostlib_finalize();
    return 0;
}
