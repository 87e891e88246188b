/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: PEs that each see only their own GPU (CUDA_VISIBLE_DEVICES): which links carry
 * atomics is found out by trial; on those links atomics are used, and lose nothing, and on others
 * they are refused with the reason; puts work everywhere. On a machine's GPUs with
 * GPU_LINKS=atomic, if all are. PEs: 1 2 3 4 */
#include <errno.h>
#include "device/device.h"
#include "on_stream.h"

enum { ROUNDS = 200, BYTES = 5000 };

static int me, npes;
static uint64_t *count;

/* The link between GPU 0 and GPU 2 has no atomics; PE 3 has GPU 3. */
static bool has_atomics(int pe) {
    return me + pe != 2 || me == pe || getenv("GPU_LINKS");
}

static void expect_links(void) {
    for (int pe = 0; pe < npes; pe++) {
        const struct weft_gpu_peer *peer = &weft_device.peers[pe];
        EXPECT((peer->ordinal >= 0) == (pe == me), "GPU of PE %d is number %d", pe, peer->ordinal);
        EXPECT(peer->atomics == has_atomics(pe), "to PE %d: %d", pe, peer->atomics);
    }
}

static void count_up(void) {
    for (int round = 0; round < ROUNDS; round++)
        for (int pe = 0; pe < npes; pe++)
            if (!has_atomics(pe))
                continue;
            else if (round % 2)
                shmem_uint64_atomic_inc(count, pe);
            else
                ON(signal_op_on_stream(count, 1, SHMEM_SIGNAL_ADD, pe, gpu_stream));
    gpu_drain(gpu_stream);
    shmem_barrier_all();
    int adders = 0;
    for (int pe = 0; pe < npes; pe++)
        adders += has_atomics(pe);
    uint64_t found = shmem_uint64_g(count, me);
    EXPECT(found == (uint64_t)(ROUNDS * adders), "%llu", (unsigned long long)found);
    shmem_barrier_all();
}

static void refuse(void) {
    for (int pe = 0; pe < npes; pe++) {
        if (has_atomics(pe))
            continue;
        int rc = shmemx_signal_op_on_stream(count, 1, SHMEM_SIGNAL_ADD, pe, gpu_stream);
        EXPECT(rc == -ENOTSUP && strstr(weft_last_error(), "carries no atomics"), "%d: %s", rc,
               weft_last_error());
        rc = shmemx_signal_op_on_stream(count, 7, SHMEM_SIGNAL_SET, pe, gpu_stream);
        EXPECT(rc == 0, "%d: %s", rc, weft_last_error());
    }
    gpu_drain(gpu_stream);
    shmem_barrier_all();
}

static void put_everywhere(void) {
    unsigned char *box = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, (size_t)npes * BYTES));
    for (int pe = 0; pe < npes; pe++)
        shmem_putmem(box + me * BYTES, gpu_data(BYTES, (uint64_t)(me * npes + pe)), BYTES, pe);
    shmem_barrier_all();
    for (int pe = 0; pe < npes; pe++)
        gpu_expect(box + pe * BYTES, gpu_data(BYTES, (uint64_t)(pe * npes + me)), BYTES,
                   "from PE %d", pe);
    shmem_free(box);
}

int main(void) {
    setenv("WEFT_FAKE_GPUS", "4", 1);
    setenv("WEFT_FAKE_NO_ATOMICS", "0-2", 1);
    shmem_init();
    me = shmem_my_pe(), npes = shmem_n_pes();
    char own[8];
    snprintf(own, sizeof own, "%d", me);
    if (!getenv("GPU_REQUIRED") && !getenv("GPU_LINKS"))
        gpu_skip("which links of this machine carry atomics is not known");
    setenv("CUDA_VISIBLE_DEVICES", own, 1);
    gpu_start();
    count = allocated(shmemx_calloc(SHMEMX_SPACE_DEVICE, 1, sizeof *count));
    tap_case("links are known");
    expect_links();
    tap_case("atomics where there are any");
    count_up();
    tap_case("and where there are none");
    refuse();
    tap_case("puts");
    put_everywhere();
    shmem_barrier_all();
    return gpu_finish();
}
