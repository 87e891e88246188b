// SPDX-License-Identifier: BSD-3-Clause
// NVSHMEM's calls inside kernels, in the rows of device.cuh.
#include <cooperative_groups.h>
#include <nvshmem.h>
#include <nvshmemx.h>

struct calls {
    __device__ void put_signal_t(void *dest, const void *source, size_t size, uint64_t *signal,
                                 uint64_t value, int pe) const {
        nvshmem_putmem_signal(dest, source, size, signal, value, NVSHMEM_SIGNAL_SET, pe);
    }
    __device__ void put_signal_b(void *dest, const void *source, size_t size, uint64_t *signal,
                                 uint64_t value, int pe) const {
        nvshmemx_putmem_signal_block(dest, source, size, signal, value, NVSHMEM_SIGNAL_SET, pe);
    }
    // The value is in memory already, where it takes one from.
    __device__ void word_signal(uint64_t *dest, const uint64_t *source, uint64_t *signal,
                                uint64_t value, int pe) const {
        nvshmem_putmem_signal(dest, source, sizeof *dest, signal, value, NVSHMEM_SIGNAL_SET, pe);
    }
    __device__ void wait_t(uint64_t *signal, uint64_t value) const {
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, value);
    }
    __device__ void wait_b(uint64_t *signal, uint64_t value) const {
        if (threadIdx.x == 0)
            nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, value);
        __syncthreads();
    }
    __device__ void put_b(void *dest, const void *source, size_t size, int pe) const {
        nvshmemx_putmem_block(dest, source, size, pe);
    }
    __device__ void get_b(void *dest, const void *source, size_t size, int pe) const {
        nvshmemx_getmem_block(dest, source, size, pe);
    }
    __device__ void p(uint64_t *dest, uint64_t value, int pe) const {
        nvshmem_uint64_p(dest, value, pe);
    }
    __device__ uint64_t fetch_add(uint64_t *word, uint64_t value, int pe) const {
        return nvshmem_uint64_atomic_fetch_add(word, value, pe);
    }
    __device__ void add(uint64_t *word, uint64_t value, int pe) const {
        nvshmem_uint64_atomic_add(word, value, pe);
    }
    __device__ void barrier_b() const { nvshmemx_barrier_all_block(); }
    __device__ void sync_b() const { nvshmemx_sync_all_block(); }
    // It has none of a whole grid: one block meets the other PEs between two barriers of the grid.
    __device__ void barrier_grid() const {
        cooperative_groups::this_grid().sync();
        if (blockIdx.x == 0)
            nvshmemx_barrier_all_block();
        cooperative_groups::this_grid().sync();
    }
};

#include "device.cuh"
#include "nvshmem_begin.h"

static void meet() {
    CUDA(cudaStreamSynchronize(stream));
    nvshmem_barrier_all();
}

static void launched(const void *kernel, int blocks, int threads, void **arguments) {
    if (nvshmemx_collective_launch(kernel, dim3((unsigned)blocks), dim3((unsigned)threads),
                                   arguments, 0, stream) != 0)
        give_up("nvshmemx_collective_launch", "failed");
}

static void *symmetric(size_t size) {
    void *p = nvshmem_malloc(size);
    if (!p)
        give_up("nvshmem_malloc", "failed");
    return p;
}

int main() {
    static char name[64];
    begin();
    initialise(2 * PUT_BYTES + 64 * MIB, nvshmemx_init_attr, "nvshmemx_init_attr");
    int major = 0, minor = 0, patch = 0;
    nvshmemx_vendor_get_version_info(&major, &minor, &patch);
    snprintf(name, sizeof name, "NVSHMEM %d.%d.%d", major, minor, patch);
    library = name;
    args.dest = static_cast<char *>(symmetric(PUT_BYTES));
    args.source = static_cast<char *>(symmetric(PUT_BYTES));
    args.words = static_cast<uint64_t *>(symmetric(ADD_WORDS * sizeof *args.words));
    allocate_own();
    rows_of_kernels();
    // It has no packets: a word and its signal take their place.
    signal_row<1, 8>("kernel: packet of 8 B, one way");
    nvshmem_finalize();
    return any_wrong;
}
