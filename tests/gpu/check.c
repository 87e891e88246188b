/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a kernel of the last PE misuses weft/device.cuh in the way that the argument names
 * (gpu/check/misuse.h), while the others wait for it. Not a test by itself. PEs: none */
#include "weft/nvshmem/nvshmem.h"
#include "weft/nvshmem/nvshmemx.h"
#include "image.h"
#include "check/misuse.h"

enum { BLOCKS = 2, THREADS = 64, CHANNELS = 2, SLOT = 64, BYTES = 4096 };

/* Launches blocks in a grid of `rows` rows. */
static void launch(weft_cu_function kernel, unsigned rows, void **arguments) {
    gpu_enter();
    GPU(cuLaunchKernel(kernel, BLOCKS / rows, rows, 1, THREADS / rows, rows, 1, 0, gpu_stream,
                       arguments, NULL));
    gpu_leave();
}

int main(int argc, char **argv) {
    if (argc != 2) {
        puts("1..0 # SKIP run by tests/gpu/check.t");
        return 0;
    }
    int which = atoi(argv[1]);
    nvshmem_init();
    gpu_start();
    weft_device_team team;
    char *object = shmemx_calloc(SHMEMX_SPACE_DEVICE, BYTES, 1);
    if (!object || shmemx_device_team(SHMEM_TEAM_WORLD, CHANNELS, SLOT, &team))
        return 97;
    weft_cu_function kernel = image_kernel("check_misuse");
    gpu_enter();
    nvshmemx_cumodule_init(image_module);
    gpu_leave();
    weft_device_team handle = team;
    if (which == PACKETS_OF_FREED_HANDLE)
        shmemx_device_team_free(&handle);
    unsigned rows = which == PUT_BY_GRID_OF_3_DIMENSIONS ? 2 : 1;
    nvshmem_barrier_all();
    if (tap_pe == shmem_n_pes() - 1)
        launch(kernel, rows, (void *[]){&team, &which, &object});
    gpu_enter();
    gpu.cuStreamSynchronize(gpu_stream); /* an error if the kernel has trapped */
    if (gpu.cuStreamQuery(gpu_stream) != 0)
        puts("the kernel has failed");
    gpu_leave();
    shmem_barrier_all();
    return 98;
}
