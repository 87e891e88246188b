/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: products by the kernels for Hopper that exchange data, while other kernels, which
 * wait until the products are complete, leave room for one of their clusters on each GPU; results
 * against double. A GPU has room for both, so only on pretended ones the
 * kernels are crowded. PEs: 2 3 */
#include <unistd.h>
#include "gpu/gather.h"
#include "gpu/reduction.h"

enum { SMS = 6, CROWD = 4, K = 40, N = 300, BOX_ROWS = 64, GATHERED_ROWS = 200 };
enum { BEGIN_US = 20000, WAIT_MS = 60000 };

/* --- The crowd -------------------------------------------------------------------------------- */

static uint32_t **pads; /* one address, in GPU memory */
static weft_cu_stream waiting[CROWD], giving;

static void crowd_make(void) {
    uint32_t *pad = (uint32_t *)(void *)own_memory(CROWD * sizeof *pad);
    pads = (uint32_t **)(void *)own_memory(sizeof *pads);
    gpu_write(pad, (uint32_t[CROWD]){0}, CROWD * sizeof *pad);
    gpu_write(pads, &pad, sizeof pad);
    for (int i = 0; i < CROWD; i++)
        waiting[i] = gpu_stream_new();
    giving = gpu_stream_new();
}

static void crowd_gather(void) {
    for (int i = 0; i < CROWD; i++)
        ON(pad_wait_on_stream(pads, 0, 1, 0, i, WAIT_MS, waiting[i]));
    usleep(BEGIN_US);
    shmem_team_sync(group.team);
}

static void crowd_part(void) {
    for (int i = 0; i < CROWD; i++)
        ON(pad_put_on_stream(pads, 0, 1, 0, i, WAIT_MS, giving));
    for (int i = 0; i < CROWD; i++)
        gpu_drain(waiting[i]);
    gpu_drain(giving);
}

/* --- Products --------------------------------------------------------------------------------- */

static struct placed drawn_factor(size_t rows, size_t cols, bool transposed, uint64_t seed) {
    weft_matrix shape = {NULL, rows, cols, transposed ? rows : cols, WEFT_BF16, transposed};
    struct tensor image = tensor_of(PRIVATE, shape);
    tensor_fill(&image, seed);
    return place(OWN, image);
}

static struct placed drawn_result(size_t rows) {
    return place(OWN, tensor_new(PRIVATE, rows, N, N + 4, WEFT_BF16));
}

/* A member whose depth is odd multiplies first, by cuBLASLt. */
static void reduction(uint64_t key, bool scatters, bool odd) {
    draw_alike(key);
    size_t rows = 5 * BOX_ROWS, all = rows * (size_t)group.n;
    r = (struct reduction){
        .dtype = WEFT_BF16, .op = WEFT_SUM, .roundings = 2, .scatters = scatters};
    r.m = all;
    r.n = N;
    for (int member = 0; member < group.n; member++)
        r.depths[member] = odd && member == 0 ? K + 1 : K;
    suits = true;
    r.a = drawn_factor(all, r.depths[group.me], false, seed_of(key, group.me, 0));
    r.b = drawn_factor(r.depths[group.me], N, true, seed_of(key, group.me, 1));
    r.c = drawn_result(scatters ? rows : all);
    suits = false;
    reduce_enqueue(); /* once before, because memory cannot be allocated in the crowd */
    gpu_drain(gpu_stream);
    crowd_gather();
    reduce_enqueue();
    reduce_check(key, 1);
    crowd_part();
    reduce_free();
}

static void gathering(uint64_t key) {
    draw_alike(key);
    g = (struct gather){.dtype = WEFT_BF16, .rows = GATHERED_ROWS, .k = K, .nb = 1};
    suits = true;
    g.shard = drawn_factor(g.rows, K, false, seed_of(key, group.me, 0));
    g.b[0] = drawn_factor(K, N, true, seed_of(key, group.me, 1));
    g.c[0] = drawn_result(g.rows * (size_t)group.n);
    suits = false;
    gather_enqueue(); /* once before, because memory cannot be allocated in the crowd */
    gpu_drain(gpu_stream);
    crowd_gather();
    gather_enqueue();
    gather_check(key, 31);
    crowd_part();
    gather_free();
}

static void scattered(void) {
    reduction(1, true, false);
    reduction(2, true, true);
}

static void reduced_for_all(void) {
    reduction(3, false, false);
    reduction(4, false, true);
}

static void gathered(void) {
    gathering(5);
}

int main(void) {
    char sms[12];
    snprintf(sms, sizeof sms, "%d", SMS);
    setenv("WEFT_FAKE_SMS", sms, 1);
    setenv("WEFT_FAKE_HANG_MS", "20000", 1);
    setenv("WEFT_PRODUCTS", "own", 1);
    setenv("SHMEMX_ALGORITHM", "meet", 1);
    matrices_start();
    crowd_make();
    with_group(SHMEM_TEAM_WORLD, "all-gather + product", gathered);
    with_group(SHMEM_TEAM_WORLD, "product + reduce-scatter", scattered);
    with_group(SHMEM_TEAM_WORLD, "product + all-reduce", reduced_for_all);
    return gpu_finish();
}
