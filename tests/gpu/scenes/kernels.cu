/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels as a program has them, in which PEs wait for one that dies, or which end the job. */
#define WEFT_KERNEL_THREADS
#include <weft/device.cuh>

/* Meets the other members `times` times. */
extern "C" __global__ void weftk_scene_meet(const weft_device_team team, int times) {
    while (times-- > 0 && weft_barrier_b(&team, blockIdx.x))
        continue;
}

extern "C" __global__ void weftk_scene_abort(const weft_device_team team, int status) {
    if (threadIdx.x == 0)
        weft_abort(&team, status);
}
