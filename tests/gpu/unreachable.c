/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: GPUs that cannot access each other's memory, and PEs that each see only their own,
 * so that copies cannot be staged either: no PE gets GPU memory, each gets the reason, and a PE can
 * still use its own GPU, with streams, and graphs captured before. PEs: 2 */
#include "graph.h"
#include "on_stream.h"

enum { BYTES = 3000 };

static unsigned char arrived[BYTES], data[BYTES + 8];

/* With a context current, as in a program that has its own. */
static void put(void) {
    gpu_enter();
    ON(putmem_on_stream(arrived, data, BYTES, shmem_my_pe(), gpu_stream));
    gpu_leave();
}

/* NULL: the put itself. */
static void expect_put(weft_cu_graph_exec exec, uint64_t key) {
    gpu_fill(data, BYTES, key);
    memset(arrived, GPU_POISON, BYTES);
    if (exec)
        graph_replay(exec, gpu_stream);
    else
        put();
    gpu_drain(gpu_stream);
    gpu_expect(arrived, gpu_data(BYTES, key), BYTES, exec ? "by a graph" : "by a stream");
}

static void expect_nothing(void) {
    for (int times = 0; times < 2; times++) {
        void *p = shmemx_malloc(SHMEMX_SPACE_DEVICE, 64);
        const char *text = weft_last_error();
        EXPECT(!p && (strstr(text, "is hidden from this PE") || strstr(text, "has failed: its")),
               "%p, \"%s\"", p, text);
    }
    int rc = shmemx_barrier_all_on_stream(gpu_stream);
    EXPECT(rc < 0, "a barrier on streams: %d", rc);
}

int main(void) {
    setenv("WEFT_FAKE_NO_PEER", "0-1", 1);
    shmem_init();
    if (!getenv("GPU_REQUIRED"))
        gpu_skip("the GPUs of this machine may reach each other's memory");
    setenv("CUDA_VISIBLE_DEVICES", shmem_my_pe() == 0 ? "0" : "1", 1);
    gpu_start();
    tap_case("a PE alone");
    weft_cu_graph_exec exec = graph_capture(gpu_stream, put);
    expect_put(NULL, 1);
    expect_put(exec, 2);
    tap_case("no memory for all");
    expect_nothing();
    tap_case("a PE alone, as before");
    expect_put(exec, 3);
    expect_put(NULL, 4);
    shmem_barrier_all();
    graph_drop(exec);
    return gpu_finish();
}
