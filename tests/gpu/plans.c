/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: weft_all_gather_matmul with the algorithms that tests/gpu/plans.t sets up: some
 * shapes, each several times, eager and captured; results against double. PEs: 1 2 */
#include "gpu/gather.h"
#include "gpu/graph.h"

/* The kernels for Hopper multiply products of BF16, too. */
static void draw(uint64_t key, size_t rows, weft_dtype dtype, bool transposed) {
    draw_alike(key);
    g = (struct gather){.dtype = dtype, .rows = rows, .k = 24, .nb = 1};
    suits = true;
    weft_matrix shape = {NULL, rows, g.k, g.k, dtype, false};
    struct tensor shard = tensor_of(PRIVATE, shape);
    tensor_fill(&shard, seed_of(key, group.me, 0));
    g.shard = place(OWN, shard);
    size_t ld = transposed ? g.k : 16;
    struct tensor b = tensor_of(PRIVATE, (weft_matrix){NULL, g.k, 16, ld, dtype, transposed});
    tensor_fill(&b, seed_of(key, group.me, 1));
    g.b[0] = place(OWN, b);
    g.c[0] = place(OWN, tensor_new(PRIVATE, rows * (size_t)group.n, 16, 16, dtype));
    suits = false;
}

static void products(void) {
    static const weft_dtype dtypes[] = {WEFT_F32, WEFT_BF16};
    for (uint64_t key = 1; key <= 5; key++) {
        draw(key, key < 3 ? 20 : 33, dtypes[key % 2], key == 5);
        gather_enqueue();
        gather_check(key, 1);
        gather_free();
    }
}

static void in_graphs(void) {
    draw(9, 50, WEFT_F32, false);
    weft_cu_graph_exec graph = graph_capture(gpu_stream, gather_enqueue);
    graph_replay(graph, gpu_stream);
    gather_check(9, 1);
    graph_drop(graph);
    gather_free();
}

int main(void) {
    matrices_start();
    with_group(SHMEM_TEAM_WORLD, "products of several shapes", products);
    with_group(SHMEM_TEAM_WORLD, "a shape that is first used in a graph", in_graphs);
    return gpu_finish();
}
