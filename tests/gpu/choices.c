/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: products for which copy engines and Weft's kernel are timed, as tests/gpu/choices.t
 * sets them up: each shape several times, in a graph first, and by another team of the same
 * members; an order of b that differs between members; results against double. PEs: 2 3 */
#include <errno.h>
#include <string.h>
#include "gpu/fixed.h"
#include "gpu/graph.h"

enum { K = 24, N = 16, BOX_ROWS = 64, GATHERED_ROWS = 130 };

static void draw_reduction(uint64_t key, size_t boxes, bool scatters, bool transposed) {
    for (int member = 0; member < group.n; member++)
        r.depths[member] = K;
    fixed_reduction(key, BOX_ROWS * boxes, N, 0, scatters, transposed);
}

static void reductions(void) {
    for (uint64_t key = 1; key <= 5; key++) {
        draw_reduction(key, 1, key % 2, key < 5);
        reduce_enqueue();
        reduce_check(key, 1);
        reduce_free();
    }
}

static void gathers(void) {
    for (uint64_t key = 11; key <= 14; key++) {
        fixed_gather(key, GATHERED_ROWS, K, N, 0, key % 2);
        gather_enqueue();
        gather_check(key, 1);
        gather_free();
    }
}

static void in_graphs(void) {
    draw_reduction(21, 2, true, true);
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
    draw_reduction(31, 3, true, true);
    ON(signal_wait_until_on_stream(&begun, SHMEM_CMP_EQ, 1, gpu_stream));
    reduce_enqueue();
    shmem_uint64_atomic_set(&begun, 1, shmem_my_pe());
    reduce_check(31, 1);
    reduce_free();
}

/* Members could choose tiles of unlike sizes. Copy engines take any order. */
static void unlike_orders(void) {
    const char *products = getenv("WEFT_PRODUCTS");
    if (products && strcmp(products, "auto") != 0)
        return;
    draw_reduction(41, 4, true, group.me == 0);
    int rc = weft_matmul_reduce_scatter(group.team, &r.a.m, &r.b.m, r.op, &r.c.m, stream());
    EXPECT(rc == -EINVAL &&
               strstr(weft_last_error(), "reduce-scatter: b is stored by columns on PE"),
           "%d: %s", rc, weft_last_error());
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
    with_group(SHMEM_TEAM_WORLD, "an order of b that differs", unlike_orders);
    with_group(gpu_list_team(), "another team", of_another_team);
    return gpu_finish();
}
