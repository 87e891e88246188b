/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of the kernels on words, and the meeting, which needs none. */
#include "transport/gpu_word.h"
#include <assert.h>
#include <errno.h>
#include "transport/gpu_kernel.h"
#include "transport/gpu_rescue.h"

enum {
    BLOCK_MAX = 1024,
    BATCH_MAX = 128, /* the driver takes fewer than 256 operations at once */
};

/* --- Words of users --------------------------------------------------------------------------- */

int weft_gpu_amo(const struct weft_amo *amo, weft_cu_stream stream) {
    assert(amo->bytes == 4 || amo->bytes == 8);
    void *arguments[] = {(void *)amo, NULL};
    return weft_gpu_launch(WEFT_KERNEL_weftk_amo, 1, 1, stream, arguments);
}

int weft_gpu_signal(uint64_t *word, uint64_t value, bool add, weft_cu_stream stream) {
    int adds = add;
    void *arguments[] = {&word, &value, &adds, NULL};
    return weft_gpu_launch(WEFT_KERNEL_weftk_signal, 1, 1, stream, arguments);
}

int weft_gpu_try_atomics(struct weft_gpu_trial *trial, bool owner, weft_cu_stream stream) {
    int owns = owner;
    void *arguments[] = {&trial, &owns, NULL};
    return weft_gpu_launch(WEFT_KERNEL_weftk_try_atomics, 1, owner ? WEFT_GPU_WARP : 1, stream,
                           arguments);
}

int weft_gpu_put_signal(const struct weft_put_signal *put, weft_cu_stream stream) {
    assert(put->bytes <= WEFT_GPU_SMALL);
    void *arguments[] = {(void *)put, NULL};
    return weft_gpu_launch(WEFT_KERNEL_weftk_put_signal, 1,
                           weft_gpu_warps(put->bytes / 16, BLOCK_MAX / 2), stream, arguments);
}

int weft_gpu_wait(const uint64_t *word, int cmp, uint64_t value, weft_cu_stream stream) {
    weft_gpu_rescue_note();
    void *arguments[] = {&word, &cmp, &value, NULL};
    return weft_gpu_launch(WEFT_KERNEL_weftk_wait, 1, 1, stream, arguments);
}

/* --- Teams ------------------------------------------------------------------------------------ */

int weft_gpu_barrier(struct weft_array words, int me, int n, weft_cu_stream stream) {
    weft_gpu_rescue_note();
    void *arguments[] = {&words, &me, &n, NULL};
    return weft_gpu_launch(WEFT_KERNEL_weftk_barrier, 1, weft_gpu_warps((size_t)n, BLOCK_MAX),
                           stream, arguments);
}

/* Operation `i` of a meeting: first all peers are told, then all are waited for, and at last what
 * they wrote is taken back. A peer writes the word again only behind the other half, which this
 * member begins behind the reset. */
static union weft_cu_word_op meeting_op(uint32_t *const *words, int me, int n, int i) {
    int phase = i / (n - 1), peer = i % (n - 1);
    peer += peer >= me;
    union weft_cu_word_op op = {.address = (uintptr_t)&words[me][peer]};
    switch (phase) {
    case 0:
        op.operation = WEFT_CU_OP_WRITE_32;
        op.address = (uintptr_t)&words[peer][me];
        op.value = 1;
        break;
    case 1:
        op.operation = WEFT_CU_OP_WAIT_32;
        op.value = 1;
        op.flags = WEFT_CU_WAIT_EQ;
        break;
    default:
        op.operation = WEFT_CU_OP_WRITE_32;
    }
    return op;
}

int weft_gpu_meet(uint32_t *const *words, int me, int n, weft_cu_stream stream) {
    union weft_cu_word_op ops[BATCH_MAX];
    weft_gpu_rescue_note();
    for (int i = 0, count; i < 3 * (n - 1); i += count) {
        for (count = 0; count < BATCH_MAX && i + count < 3 * (n - 1); count++)
            ops[count] = meeting_op(words, me, n, i + count);
        int error = weft_cuda.cuStreamBatchMemOp(stream, (unsigned)count, ops, 0);
        if (error != WEFT_CU_SUCCESS)
            return weft_cuda_check(error, "cuStreamBatchMemOp");
    }
    return 0;
}

/* --- Signal pads ------------------------------------------------------------------------------ */

int weft_gpu_pad(enum weft_pad_op op, const struct weft_pad *pad, int peer, weft_cu_stream stream) {
    static const enum weft_gpu_kernel kernels[] = {
        [WEFT_PAD_PUT] = WEFT_KERNEL_weftk_pad_put,
        [WEFT_PAD_WAIT] = WEFT_KERNEL_weftk_pad_wait,
        [WEFT_PAD_BARRIER] = WEFT_KERNEL_weftk_pad_barrier,
    };
    bool all = op == WEFT_PAD_BARRIER;
    weft_gpu_rescue_note();
    void *arguments[] = {(void *)pad, all ? NULL : &peer, NULL};
    return weft_gpu_launch(kernels[op], 1, all ? weft_gpu_warps((size_t)pad->n, BLOCK_MAX) : 1,
                           stream, arguments);
}
