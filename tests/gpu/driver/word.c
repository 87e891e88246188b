/* SPDX-License-Identifier: BSD-3-Clause */
/* Stream memory operations: waits for words and writes of words, in batches. They may access memory
 * of other processes' GPUs, so a wait polls. A write without a fence is made as late as possible:
 * before the stream's next write with one, before it has to wait, and before a kernel or the end of
 * its work; of several such writes, the last one first. */
#include "space.h"
#include "stream.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH_MAX = 256, WAIT_FLAGS = 3, LOOKS_BEFORE_SLEEP = 200, SLEEP_US = 50 };

struct batch {
    struct work work;
    unsigned count;
    union weft_cu_word_op ops[];
};

static bool is_wait(int operation) {
    return operation == WEFT_CU_OP_WAIT_32 || operation == WEFT_CU_OP_WAIT_64;
}

static size_t width(int operation) {
    return operation == WEFT_CU_OP_WAIT_64 || operation == WEFT_CU_OP_WRITE_64 ? 8 : 4;
}

/* --- Running -----------------------------------------------------------------------------------
 */

static bool compares(uint64_t word, const union weft_cu_word_op *op) {
    bool wide = width(op->operation) == 8;
    uint64_t value = wide ? op->value64 : op->value;
    switch (op->flags) {
    case WEFT_CU_WAIT_GEQ:
        return wide ? (int64_t)(word - value) >= 0 : (int32_t)(uint32_t)(word - value) >= 0;
    case WEFT_CU_WAIT_EQ:
        return word == value;
    case 2:
        return (word & value) != 0; /* CU_STREAM_WAIT_VALUE_AND */
    default:
        return (uint64_t)(~(word | value) << (wide ? 0 : 32)) != 0; /* _NOR */
    }
}

static uint64_t look(const void *word, size_t bytes) {
    return bytes == 8 ? __atomic_load_n((const uint64_t *)word, __ATOMIC_ACQUIRE)
                      : __atomic_load_n((const uint32_t *)word, __ATOMIC_ACQUIRE);
}

/* Until it compares, or the context has failed. */
static void await(const void *word, const union weft_cu_word_op *op, const int *failed) {
    for (unsigned looks = 0; !compares(look(word, width(op->operation)), op); looks++) {
        if (__atomic_load_n(failed, __ATOMIC_RELAXED))
            return;
        if (looks < LOOKS_BEFORE_SLEEP)
            sched_yield();
        else
            usleep(SLEEP_US);
    }
}

static void put(void *word, const union weft_cu_word_op *op) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (width(op->operation) == 8)
        __atomic_store_n((uint64_t *)word, op->value64, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint32_t *)word, op->value, __ATOMIC_RELEASE);
}

static int make_op(const union weft_cu_word_op *op, struct CUstream_st *stream) {
    struct piece piece;
    pthread_mutex_lock(&driver_lock);
    int error = space_piece(op->address, width(op->operation), stream->context->gpu, &piece);
    pthread_mutex_unlock(&driver_lock);
    if (error)
        return error;
    if (is_wait(op->operation))
        await(piece.at, op, &stream->context->failed);
    else
        put(piece.at, op);
    pthread_mutex_lock(&driver_lock);
    space_piece_drop(&piece);
    pthread_mutex_unlock(&driver_lock);
    return 0;
}

/* --- Without a fence ---------------------------------------------------------------------------
 */

struct unordered {
    unsigned count;
    union weft_cu_word_op ops[BATCH_MAX];
};

static int settle(struct CUstream_st *stream) {
    struct unordered *unordered = stream->unordered;
    int error = 0;
    stream->unordered = NULL;
    for (unsigned i = unordered->count; i-- > 0 && !error;) {
        error = make_op(&unordered->ops[i], stream);
        stream_dither(stream);
    }
    free(unordered);
    return error;
}

static int put_off(const union weft_cu_word_op *op, struct CUstream_st *stream) {
    if (stream->unordered && stream->unordered->count == BATCH_MAX) {
        int error = settle(stream);
        if (error)
            return error;
    }
    if (!stream->unordered) {
        stream->unordered = calloc(1, sizeof *stream->unordered);
        stream->settle = settle;
    }
    stream->unordered->ops[stream->unordered->count++] = *op;
    return 0;
}

static int run_op(const union weft_cu_word_op *op, struct CUstream_st *stream) {
    if (!is_wait(op->operation) && op->flags == WEFT_CU_WRITE_UNORDERED)
        return put_off(op, stream);
    int error = stream->unordered ? settle(stream) : 0;
    return error ? error : make_op(op, stream);
}

static int run_batch(struct work *work, struct CUstream_st *stream) {
    struct batch *batch = (struct batch *)work;
    int error = 0;
    for (unsigned i = 0; i < batch->count && !error; i++) {
        error = run_op(&batch->ops[i], stream);
        stream_dither(stream);
    }
    return error;
}

/* --- Calling -----------------------------------------------------------------------------------
 */

static bool proper(const union weft_cu_word_op *op, int gpu) {
    switch (op->operation) {
    case WEFT_CU_OP_WAIT_32:
    case WEFT_CU_OP_WAIT_64:
        if (op->flags & ~(unsigned)WAIT_FLAGS)
            return false;
        break;
    case WEFT_CU_OP_WRITE_32:
    case WEFT_CU_OP_WRITE_64:
        if (op->flags > (unsigned)!call_setting("WEFT_FAKE_FENCED_WRITES", 0))
            return false;
        break;
    default:
        return false;
    }
    size_t bytes = width(op->operation);
    return op->address % bytes == 0 && space_reaches(op->address, bytes, gpu);
}

static int check_and_enqueue(struct CUstream_st *stream, unsigned count,
                             const union weft_cu_word_op *ops) {
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!count || count > BATCH_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        if (!proper(&ops[i], stream->context->gpu))
            return CUDA_ERROR_INVALID_VALUE;
    struct batch *batch = work_new(sizeof *batch + count * sizeof *ops, run_batch, NULL);
    batch->count = count;
    batch->work.passes_writes = true;
    memcpy(batch->ops, ops, count * sizeof *ops);
    return stream_enqueue(stream, &batch->work);
}

int cuStreamBatchMemOp(weft_cu_stream stream, unsigned count, union weft_cu_word_op *ops,
                       unsigned flags) {
    CALL(CONTEXT,
         flags ? CUDA_ERROR_INVALID_VALUE : check_and_enqueue(stream_of(stream), count, ops));
}

int cuStreamWriteValue32(weft_cu_stream stream, weft_cu_address word, uint32_t value,
                         unsigned flags) {
    union weft_cu_word_op op = {{WEFT_CU_OP_WRITE_32, word, {value}, flags, 0}};
    CALL(CONTEXT, check_and_enqueue(stream_of(stream), 1, &op));
}

int cuStreamWaitValue32(weft_cu_stream stream, weft_cu_address word, uint32_t value,
                        unsigned flags) {
    union weft_cu_word_op op = {{WEFT_CU_OP_WAIT_32, word, {value}, flags, 0}};
    CALL(CONTEXT, check_and_enqueue(stream_of(stream), 1, &op));
}
