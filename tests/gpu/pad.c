/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: signal pads as PyTorch's kernels use them: puts and waits, barriers on channels, in
 * streams and graphs, all words 0 at the end; and a timeout, which names the waiting rank and its
 * peer and traps. PEs: 1 2 4 */
#include "inside.h"
#include "graph.h"
#include "trap.h"
#include <errno.h>
#include <shmemx.h>
#include "base/clock.h"
#include "transport/gpu_word.h"

enum { CHANNELS = 5, ROUNDS = 40, WAIT_MS = 60000 };

static weft_cu_stream stream;
static uint32_t **pads; /* n addresses, in this PE's GPU memory */
static uint32_t *mine;
static uint64_t *count, *board, *snapshot;

/* --- Waits that are too long ------------------------------------------------------------------ */

/* 0 when all is as it should be. */
static int time_out(int unused) {
    char *memory = trap_memory();
    if (!memory)
        return 1;
    uint32_t **own_pads = (uint32_t **)memory;
    uint64_t begun = weft_clock_ns(), pad = (uintptr_t)memory + 4096, both[] = {pad, pad};
    struct weft_pad own = {own_pads, 0, 2, 3, 200};
    if (gpu.cuMemcpyAsync((uintptr_t)own_pads, (uintptr_t)both, sizeof both, trap_gpu->stream) != 0)
        return 2;
    if (weft_gpu_pad(WEFT_PAD_WAIT, &own, 1, trap_gpu->stream) < 0)
        return 3;
    if (gpu.cuStreamSynchronize(trap_gpu->stream) == 0)
        return 4;
    (void)unused;
    return weft_clock_ns() - begun < 190000000 ? 5 : 0;
}

/* --- Pads ------------------------------------------------------------------------------------- */

static struct weft_pad on_channel(int channel, uint64_t timeout_ms) {
    return (struct weft_pad){pads, me, npes, channel, timeout_ms};
}

static void put(int peer, int channel) {
    struct weft_pad pad = on_channel(channel, WAIT_MS);
    INSIDE(weft_gpu_pad(WEFT_PAD_PUT, &pad, peer, stream));
}

static void wait_for(int peer, int channel) {
    struct weft_pad pad = on_channel(channel, WAIT_MS);
    INSIDE(weft_gpu_pad(WEFT_PAD_WAIT, &pad, peer, stream));
}

static void expect_zero(const char *what) {
    static const uint32_t zero[CHANNELS * 64];
    shmem_barrier_all();
    gpu_expect(mine, zero, sizeof *mine * CHANNELS * (size_t)npes, "the pad after %s", what);
    shmem_barrier_all();
}

/* A second put to the same word waits for the wait. */
static void puts_and_waits(void) {
    tap_case("put and wait, around the ring");
    int before = (me + npes - 1) % npes;
    for (int round = 0; round < ROUNDS; round++) {
        put(next, round % CHANNELS);
        wait_for(before, round % CHANNELS);
    }
    for (int channel = 0; channel < CHANNELS; channel++)
        put(next, channel);
    for (int channel = CHANNELS; channel-- > 0;)
        wait_for(before, channel);
    inside_synchronize(stream);
    expect_zero("puts and waits");
}

static void barrier(int channel) {
    struct weft_pad pad = on_channel(channel, channel ? WAIT_MS : 0);
    INSIDE(weft_gpu_pad(WEFT_PAD_BARRIER, &pad, me, stream));
}

static void round_of_barriers(void) {
    for (int pe = 0; pe < npes; pe++) {
        uint64_t *there = weft_device_near(board, (size_t)npes * 8, pe);
        INSIDE(weft_gpu_copy(there + me, count, 8, pe == me ? WEFT_WITHIN : WEFT_TO_PEER, stream));
    }
    barrier(0);
    INSIDE(weft_gpu_copy(snapshot, board, (size_t)npes * 8, WEFT_WITHIN, stream));
    barrier(CHANNELS - 1);
    struct weft_amo amo = {WEFT_AMO_ADD, 8, count, 1, 0, NULL};
    INSIDE(weft_gpu_amo(&amo, stream));
}

static void check_round(uint64_t round) {
    uint64_t expected[64];
    for (int pe = 0; pe < npes; pe++)
        expected[pe] = round;
    inside_synchronize(stream);
    gpu_expect(snapshot, expected, (size_t)npes * 8, "round %llu", (unsigned long long)round);
}

static void barriers(void) {
    tap_case("barriers order memory, in a stream and in a graph");
    uint64_t round = 0;
    for (; round < ROUNDS; round++) {
        round_of_barriers();
        if (round % 2)
            check_round(round);
    }
    weft_cu_graph_exec graph = graph_capture(stream, round_of_barriers);
    for (; round < 2 * ROUNDS; round++) {
        graph_replay(graph, stream);
        if (round % 2)
            check_round(round);
    }
    graph_drop(graph);
    expect_zero("barriers");
}

static void wrong_arguments(void) {
    tap_case("ranks and channels that do not exist are refused");
    EXPECT(shmemx_pad_put_on_stream(pads, me, npes, npes, 0, 0, stream) == -EINVAL, "peer n");
    EXPECT(shmemx_pad_wait_on_stream(pads, me, npes, -1, 0, 0, stream) == -EINVAL, "peer -1");
    EXPECT(shmemx_pad_barrier_on_stream(pads, npes, npes, 0, 0, stream) == -EINVAL, "rank n");
    EXPECT(shmemx_pad_barrier_on_stream(pads, me, npes, -1, 0, stream) == -EINVAL, "channel -1");
}

static void make_pads(void) {
    uintptr_t addresses[64];
    mine = inside_malloc(sizeof *mine * CHANNELS * (size_t)npes);
    pads = inside_malloc(sizeof *pads * (size_t)npes);
    for (int pe = 0; pe < npes; pe++)
        addresses[pe] = (uintptr_t)weft_device_near(mine, sizeof *mine, pe);
    gpu_write(pads, addresses, sizeof *pads * (size_t)npes);
    count = inside_malloc(8);
    board = inside_malloc((size_t)npes * 8);
    snapshot = inside_malloc((size_t)npes * 8);
    stream = gpu_stream_new();
    shmem_barrier_all();
}

int main(void) {
    static char said[4096];
    shmem_init();
    int timed_out = shmem_my_pe() == 0 ? trap_run(time_out, 0, said, sizeof said) : 0;
    inside_start();
    tap_case("a timeout says who waited for whom, and traps");
    EXPECT(timed_out == 0, "the process ended with %d", timed_out);
    EXPECT(me != 0 || strstr(said, "rank 0: has heard nothing from rank 1 on channel 3"),
           "it said '%s'", said);
    make_pads();
    puts_and_waits();
    barriers();
    wrong_arguments();
    return gpu_finish();
}
