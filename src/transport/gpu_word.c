/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches the kernels on words, and enqueues meetings as stream memory operations, without a
 * kernel. */
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

uint32_t weft_gpu_rest_ns(const void *word) {
    return weft_gpu_memory_kind(word) == WEFT_MEMORY_DEVICE ? 0 : WEFT_GPU_REST_NS;
}

int weft_gpu_wait(const uint64_t *word, int cmp, uint64_t value, weft_cu_stream stream) {
    uint32_t rest_ns = weft_gpu_rest_ns(word);
    void *arguments[] = {&word, &cmp, &value, &rest_ns, NULL};
    return weft_gpu_launch(WEFT_KERNEL_weftk_wait, 1, 1, stream, arguments);
}

/* --- Teams ------------------------------------------------------------------------------------ */

int weft_gpu_barrier(struct weft_array words, int me, int n, struct weft_gpu_call call,
                     weft_cu_stream stream) {
    void *arguments[] = {&words, &me, &n, &call, NULL};
    return weft_gpu_launch(WEFT_KERNEL_weftk_barrier, 1, weft_gpu_warps((size_t)n, BLOCK_MAX),
                           stream, arguments);
}

int weft_gpu_meet_by_kernel(struct weft_array words, int me, int n, struct weft_gpu_call call,
                            weft_cu_stream stream) {
    void *arguments[] = {&words, &me, &n, &call, NULL};
    return weft_gpu_launch(WEFT_KERNEL_weftk_meet, 1, weft_gpu_warps((size_t)n, BLOCK_MAX), stream,
                           arguments);
}

int weft_gpu_mark_call(struct weft_gpu_call call, bool begins, weft_cu_stream stream) {
    void *arguments[] = {&call, NULL};
    return weft_gpu_launch(begins ? WEFT_KERNEL_weftk_call_begin : WEFT_KERNEL_weftk_call_end, 1, 1,
                           stream, arguments);
}

/* --- Meetings without a kernel ---------------------------------------------------------------- */

/* Operations that are sent to a stream in batches. */
struct batch {
    weft_cu_stream stream;
    unsigned count;
    union weft_cu_word_op ops[BATCH_MAX];
};

static int batch_send(struct batch *batch) {
    unsigned count = batch->count;
    if (count == 0)
        return 0;
    batch->count = 0;
    return weft_cuda_check(weft_cuda.cuStreamBatchMemOp(batch->stream, count, batch->ops, 0),
                           "cuStreamBatchMemOp");
}

static int batch_add(struct batch *batch, union weft_cu_word_op op) {
    int error = batch->count == BATCH_MAX ? batch_send(batch) : 0;
    batch->ops[batch->count++] = op;
    return error;
}

/* Writes 1 to all peers' words. The fence of the first write also covers the others: a write
 * without a fence may be seen before earlier writes, but not before writes that are ordered
 * already. */
static int batch_tell(struct batch *batch, uint32_t *const *words, int me, int n,
                      unsigned unordered) {
    union weft_cu_word_op op = {
        .operation = WEFT_CU_OP_WRITE_32, .value = 1, .flags = WEFT_CU_WRITE_ORDERED};
    int error = 0;
    for (int distance = 1; distance < n && error == 0; distance++) {
        op.address = (uintptr_t)&words[(me + distance) % n][me];
        error = batch_add(batch, op);
        op.flags = unordered;
    }
    return error;
}

/* The operation on each peer's word: `one` on a single word, `two` on a pair (0: never). If `own`
 * is set, this member's own word, which nobody writes, may be part of a pair. */
struct each {
    union weft_cu_word_op one, two;
    bool own;
};

static int batch_each(struct batch *batch, uint32_t *mine, int me, int n, const struct each *each) {
    int error = 0;
    for (int i = 0, step; i < n && error == 0; i += step) {
        bool two = each->two.operation && i % 2 == 0 && i + 1 < n && (each->own || i / 2 != me / 2);
        union weft_cu_word_op op = two ? each->two : each->one;
        op.address = (uintptr_t)&mine[i];
        step = two ? 2 : 1;
        if (two || i != me)
            error = batch_add(batch, op);
    }
    return error;
}

