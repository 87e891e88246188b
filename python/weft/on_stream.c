/* SPDX-License-Identifier: BSD-3-Clause */
/* Which call on streams is meant by a type and an operation. */
#include "on_stream.h"
#include <errno.h>

static shmemx_stream_t stream_of(const struct weft_vectors *vectors) {
    return (shmemx_stream_t)vectors->on.stream;
}

/* --- Moves ----------------------------------------------------------------------------------- */

int weft_on_stream_all_gather(const struct weft_vectors *v) {
    return shmemx_fcollectmem_on_stream(v->on.team, v->dest.data, v->source.data, v->source.bytes,
                                        stream_of(v));
}

int weft_on_stream_all_to_all(const struct weft_vectors *v) {
    return shmemx_alltoallmem_on_stream(v->on.team, v->dest.data, v->source.data,
                                        v->source.bytes / (size_t)v->on.size, stream_of(v));
}

int weft_on_stream_broadcast(const struct weft_vectors *v) {
    return shmemx_broadcastmem_on_stream(v->on.team, v->dest.data, v->source.data, v->dest.bytes,
                                         v->root, stream_of(v));
}

/* --- Reductions ------------------------------------------------------------------------------ */

/* clang-format off */
#define TYPES(X)                                                                                   \
    X(WEFT_F32, float, float)    X(WEFT_F64, double, double)                                       \
    X(WEFT_I8, int8, int8_t)     X(WEFT_I16, int16, int16_t)                                       \
    X(WEFT_I32, int32, int32_t)  X(WEFT_I64, int64, int64_t)                                       \
    X(WEFT_U8, uint8, uint8_t)   X(WEFT_U16, uint16, uint16_t)                                     \
    X(WEFT_U32, uint32, uint32_t) X(WEFT_U64, uint64, uint64_t)
/* clang-format on */

/* One function for a type: VERB is reduce or reducescatter. */
#define CALL(N, T, OP, VERB)                \
    shmemx_##N##_##OP##_##VERB##_on_stream( \
        v->on.team, (T *)v->dest.data, (const T *)v->source.data, v->dest.nelems, stream_of(v))
#define REDUCE(ROW, N, T, VERB)                           \
    static int VERB##_##N(const struct weft_vectors *v) { \
        switch (v->on.op) {                               \
        case WEFT_SUM:                                    \
            return CALL(N, T, sum, VERB);                 \
        case WEFT_MAX:                                    \
            return CALL(N, T, max, VERB);                 \
        case WEFT_MIN:                                    \
            return CALL(N, T, min, VERB);                 \
        case WEFT_PROD:                                   \
            return CALL(N, T, prod, VERB);                \
        default:                                          \
            return -ENOTSUP;                              \
        }                                                 \
    }
#define BOTH(ROW, N, T) REDUCE(ROW, N, T, reduce) REDUCE(ROW, N, T, reducescatter)
TYPES(BOTH)

static const struct {
    int (*reduce)(const struct weft_vectors *), (*scatter)(const struct weft_vectors *);
} calls[] = {
#define ROW(ROW, N, T) [ROW] = {reduce_##N, reducescatter_##N},
    TYPES(ROW)};

bool weft_on_stream_check(const struct weft_vectors *v) {
    size_t type = v->source.dtype->operand;
    if (v->on.stream == WEFT_STREAM_HOST)
        return true;
    if (v->on.op != WEFT_AVG && type < sizeof calls / sizeof *calls && calls[type].reduce)
        return true;
    PyErr_Format(PyExc_NotImplementedError,
                 "%s: on a stream, integers, float32 and float64 are reduced by sum, max, min and "
                 "prod, and not %s%s",
                 v->on.call, v->source.dtype->name, v->on.op == WEFT_AVG ? " by avg" : "");
    return false;
}

int weft_on_stream_all_reduce(const struct weft_vectors *v) {
    return calls[v->source.dtype->operand].reduce(v);
}

int weft_on_stream_reduce_scatter(const struct weft_vectors *v) {
    return calls[v->source.dtype->operand].scatter(v);
}
