/* SPDX-License-Identifier: BSD-3-Clause */
/* Each PE writes a word into the memory of its right neighbour's GPU, from a kernel, and waits for
 * the word of its left neighbour.
 *
 *   nvcc -arch=native hello.cu -o hello $(pkg-config --cflags --libs weft)
 *   oshrun -n 2 ./hello */
#include <cuda_runtime.h>
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>
#include <weft.h>
#include <weft/device.cuh>

__global__ void hello(const __grid_constant__ weft_device_team t, uint64_t *inbox,
                      uint64_t *arrived, uint64_t letter) {
    int right = (t.me + 1) % t.n;
    weft_p64(&t, inbox, letter, right);           /* the right neighbour's copy of inbox */
    weft_signal(&t, arrived, 1, right);           /* after the signal the word is visible, too */
    weft_wait_until(&t, arrived, WEFT_CMP_EQ, 1); /* the left neighbour sets it */
}

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes(), device;
    shmemx_device(&device); /* this PE's GPU */
    cudaSetDevice(device);
    uint64_t *inbox = (uint64_t *)shmemx_calloc(SHMEMX_SPACE_DEVICE, 1, sizeof *inbox);
    uint64_t *arrived = (uint64_t *)shmemx_calloc(SHMEMX_SPACE_DEVICE, 1, sizeof *arrived);
    weft_device_team team;
    if (!inbox || !arrived || shmemx_device_team(SHMEM_TEAM_WORLD, 1, 0, &team)) {
        fprintf(stderr, "hello: %s\n", weft_last_error());
        shmem_global_exit(1);
    }

    hello<<<1, 1>>>(team, inbox, arrived, 100 + me);

    uint64_t letter = 0; /* the copy waits for the kernel */
    cudaError_t error = cudaMemcpy(&letter, inbox, sizeof letter, cudaMemcpyDeviceToHost);
    uint64_t expected = 100 + (me + n - 1) % n;
    printf("hello: PE %d of %d has got %llu: %s\n", me, n, (unsigned long long)letter,
           error                ? cudaGetErrorString(error)
           : letter == expected ? "right"
                                : "WRONG");
    shmemx_device_team_free(&team);
    shmem_finalize();
    return error || letter != expected;
}