/* First all peers' words are set, then this member waits for all of its own, and finally resets
 * them. A peer sets a word again only after the other half of the meeting, which this member begins
 * after the reset with an ordered write; so the reset itself need not be ordered. */
int weft_gpu_meet(const struct weft_gpu *gpu, uint32_t *const *words, int me, int n,
                  weft_cu_stream stream) {
    unsigned unordered = gpu->unordered_writes ? WEFT_CU_WRITE_UNORDERED : WEFT_CU_WRITE_ORDERED;
    struct each wait = {.one = {{WEFT_CU_OP_WAIT_32, .value = 1, .flags = WEFT_CU_WAIT_EQ}},
                        .two = {{.value64 = (uint64_t)1 << 32 | 1, .flags = WEFT_CU_WAIT_EQ}}};
    struct each reset = {.one = {{WEFT_CU_OP_WRITE_32, .flags = unordered}},
                         .two = {{.flags = unordered}},
                         .own = true};
    struct batch batch = {.stream = stream};
    assert((uintptr_t)words[me] % sizeof(uint64_t) == 0);
    if (gpu->wide_words)
        wait.two.operation = WEFT_CU_OP_WAIT_64, reset.two.operation = WEFT_CU_OP_WRITE_64;
    weft_gpu_rescue_note();
    int error = batch_tell(&batch, words, me, n, unordered);
    error = error ? error : batch_each(&batch, words[me], me, n, &wait);
    error = error ? error : batch_each(&batch, words[me], me, n, &reset);
    return error ? error : batch_send(&batch);
}

static int graph_run(weft_cu_graph graph, weft_cu_stream stream) {
    weft_cu_graph_exec exec;
    int error = weft_cuda.cuGraphInstantiateWithFlags(&exec, graph, 0);
    if (error)
        return error;
    error = weft_cuda.cuGraphLaunch(exec, stream);
    weft_cuda.cuGraphExecDestroy(exec);
    return error;
}

/* Returns 0 if the driver accepts the operation, otherwise its error. */
static int write_captured(union weft_cu_word_op op, weft_cu_stream stream) {
    weft_cu_graph graph = NULL;
    int error = weft_cuda.cuStreamBeginCapture(stream, WEFT_CU_CAPTURE_RELAXED);
    if (error)
        return error;
    error = weft_cuda.cuStreamBatchMemOp(stream, 1, &op, 0);
    int ended = weft_cuda.cuStreamEndCapture(stream, &graph);
    error = error ? error : ended;
    error = error ? error : graph_run(graph, stream);
    if (graph)
        weft_cuda.cuGraphDestroy(graph);
    return error;
}

int weft_gpu_try_writes(struct weft_gpu *gpu, uint32_t *word) {
    union weft_cu_word_op op = {
        {WEFT_CU_OP_WRITE_32, (uintptr_t)word, .flags = WEFT_CU_WRITE_UNORDERED}};
    int refused = weft_cuda.cuStreamBatchMemOp(gpu->stream, 1, &op, 0);
    gpu->unordered_writes = refused == 0 && write_captured(op, gpu->stream) == 0;
    return weft_gpu_synchronize(gpu->stream);
}

/* --- Signal pads ------------------------------------------------------------------------------ */

int weft_gpu_pad(enum weft_pad_op op, const struct weft_pad *pad, int peer, weft_cu_stream stream) {
    static const enum weft_gpu_kernel kernels[] = {
        [WEFT_PAD_PUT] = WEFT_KERNEL_weftk_pad_put,
        [WEFT_PAD_WAIT] = WEFT_KERNEL_weftk_pad_wait,
        [WEFT_PAD_BARRIER] = WEFT_KERNEL_weftk_pad_barrier,
    };
    bool all = op == WEFT_PAD_BARRIER;
    void *arguments[] = {(void *)pad, all ? NULL : &peer, NULL};
    return weft_gpu_launch(kernels[op], 1, all ? weft_gpu_warps((size_t)pad->n, BLOCK_MAX) : 1,
                           stream, arguments);
}
