/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: products for which copy engines and Weft's kernel are timed, as tests/gpu/choices.t
 * sets them up: each shape several times, in a graph first, and by another team of the same
 * members; results against double. PEs: 2 3 */
#include "gpu/gather.h"
#include "gpu/graph.h"
#include "gpu/reduction.h"

enum { K = 24, N = 16, BOX_ROWS = 64, GATHERED_ROWS = 130 };

static struct placed drawn_factor(size_t rows, size_t cols, bool transposed, uint64_t seed) {
    weft_matrix shape = {NULL, rows, cols, transposed ? rows : cols, WEFT_BF16, transposed};
    struct tensor image = tensor_of(PRIVATE, shape);
    tensor_fill(&image, seed);
    return place(OWN, image);
}

static struct placed drawn_result(size_t rows, size_t cols) {
    return place(OWN, tensor_new(PRIVATE, rows, cols, cols, WEFT_BF16));
}

static void draw_reduction(uint64_t key, size_t boxes, bool scatters) {
    draw_alike(key);
    size_t rows = BOX_ROWS * boxes, all = rows * (size_t)group.n;
    r = (struct reduction){
        .dtype = WEFT_BF16, .op = WEFT_SUM, .roundings = 2, .scatters = scatters};
    r.m = all;
    r.n = N;
    for (int member = 0; member < group.n; member++)
        r.depths[member] = K;
    suits = true;
    r.a = drawn_factor(all, K, false, seed_of(key, group.me, 0));
    r.b = drawn_factor(K, N, true, seed_of(key, group.me, 1));
    r.c = drawn_result(scatters ? rows : all, N);
    suits = false;
}

static void draw_gather(uint64_t key, bool transposed) {
    draw_alike(key);
    g = (struct gather){.dtype = WEFT_BF16, .rows = GATHERED_ROWS, .k = K, .nb = 1};
    suits = true;
    g.shard = drawn_factor(g.rows, K, false, seed_of(key, group.me, 0));
    g.b[0] = drawn_factor(K, N, transposed, seed_of(key, group.me, 1));
    g.c[0] = drawn_result(g.rows * (size_t)group.n, N);
    suits = false;
}

static void reductions(void) {
    for (uint64_t key = 1; key <= 6; key++) {
        draw_reduction(key, 1, key % 2);
        reduce_enqueue();
        reduce_check(key, 1);
        reduce_free();
    }
}

static void gathers(void) {
    for (uint64_t key = 11; key <= 14; key++) {
        draw_gather(key, key % 2);
        gather_enqueue();
        gather_check(key, 1);
        gather_free();
    }
}

static void in_graphs(void) {
    draw_reduction(21, 2, true);
    weft_cu_graph_exec graph = graph_capture(gpu_stream, reduce_enqueue);
    for (int i = 0; i < 2; i++) {
        graph_replay(graph, gpu_stream);
        reduce_check(21, 1);
        reduce_enqueue();
        reduce_check(21, 1);
    }
    graph_drop(graph);
    reduce_free();
}

/* The stream waits for what the host does after the call. */
static void behind_the_host(void) {
    static uint64_t begun; /* symmetric */
    draw_reduction(31, 3, true);
    ON(signal_wait_until_on_stream(&begun, SHMEM_CMP_EQ, 1, gpu_stream));
    reduce_enqueue();
    shmem_uint64_atomic_set(&begun, 1, shmem_my_pe());
    reduce_check(31, 1);
    reduce_free();
}

static void of_another_team(void) {
    reductions();
    gathers();
}

/* The algorithm keeps small sums from being made by a kernel of their own. */
int main(void) {
    setenv("SHMEMX_ALGORITHM", "meet", 1);
    setenv("WEFT_FAKE_SMS", "4", 1);
    matrices_start();
    with_group(SHMEM_TEAM_WORLD, "a shape that is first used in a graph", in_graphs);
    with_group(SHMEM_TEAM_WORLD, "reductions", reductions);
    with_group(SHMEM_TEAM_WORLD, "gathers", gathers);
    with_group(SHMEM_TEAM_WORLD, "a stream that waits for the host", behind_the_host);
    with_group(gpu_list_team(), "another team", of_another_team);
    return gpu_finish();
}
