/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: products by the kernels for Hopper that exchange data, while other kernels, which
 * wait until the products are complete, leave room for one of their clusters on each GPU; results
 * against double. A real GPU has room for all, so only pretended ones are crowded. PEs: 2 3 */
#include <unistd.h>
#include "gpu/fixed.h"

enum { SMS = 6, CROWD = 4, K = 40, N = 304, GAP = 8, BOX_ROWS = 64 };
/* So many columns that a cluster takes more tiles than there are turns. */
enum { GATHERED_ROWS = 200, GATHERED_N = 704 };
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

/* Makes a call twice: without the crowd, in which memory cannot be allocated, and in the crowd. */
static void call_in_crowd(void (*enqueue)(void)) {
    enqueue();
    gpu_drain(gpu_stream);
    crowd_gather();
    enqueue();
}

/* A member whose depth is odd multiplies first, by cuBLASLt. */
static void reduction(uint64_t key, bool scatters, bool odd, bool transposed) {
    for (int member = 0; member < group.n; member++)
        r.depths[member] = odd && member == 0 ? K + 1 : K;
    fixed_reduction(key, 5 * BOX_ROWS, N, GAP, scatters, transposed);
    call_in_crowd(reduce_enqueue);
    reduce_check(key, 1);
    crowd_part();
    reduce_free();
}

static void gathering(uint64_t key, bool transposed) {
    fixed_gather(key, GATHERED_ROWS, K, GATHERED_N, GAP, transposed);
    call_in_crowd(gather_enqueue);
    gather_check(key, 31);
    crowd_part();
    gather_free();
}

static void scattered(void) {
    reduction(1, true, false, true);
    reduction(2, true, true, true);
    reduction(3, true, false, false);
}

static void reduced_for_all(void) {
    reduction(4, false, false, true);
    reduction(5, false, true, true);
    reduction(6, false, false, false);
}

static void gathered(void) {
    gathering(7, true);
    gathering(8, false);
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
