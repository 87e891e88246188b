/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: PEs that number the GPUs differently, by CUDA_VISIBLE_DEVICES, find each other's all
 * the same: puts, atomics and collectives of every pair, on the same GPU and on two. PEs: 2 3 4 */
#include "on_stream.h"

enum { MEMBERS = 4, NELEMS = 300 };

/* The GPUs of PEs 0 to 3 are 0, 0, 1 and 1. */
static const char *const orders[MEMBERS] = {"0,1", "1,0", "1,0", "0,1"};

static long value_of(int from, int to, int i) {
    return (from * MEMBERS + to) * 1000L + i;
}

static void expect_values(const long *p, int from, int to, const char *what) {
    long expected[NELEMS];
    for (int i = 0; i < NELEMS; i++)
        expected[i] = value_of(from, to, i);
    gpu_expect(p, expected, sizeof expected, "%s from PE %d to PE %d", what, from, to);
}

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), npes = shmem_n_pes();
    if (getenv("GPU_REQUIRED")) /* the pretended driver has both, whatever the machine has */
        setenv("CUDA_VISIBLE_DEVICES", orders[me], 1);
    gpu_start();
    long *box = shmemx_malloc(SHMEMX_SPACE_DEVICE, MEMBERS * NELEMS * sizeof *box);
    long *count = shmemx_calloc(SHMEMX_SPACE_DEVICE, 1, sizeof *count), mine[MEMBERS * NELEMS];
    long *all = shmemx_malloc(SHMEMX_SPACE_DEVICE, MEMBERS * NELEMS * sizeof *all);
    for (int i = 0; i < MEMBERS * NELEMS; i++)
        mine[i] = value_of(me, i / NELEMS, i % NELEMS);
    tap_case("puts and atomics");
    for (int pe = 0; pe < npes; pe++) {
        shmem_long_put_nbi(box + me * NELEMS, mine + pe * NELEMS, NELEMS, pe);
        shmem_long_atomic_add(count, me + 1, pe);
    }
    shmem_barrier_all();
    for (int pe = 0; pe < npes; pe++)
        expect_values(box + pe * NELEMS, pe, me, "a put");
    long sum = shmem_long_g(count, (me + 1) % npes);
    EXPECT(sum == npes * (npes + 1) / 2, "%ld", sum);
    tap_case("an all-to-all on streams");
    shmem_long_put(box, mine, MEMBERS * NELEMS, me);
    ON(alltoallmem_on_stream(SHMEM_TEAM_WORLD, all, box, NELEMS * sizeof *all, gpu_stream));
    gpu_drain(gpu_stream);
    for (int pe = 0; pe < npes; pe++)
        expect_values(all + pe * NELEMS, pe, me, "a block");
    shmem_barrier_all();
    return gpu_finish();
}
