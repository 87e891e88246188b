/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a kernel of the last PE misuses weft/device.cuh in the way that the argument says
 * (gpu/check/misuse.h), while the others wait for it. No test of its own. PEs: none */
#include "image.h"
#include <shmemx.h>
#include "weft/device/team.cuh"

enum { BLOCKS = 2, THREADS = 64, CHANNELS = 2, SLOT = 64, BYTES = 4096 };

int main(int argc, char **argv) {
    if (argc != 2) {
        puts("1..0 # SKIP run by tests/gpu/check.t");
        return 0;
    }
    shmem_init();
    gpu_start();
    weft_device_team team;
    char *object = shmemx_calloc(SHMEMX_SPACE_DEVICE, BYTES, 1);
    if (!object || shmemx_device_team(SHMEM_TEAM_WORLD, CHANNELS, SLOT, &team))
        return 97;
    weft_cu_function kernel = image_kernel("check_misuse");
    int which = atoi(argv[1]);
    shmem_barrier_all();
    if (tap_pe == shmem_n_pes() - 1)
        image_launch(kernel, BLOCKS, THREADS, gpu_stream, (void *[]){&team, &which, &object});
    gpu_enter();
    gpu.cuStreamSynchronize(gpu_stream); /* an error where the kernel has trapped */
    gpu_leave();
    if (gpu.cuStreamQuery(gpu_stream) != 0)
        puts("the kernel has failed");
    shmem_barrier_all();
    return 98;
}
