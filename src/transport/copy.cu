/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies by multiprocessors: contiguous bytes, strided blocks, or a small piece with a signal. */
#include "base/gpu.cuh"
#include "base/signal.h"
#include "transport/gpu_kernel.h"

extern "C" __global__ void __launch_bounds__(512, 1)
    weftk_copy(struct weft_gpu_abort, void *to, const void *from, size_t bytes) {
    weft_dependency_wait();
    weft_copy_by(to, from, bytes, weft_thread_group_all(), 8);
}

/* Distributes the blocks over groups of threads, whose size gives each thread 64 bytes. */
extern "C" __global__ void __launch_bounds__(512, 1)
    weftk_copy_blocks(struct weft_gpu_abort, struct weft_array to, struct weft_array from,
                      size_t bytes, size_t nblocks) {
    weft_dependency_wait();
    struct weft_thread_group all = weft_thread_group_all(), group = {all.id, 1};
    while (group.count * 64 < bytes && group.count * 2 <= all.count)
        group.count *= 2;
    group.id = all.id % group.count;
    size_t groups = all.count / group.count, block = all.id / group.count;
    if (block >= groups)
        return;
    for (; block < nblocks; block += groups)
        weft_copy_by(weft_array_of(&to, (ptrdiff_t)block), weft_array_at(&from, (ptrdiff_t)block),
                     bytes, group, 2);
}

/* Uses one block, whose barrier separates the copy from the signal. */
extern "C" __global__ void __launch_bounds__(512, 1)
    weftk_put_signal(struct weft_gpu_abort, struct weft_put_signal put) {
    weft_dependency_wait();
    if (weft_block_index() != 0)
        return;
    struct weft_thread_group group = weft_thread_group_block();
    weft_copy_by((void *)put.dest, (const void *)put.source, put.bytes, group, 8);
    weft_block_sync();
    if (group.id != 0)
        return;
    if (put.op == WEFT_SIGNAL_ADD)
        weft_red_add_sys(put.sig_addr, put.signal);
    else
        weft_st_release_sys(put.sig_addr, put.signal);
}
