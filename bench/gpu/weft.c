/* SPDX-License-Identifier: BSD-3-Clause */
/* Weft on GPUs, by its public calls: shmem.h and shmemx.h. */
#include <shmemx.h>
#include <weft.h>
#include "rows.h"

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

static void all_gather(int i) {
    (void)i;
    require(shmemx_fcollectmem_on_stream(SHMEM_TEAM_WORLD, dest, source, bytes, stream),
            "shmemx_fcollectmem_on_stream");
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

static void engine(shmemx_engine_t which, const char *name) {
    library = name;
    require(shmemx_set_engine(which), "shmemx_set_engine");
    bandwidths(put, get);
    all_gathers(all_gather);
}

int main(void) {
    begin();
    shmem_init();
    size_t largest = largest_shard();
    peer = (me + 1) % npes;
    library = "Weft";
    source = device_memory(largest);
    dest = device_memory(largest * (size_t)npes);
    signal_word = device_memory(sizeof *signal_word);
    fill(source, largest, (uint64_t)me + 1);
    meet();
    host_latencies(host_put, host_p, host_g);
    barriers(barrier);
    ping_pongs(ping_pong);
    engine(SHMEMX_ENGINE_AUTO, "Weft");
    engine(SHMEMX_ENGINE_SM, "Weft, multiprocessors");
    engine(SHMEMX_ENGINE_COPY, "Weft, copy engines");
    shmem_finalize();
    return 0;
}
