/* SPDX-License-Identifier: BSD-3-Clause */
/* Weft on GPUs, by its public calls: shmem.h and shmemx.h. */
#include <shmemx.h>
#include <weft.h>
#include "collectives.h"

static uint64_t *signal_word; /* device heap */
static int peer;              /* the next PE */

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

static void ping_pong(int i) {
    uint64_t value = signal_value(i);
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

/* --- Collectives ----------------------------------------------------------------------------- */

static weft_dtype dtype(void) {
    return args.f32 ? WEFT_F32 : WEFT_BF16;
}

/* Arrays that are not symmetric, and in-place calls, may be more than the library supports. */
static void require_or_refuse(int result, const char *call) {
    if (result < 0 && !refused)
        fprintf(stderr, "PE %d: %s refuses: %s\n", me, call, weft_last_error());
    refused = refused || result < 0;
}

static void all_reduce(int i) {
    (void)i;
    require_or_refuse(weft_all_reduce(SHMEM_TEAM_WORLD, args.dest, args.source, args.nelems,
                                      dtype(), WEFT_SUM, (weft_stream)stream),
                      "weft_all_reduce");
}

static void all_gather(int i) {
    (void)i;
    require_or_refuse(weft_all_gather(SHMEM_TEAM_WORLD, args.dest, args.source, args.nelems,
                                      dtype(), (weft_stream)stream),
                      "weft_all_gather");
}

static void reduce_scatter(int i) {
    (void)i;
    require_or_refuse(weft_reduce_scatter(SHMEM_TEAM_WORLD, args.dest, args.source, args.nelems,
                                          dtype(), WEFT_SUM, (weft_stream)stream),
                      "weft_reduce_scatter");
}

static void all_to_all(int i) {
    (void)i;
    require_or_refuse(weft_all_to_all(SHMEM_TEAM_WORLD, args.dest, args.source, args.nelems,
                                      dtype(), (weft_stream)stream),
                      "weft_all_to_all");
}

static const struct collectives symmetric = {
    {all_reduce, all_gather, reduce_scatter, all_to_all}, {true, true, true, false}, ""};
static const struct collectives ordinary = {
    {all_reduce, all_gather, reduce_scatter, all_to_all}, {false}, ", ordinary memory"};

static void *ordinary_memory(size_t size) {
    void *p;
    CUDA(cudaMalloc(&p, size));
    return p;
}

static void engine(shmemx_engine_t which, const char *name) {
    library = name;
    require(shmemx_set_engine(which), "shmemx_set_engine");
}

static void measure_calls(void) {
    size_t largest = largest_copy();
    source = device_memory(largest);
    dest = device_memory(largest);
    signal_word = device_memory(sizeof *signal_word);
    fill(source, largest, (uint64_t)me + 1);
    meet();
    host_latencies(host_put, host_p, host_g);
    barriers(barrier);
    ping_pongs(ping_pong);
    bandwidths(put, get);
    engine(SHMEMX_ENGINE_SM, "Weft, multiprocessors");
    bandwidths(put, get);
    engine(SHMEMX_ENGINE_COPY, "Weft, copy engines");
    bandwidths(put, get);
}

static void measure_collectives(enum table table) {
    void *(*memory)(size_t) = table == ORDINARY ? ordinary_memory : device_memory;
    char *to = memory(room_for_dest(table)), *from = memory(room_for_source(table));
    if (table == ORDINARY) {
        measure_table(&ordinary, table, to, from);
        return;
    }
    measure_table(&symmetric, table, to, from);
    if (table != LARGE || is_crowded() || strcmp(library, "Weft") != 0)
        return;
    engine(SHMEMX_ENGINE_SM, "Weft, multiprocessors");
    measure_table(&symmetric, table, to, from);
    engine(SHMEMX_ENGINE_COPY, "Weft, copy engines");
    measure_table(&symmetric, table, to, from);
}

/* In the tables, settings other than the defaults count as a separate library. */
static const char *name_by_settings(void) {
    static char name[64];
    const char *algorithm = getenv("SHMEMX_ALGORITHM"), *sms = getenv("SHMEMX_SMS");
    if (!algorithm && !sms)
        return "Weft";
    snprintf(name, sizeof name, "Weft, %s%s", algorithm ? "" : "SMS=", algorithm ? algorithm : sms);
    return name;
}

int main(void) {
    begin();
    shmem_init();
    peer = (me + 1) % npes;
    library = name_by_settings();
    enum table table = table_asked();
    if (table == CALLS)
        measure_calls();
    else
        measure_collectives(table);
    shmem_finalize();
    return any_wrong;
}
