/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches the kernels on slices. The number of elements is not known at the launch, so the grid
 * has the size for the largest possible number. */
#include "transport/gpu_slice.h"
#include "transport/gpu_kernel.h"
#include "transport/gpu_word.h"

enum {
    THREADS = 512,
    WORD_BYTES = 16,
    BLOCKS_MAX = 64, /* as for copies to a peer (transport/gpu_copy.c) */
};

static uint64_t nelems_min(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Returns an upper bound of the number of 16-byte words that one call copies. */
static size_t slice_words(const struct weft_gpu_slices *s) {
    uint64_t nelems = nelems_min(s->to_nelems, s->from_nelems);
    if (!s->nelems.at)
        nelems = nelems_min(nelems, (uint64_t)s->nelems.value);
    return nelems * s->elem_bytes / WORD_BYTES + 1;
}

int weft_gpu_copy_slice(void *to, const void *from, const struct weft_gpu_slices *slices,
                        weft_cu_stream stream) {
    size_t blocks = nelems_min((slice_words(slices) + THREADS - 1) / THREADS, BLOCKS_MAX);
    void *arguments[] = {&to, &from, (void *)slices, NULL};
    return weft_gpu_launch(WEFT_KERNEL_weftk_copy_slice, (unsigned)blocks,
                           weft_gpu_warps(slice_words(slices), THREADS), stream, arguments);
}

int weft_gpu_put_slice_signal(void *to, const void *from, const struct weft_gpu_slices *slices,
                              const struct weft_gpu_signal32 *signal, weft_cu_stream stream) {
    void *arguments[] = {&to, &from, (void *)slices, (void *)signal, NULL};
    return weft_gpu_launch(WEFT_KERNEL_weftk_put_slice_signal, 1,
                           weft_gpu_warps(slice_words(slices), THREADS), stream, arguments);
}

int weft_gpu_signal32(const struct weft_gpu_signal32 *signal, weft_cu_stream stream) {
    void *arguments[] = {(void *)signal, NULL};
    return weft_gpu_launch(WEFT_KERNEL_weftk_signal32, 1, 1, stream, arguments);
}

int weft_gpu_write32(int32_t *word, int32_t value, weft_cu_stream stream) {
    union weft_cu_word_op op = {.operation = WEFT_CU_OP_WRITE_32,
                                .address = (weft_cu_address)word,
                                .value = (uint32_t)value,
                                .flags = WEFT_CU_WRITE_ORDERED};
    return weft_cuda_check(weft_cuda.cuStreamBatchMemOp(stream, 1, &op, 0), "cuStreamBatchMemOp");
}

int weft_gpu_wait32(const struct weft_gpu_word32 *word, int cmp, shmemx_number_t value,
                    weft_cu_stream stream) {
    uint32_t rest_ns = weft_gpu_rest_ns(word->words);
    void *arguments[] = {(void *)word, &cmp, &value, &rest_ns, NULL};
    return weft_gpu_launch(WEFT_KERNEL_weftk_wait32, 1, 1, stream, arguments);
}
