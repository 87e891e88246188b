/* SPDX-License-Identifier: BSD-3-Clause */
/* A library that is built without GPU support (make WITHOUT_GPU=1) contains this file instead of
 * the rooms and files that use GPUs: every call in the order of a stream returns -ENOSYS. Other
 * calls find no table of functions for GPU memory (job/space.h), and return the same error. */
#include <shmemx.h>
#include "coll/on_stream.h"
#include "fused/fused.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define ANSWER(NAME, ...)            \
    int NAME(__VA_ARGS__) {          \
        WEFT_IN_CALL(__func__);      \
        return weft_space_missing(); \
    }

void weft_device_register(void) {}

/* --- Put, get, signals ------------------------------------------------------------------------ */

ANSWER(shmemx_putmem_on_stream, void *dest, const void *source, size_t nelems, int pe,
       shmemx_stream_t stream)
ANSWER(shmemx_getmem_on_stream, void *dest, const void *source, size_t nelems, int pe,
       shmemx_stream_t stream)
ANSWER(shmemx_putmem_signal_on_stream, void *dest, const void *source, size_t nelems,
       uint64_t *sig_addr, uint64_t signal, int sig_op, int pe, shmemx_stream_t stream)
ANSWER(shmemx_signal_op_on_stream, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe,
       shmemx_stream_t stream)
ANSWER(shmemx_signal_wait_until_on_stream, uint64_t *sig_addr, int cmp, uint64_t cmp_value,
       shmemx_stream_t stream)
ANSWER(shmemx_quiet_on_stream, shmemx_stream_t stream)
ANSWER(shmemx_fence_on_stream, shmemx_stream_t stream)

ANSWER(shmemx_put_slice_on_stream, const shmemx_slice_t *dest, const shmemx_slice_t *source,
       shmemx_number_t nelems, size_t elem_bytes, int pe, shmemx_stream_t stream)
ANSWER(shmemx_get_slice_on_stream, const shmemx_slice_t *dest, const shmemx_slice_t *source,
       shmemx_number_t nelems, size_t elem_bytes, int pe, shmemx_stream_t stream)
ANSWER(shmemx_put_slice_signal_on_stream, const shmemx_slice_t *dest, const shmemx_slice_t *source,
       shmemx_number_t nelems, size_t elem_bytes, const shmemx_slice_t *signals,
       shmemx_number_t signal, int sig_op, int pe, shmemx_stream_t stream)
ANSWER(shmemx_int32_signal_op_on_stream, const shmemx_slice_t *signals, shmemx_number_t signal,
       int sig_op, int pe, shmemx_stream_t stream)
ANSWER(shmemx_int32_signal_wait_until_on_stream, const shmemx_slice_t *signals, int cmp,
       shmemx_number_t cmp_value, shmemx_stream_t stream)

/* --- Teams ------------------------------------------------------------------------------------ */

ANSWER(shmemx_barrier_on_stream, shmem_team_t team, shmemx_stream_t stream)
ANSWER(shmemx_barrier_all_on_stream, shmemx_stream_t stream)
ANSWER(shmemx_sync_on_stream, shmem_team_t team, shmemx_stream_t stream)
ANSWER(shmemx_broadcastmem_on_stream, shmem_team_t team, void *dest, const void *source,
       size_t nelems, int PE_root, shmemx_stream_t stream)
ANSWER(shmemx_fcollectmem_on_stream, shmem_team_t team, void *dest, const void *source,
       size_t nelems, shmemx_stream_t stream)
ANSWER(shmemx_alltoallmem_on_stream, shmem_team_t team, void *dest, const void *source,
       size_t nelems, shmemx_stream_t stream)

/* clang-format off */
#define REDUCE(N, T, OP)                                                                           \
    ANSWER(shmemx_##N##_##OP##_reduce_on_stream, shmem_team_t team, T *dest, const T *source,      \
           size_t nreduce, shmemx_stream_t stream)                                                 \
    ANSWER(shmemx_##N##_##OP##_reducescatter_on_stream, shmem_team_t team, T *dest,                \
           const T *source, size_t nreduce, shmemx_stream_t stream)
#define BITWISE(N, T, _)    REDUCE(N, T, and) REDUCE(N, T, or) REDUCE(N, T, xor)
#define ORDERED(N, T, _)    REDUCE(N, T, max) REDUCE(N, T, min)
#define ARITHMETIC(N, T, _) REDUCE(N, T, sum) REDUCE(N, T, prod)
SHMEM_BITWISE_TYPES(BITWISE, _)
SHMEM_RMA_TYPES(ORDERED, _)
SHMEM_ARITHMETIC_TYPES(ARITHMETIC, _)
/* clang-format on */

/* --- Vectors ---------------------------------------------------------------------------------- */

/* The operators ask this one first. */
int weft_on_stream_enter(struct weft_on_stream *on, shmem_team_t team) {
    return weft_space_missing();
}

int weft_on_stream_end(const struct weft_on_stream *on, int result) {
    return result;
}

int weft_on_stream_copy(const struct weft_on_stream *on, const struct weft_plan *plan, void *dest,
                        const void *source) {
    return weft_space_missing();
}

int weft_on_stream_fold(const struct weft_on_stream *on, void *dest, const void *source,
                        const struct weft_stream_folding *folding) {
    return weft_space_missing();
}

int weft_on_stream_norm(const struct weft_on_stream *on, const void *source,
                        const weft_norm *norm) {
    return weft_space_missing();
}

int weft_on_stream_reserve(const struct weft_team *team) {
    return 0;
}

/* --- Products --------------------------------------------------------------------------------- */

int weft_product_begin(void) {
    return weft_space_missing();
}

bool weft_fused_reaches(const weft_matrix *m) {
    return false;
}

int weft_fused_all_gather(const struct weft_on_stream *on, const struct weft_fused_gather *g) {
    return weft_space_missing();
}

int weft_fused_reduce_scatter(const struct weft_on_stream *on,
                              const struct weft_fused_reduction *r) {
    return weft_space_missing();
}

int weft_fused_all_reduce(const struct weft_on_stream *on, const struct weft_fused_reduction *r) {
    return weft_space_missing();
}

/* --- Mixtures of experts ---------------------------------------------------------------------- */

int weft_fused_dispatch(const struct weft_on_stream *on, const struct weft_fused_experts *e) {
    return weft_space_missing();
}

int weft_fused_combine(const struct weft_on_stream *on, const struct weft_fused_experts *e) {
    return weft_space_missing();
}

/* --- Rows and blocks ---------------------------------------------------------------------------
 */

int weft_fused_exchange_rows(const struct weft_on_stream *on,
                             const struct weft_fused_rows_exchange *exchange) {
    return weft_space_missing();
}

int weft_fused_kv_shuffle(const struct weft_on_stream *on, const struct weft_fused_kv *kv) {
    return weft_space_missing();
}

/* --- The GPU ---------------------------------------------------------------------------------- */

ANSWER(shmemx_device, int *device)
ANSWER(shmemx_set_engine, shmemx_engine_t engine)

shmemx_engine_t shmemx_get_engine(void) {
    return SHMEMX_ENGINE_AUTO;
}
