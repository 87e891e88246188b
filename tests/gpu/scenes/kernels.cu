/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels like a program's, in which PEs wait for one that dies, or which end the job. */
#define WEFT_KERNEL_THREADS
#include <weft/device.cuh>
#include "gpu/scenes/waits.h"

enum { LONG_S = 60 };

/* Meets the other members `times` times. */
extern "C" __global__ void weftk_scene_meet(const weft_device_team team, int times) {
    while (times-- > 0 && weft_barrier_b(&team, blockIdx.x))
        continue;
}

extern "C" __global__ void weftk_scene_abort(const weft_device_team team, int status) {
    if (threadIdx.x == 0)
        weft_abort(&team, status);
}

/* --- Every kind of wait --------------------------------------------------------------------------
 */

WEFT_DEVICE int wait_packet(const weft_device_team *t, int victim) {
    uint64_t epoch = weft_ll_epoch_begin(t, weft_block_index()), data;
    return weft_ll_recv(t, weft_block_index(), weft_block_rank(), victim, epoch, &data);
}

#if !defined(__CUDACC__) || WEFT_DEVICE_ARCH >= 900
WEFT_DEVICE int wait_bytes(const weft_device_team *t) {
    WEFT_SHARED(uint64_t, mbarrier, 1);
    if (weft_block_rank() == 0) {
        weft_mbarrier_init(mbarrier, 1);
        weft_mbarrier_expect(mbarrier, 16);
    }
    weft_block_sync();
    return weft_mbarrier_wait(t, mbarrier, 0);
}
#else
WEFT_DEVICE int wait_bytes(const weft_device_team *t) {
    return weft_sync_b(t, weft_block_index());
}
#endif

WEFT_DEVICE int wait_by(const weft_device_team *t, const uint64_t *word, int how, int victim) {
    switch (how) {
    case SCENE_SIGNAL:
        return weft_wait_eq(t, word, 1);
    case SCENE_SIGNAL_OF_WARP:
        return weft_wait_ge_w(t, word, 1);
    case SCENE_SIGNAL_OF_BLOCK:
        return weft_wait_ge_b(t, word, 1);
    case SCENE_LONG_LIMIT:
        return weft_wait_until_ns(t, word, WEFT_CMP_NE, 0, LONG_S * UINT64_C(1000000000));
    case SCENE_BARRIER:
        return weft_barrier_b(t, weft_block_index());
    case SCENE_SYNC:
        return weft_sync_b(t, weft_block_index());
    case SCENE_GRID_BARRIER:
        return weft_barrier_grid(t);
    case SCENE_PACKET:
        return wait_packet(t, victim);
    case SCENE_BYTES:
        return wait_bytes(t);
    default:
        return 0;
    }
}

/* A wait that ends as if all were well is the test's failure: the kernel then never ends. */
extern "C" __global__ void weftk_scene_wait(const __grid_constant__ weft_device_team t,
                                            const uint64_t *word, int how, int victim) {
    while (wait_by(&t, word, how, victim) != 0)
        weft_nanosleep(1000);
}
