/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies by multiprocessors: one piece, or blocks that lie apart, or a small piece and a signal. */
#include "transport/gpu_crew.cuh"
#include "transport/gpu_array.h"
#include "transport/gpu_kernel.h"

extern "C" __global__ void __launch_bounds__(512, 1)
    weft_copy(struct weft_gpu_abort, void *to, const void *from, size_t bytes) {
    weft_copy_run<8>((char *)to, (const char *)from, bytes, weft_crew_all());
}

/* Blocks are dealt to crews of threads, of a size for 64 bytes a thread. */
extern "C" __global__ void __launch_bounds__(512, 1)
    weft_copy_blocks(struct weft_gpu_abort, struct weft_gpu_array to, const void *from,
                     ptrdiff_t from_step, size_t bytes, size_t nblocks) {
    struct weft_crew all = weft_crew_all(), crew = {all.id, 1};
    while (crew.count * 64 < bytes && crew.count * 2 <= all.count)
        crew.count *= 2;
    crew.id = all.id % crew.count;
    size_t crews = all.count / crew.count, block = all.id / crew.count;
    if (block >= crews)
        return;
    for (; block < nblocks; block += crews)
        weft_copy_run<2>(weft_gpu_array_of(&to, (ptrdiff_t)block),
                         (const char *)from + (ptrdiff_t)block * from_step, bytes, crew);
}

/* One block: its barrier stands between the copy and the signal. */
extern "C" __global__ void __launch_bounds__(512, 1)
    weft_put_signal(struct weft_gpu_abort, void *to, const void *from, size_t bytes, uint64_t *word,
                    uint64_t value, int add) {
    if (weft_block() != 0)
        return;
    struct weft_crew crew = weft_crew_block();
    weft_copy_run<8>((char *)to, (const char *)from, bytes, crew);
    weft_block_sync();
    if (crew.id != 0)
        return;
    if (add)
        weft_red_add_sys(word, value);
    else
        weft_st_release_sys(word, value);
}
