// SPDX-License-Identifier: BSD-3-Clause
// NVSHMEM by the same calls of its host interface. Its headers are C++.
#include <nvshmem_host.h>
#include "collectives.h"
#include "nvshmem_begin.h"

static uint64_t *signal_word;
static int peer;

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

static void ping_pong(int i) {
    uint64_t value = signal_value(i);
    if (me == 0)
        nvshmemx_putmem_signal_on_stream(dest, source, bytes, signal_word, value,
                                         NVSHMEM_SIGNAL_SET, 1, stream);
    nvshmemx_signal_wait_until_on_stream(signal_word, NVSHMEM_CMP_EQ, value, stream);
    if (me == 1)
        nvshmemx_putmem_signal_on_stream(dest, source, bytes, signal_word, value,
                                         NVSHMEM_SIGNAL_SET, 0, stream);
}

// --- Collectives --------------------------------------------------------------------------------

static void succeed(int result, const char *call) {
    if (result != 0)
        give_up(call, "failed");
}

template <class T> static T *dest_as() {
    return reinterpret_cast<T *>(args.dest);
}
template <class T> static const T *source_as() {
    return reinterpret_cast<const T *>(args.source);
}

static void all_reduce(int) {
    succeed(args.f32 ? nvshmemx_float_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, dest_as<float>(),
                                                           source_as<float>(), args.nelems, stream)
                     : nvshmemx_bfloat16_sum_reduce_on_stream(
                           NVSHMEM_TEAM_WORLD, dest_as<__nv_bfloat16>(), source_as<__nv_bfloat16>(),
                           args.nelems, stream),
            "nvshmemx_sum_reduce_on_stream");
}

static void reduce_scatter(int) {
    succeed(args.f32
                ? nvshmemx_float_sum_reducescatter_on_stream(
                      NVSHMEM_TEAM_WORLD, dest_as<float>(), source_as<float>(), args.nelems, stream)
                : nvshmemx_bfloat16_sum_reducescatter_on_stream(
                      NVSHMEM_TEAM_WORLD, dest_as<__nv_bfloat16>(), source_as<__nv_bfloat16>(),
                      args.nelems, stream),
            "nvshmemx_sum_reducescatter_on_stream");
}

static void all_gather(int) {
    succeed(nvshmemx_fcollectmem_on_stream(NVSHMEM_TEAM_WORLD, args.dest, args.source,
                                           args.nelems * elem_bytes(), stream),
            "nvshmemx_fcollectmem_on_stream");
}

static void all_to_all(int) {
    succeed(nvshmemx_alltoallmem_on_stream(NVSHMEM_TEAM_WORLD, args.dest, args.source,
                                           args.nelems * elem_bytes(), stream),
            "nvshmemx_alltoallmem_on_stream");
}

static char *allocate(size_t size) {
    char *p = static_cast<char *>(nvshmem_malloc(size));
    if (!p)
        give_up("nvshmem_malloc", "failed");
    return p;
}

static void measure_calls() {
    size_t largest = largest_copy();
    source = allocate(largest);
    dest = allocate(largest);
    signal_word = static_cast<uint64_t *>(nvshmem_calloc(1, sizeof *signal_word));
    fill(source, largest, static_cast<uint64_t>(me) + 1);
    meet();
    host_latencies(host_put, host_p, host_g);
    barriers(barrier);
    ping_pongs(ping_pong);
    bandwidths(put, get);
}

static void measure_collectives(enum table table) {
    struct collectives calls = {
        {all_reduce, all_gather, reduce_scatter, all_to_all}, {true, true}, ""};
    char *to = allocate(room_for_dest(table));
    char *from = allocate(room_for_source(table));
    measure_table(&calls, table, to, from);
}

int main() {
    static char name[64];
    begin();
    enum table table = table_asked();
    if (table == ORDINARY) // its memory is symmetric
        return 0;
    initialise(table == CALLS ? 3 * largest_copy()
                              : room_for_dest(table) + room_for_source(table) + 64 * MIB,
               nvshmemx_hostlib_init_attr, "nvshmemx_hostlib_init_attr");
    int major = 0, minor = 0, patch = 0;
    nvshmemx_vendor_get_version_info(&major, &minor, &patch);
    snprintf(name, sizeof name, "NVSHMEM %d.%d.%d", major, minor, patch);
    library = name;
    peer = (me + 1) % npes;
    if (table == CALLS)
        measure_calls();
    else
        measure_collectives(table);
    nvshmemx_hostlib_finalize();
    return any_wrong;
}
