/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/on_stream_fold.h"
#include "device/device.h"

/* The kernels, by operation and number; 0, which is weftk_copy, if there is none for the pair. */
#define KERNEL_OF(X, family, op, number, OP, NUMBER) \
    [WEFT_FOLD_##OP][WEFT_NUMBER_##NUMBER] = WEFT_KERNEL_##family##_##op##_##number,
static const enum weft_gpu_kernel kernels[WEFT_FOLD_OPS][WEFT_NUMBERS] = {
    WEFT_GPU_FOLDS(KERNEL_OF, , weftk_fold)};
#undef KERNEL_OF

/* If signed and unsigned integers give the same bits, only the unsigned ones have a kernel. */
static enum weft_gpu_kernel kernel_of(int op, enum weft_number number) {
    return kernels[op][kernels[op][number] ? number : weft_number_unsigned(number)];
}

/* Returns a number of blocks with one vector for each thread, at most as many as help. */
static unsigned block_count(const struct weft_gpu_channels *channels, size_t bytes) {
    size_t vectors = bytes / 16 + 1, blocks = (vectors + WEFT_FOLD_THREADS - 1) / WEFT_FOLD_THREADS;
    size_t most = channels ? channels->blocks_max : 2 * (size_t)weft_device.gpu->sms;
    return (unsigned)(blocks < most ? blocks : most);
}

int weft_fold_launch(const struct weft_gpu_channels *channels, const struct weft_fold_task *task,
                     size_t most, weft_cu_stream stream) {
    struct weft_gpu_channels nobody = {.n = 0};
    void *arguments[] = {channels ? (void *)channels : &nobody, (void *)task, NULL};
    size_t nelems = channels ? most : task->nelems;
    if (nelems == 0)
        return 0;
    size_t bytes = nelems * weft_folds[task->op][task->number].elem_bytes;
    return weft_gpu_launch(kernel_of(task->op, (enum weft_number)task->number),
                           block_count(channels, bytes), WEFT_FOLD_THREADS, stream, arguments);
}
