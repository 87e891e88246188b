/* SPDX-License-Identifier: BSD-3-Clause */
/* NVSHMEM's calls on a CUDA stream. A call without a result ends the job if it fails, as NVSHMEM's
 * does. */
#ifndef WEFT_NVSHMEM_STREAM_H
#define WEFT_NVSHMEM_STREAM_H

#include "weft/nvshmem/host/job.h"

#define WEFT_NVSHMEM_STREAM shmemx_stream_t stream

/* Ends the job if a call has failed. */
WEFT_NVSHMEM_INLINE void weft_nvshmem_must(const char *call, int error) {
    if (error < 0) {
        weft_nvshmem_fail(call, weft_last_error(), error);
        shmem_global_exit(1);
    }
}

/* --- Puts, gets and signals ------------------------------------------------------------------- */

#define WEFT_NVSHMEM_COPY(name, T, size, made)                                     \
    WEFT_NVSHMEM_INLINE void name(T *dest, const T *source, size_t nelems, int pe, \
                                  WEFT_NVSHMEM_STREAM) {                           \
        weft_nvshmem_must(#name, made(dest, source, nelems *(size), pe, stream));  \
    }
#define WEFT_NVSHMEM_COPIES(before, behind, T, size)                           \
    WEFT_NVSHMEM_COPY(nvshmemx_##before##put##behind##_on_stream, T, size,     \
                      shmemx_putmem_on_stream)                                 \
    WEFT_NVSHMEM_COPY(nvshmemx_##before##get##behind##_on_stream, T, size,     \
                      shmemx_getmem_on_stream)                                 \
    WEFT_NVSHMEM_COPY(nvshmemx_##before##put##behind##_nbi_on_stream, T, size, \
                      shmemx_putmem_on_stream)                                 \
    WEFT_NVSHMEM_COPY(nvshmemx_##before##get##behind##_nbi_on_stream, T, size, \
                      shmemx_getmem_on_stream)
#define WEFT_NVSHMEM_COPIES_OF(N, T, _) WEFT_NVSHMEM_COPIES(N##_, , T, sizeof(T))
WEFT_NVSHMEM_COPIES(, mem, void, 1)
WEFT_NVSHMEM_RMA_TYPES(WEFT_NVSHMEM_COPIES_OF, _)
#undef WEFT_NVSHMEM_COPIES_OF
#undef WEFT_NVSHMEM_COPIES
#undef WEFT_NVSHMEM_COPY

WEFT_NVSHMEM_INLINE void nvshmemx_putmem_signal_on_stream(void *dest, const void *source,
                                                          size_t bytes, uint64_t *sig_addr,
                                                          uint64_t signal, int sig_op, int pe,
                                                          WEFT_NVSHMEM_STREAM) {
    weft_nvshmem_must("nvshmemx_putmem_signal_on_stream",
                      shmemx_putmem_signal_on_stream(dest, source, bytes, sig_addr, signal,
                                                     weft_nvshmem_signal_op(sig_op), pe, stream));
}
WEFT_NVSHMEM_INLINE void nvshmemx_putmem_signal_nbi_on_stream(void *dest, const void *source,
                                                              size_t bytes, uint64_t *sig_addr,
                                                              uint64_t signal, int sig_op, int pe,
                                                              WEFT_NVSHMEM_STREAM) {
    nvshmemx_putmem_signal_on_stream(dest, source, bytes, sig_addr, signal, sig_op, pe, stream);
}
WEFT_NVSHMEM_INLINE void nvshmemx_signal_op_on_stream(uint64_t *sig_addr, uint64_t signal,
                                                      int sig_op, int pe, WEFT_NVSHMEM_STREAM) {
    weft_nvshmem_must(
        "nvshmemx_signal_op_on_stream",
        shmemx_signal_op_on_stream(sig_addr, signal, weft_nvshmem_signal_op(sig_op), pe, stream));
}
WEFT_NVSHMEM_INLINE void nvshmemx_signal_wait_until_on_stream(uint64_t *sig_addr, int cmp,
                                                              uint64_t cmp_value,
                                                              WEFT_NVSHMEM_STREAM) {
    weft_nvshmem_must(
        "nvshmemx_signal_wait_until_on_stream",
        shmemx_signal_wait_until_on_stream(sig_addr, weft_nvshmem_cmp(cmp), cmp_value, stream));
}

/* --- Ordering and barriers -------------------------------------------------------------------- */

WEFT_NVSHMEM_INLINE void nvshmemx_quiet_on_stream(WEFT_NVSHMEM_STREAM) {
    weft_nvshmem_must("nvshmemx_quiet_on_stream", shmemx_quiet_on_stream(stream));
}
WEFT_NVSHMEM_INLINE int nvshmemx_barrier_on_stream(nvshmem_team_t team, WEFT_NVSHMEM_STREAM) {
    return shmemx_barrier_on_stream(weft_nvshmem_host_team(team), stream);
}
WEFT_NVSHMEM_INLINE int nvshmemx_sync_on_stream(nvshmem_team_t team, WEFT_NVSHMEM_STREAM) {
    return shmemx_sync_on_stream(weft_nvshmem_host_team(team), stream);
}
WEFT_NVSHMEM_INLINE int nvshmemx_team_sync_on_stream(nvshmem_team_t team, WEFT_NVSHMEM_STREAM) {
    return nvshmemx_sync_on_stream(team, stream);
}
WEFT_NVSHMEM_INLINE void nvshmemx_barrier_all_on_stream(WEFT_NVSHMEM_STREAM) {
    weft_nvshmem_must("nvshmemx_barrier_all_on_stream", shmemx_barrier_all_on_stream(stream));
}
WEFT_NVSHMEM_INLINE void nvshmemx_sync_all_on_stream(WEFT_NVSHMEM_STREAM) {
    weft_nvshmem_must("nvshmemx_sync_all_on_stream",
                      shmemx_sync_on_stream(SHMEM_TEAM_WORLD, stream));
}

/* --- Collectives: 0, or a negative errno ------------------------------------------------------ */

#define WEFT_NVSHMEM_MOVES(before, behind, T, size)                                          \
    WEFT_NVSHMEM_INLINE int nvshmemx_##before##broadcast##behind##_on_stream(                \
        nvshmem_team_t team, T *dest, const T *source, size_t nelems, int root,              \
        WEFT_NVSHMEM_STREAM) {                                                               \
        return shmemx_broadcastmem_on_stream(weft_nvshmem_host_team(team), dest, source,     \
                                             nelems * (size), root, stream);                 \
    }                                                                                        \
    WEFT_NVSHMEM_INLINE int nvshmemx_##before##fcollect##behind##_on_stream(                 \
        nvshmem_team_t team, T *dest, const T *source, size_t nelems, WEFT_NVSHMEM_STREAM) { \
        return shmemx_fcollectmem_on_stream(weft_nvshmem_host_team(team), dest, source,      \
                                            nelems * (size), stream);                        \
    }                                                                                        \
    WEFT_NVSHMEM_INLINE int nvshmemx_##before##alltoall##behind##_on_stream(                 \
        nvshmem_team_t team, T *dest, const T *source, size_t nelems, WEFT_NVSHMEM_STREAM) { \
        return shmemx_alltoallmem_on_stream(weft_nvshmem_host_team(team), dest, source,      \
                                            nelems * (size), stream);                        \
    }
#define WEFT_NVSHMEM_MOVES_OF(N, T, _) WEFT_NVSHMEM_MOVES(N##_, , T, sizeof(T))
WEFT_NVSHMEM_MOVES(, mem, void, 1)
WEFT_NVSHMEM_RMA_TYPES(WEFT_NVSHMEM_MOVES_OF, _)
#undef WEFT_NVSHMEM_MOVES_OF
#undef WEFT_NVSHMEM_MOVES

#define WEFT_NVSHMEM_REDUCE(N, T, op)                                                           \
    WEFT_NVSHMEM_INLINE int nvshmemx_##N##_##op##_reduce_on_stream(                             \
        nvshmem_team_t team, T *dest, const T *source, size_t nreduce, WEFT_NVSHMEM_STREAM) {   \
        return shmemx_##N##_##op##_reduce_on_stream(weft_nvshmem_host_team(team), dest, source, \
                                                    nreduce, stream);                           \
    }                                                                                           \
    WEFT_NVSHMEM_INLINE int nvshmemx_##N##_##op##_reducescatter_on_stream(                      \
        nvshmem_team_t team, T *dest, const T *source, size_t nreduce, WEFT_NVSHMEM_STREAM) {   \
        return shmemx_##N##_##op##_reducescatter_on_stream(weft_nvshmem_host_team(team), dest,  \
                                                           source, nreduce, stream);            \
    }
WEFT_NVSHMEM_STANDARD_TYPES(WEFT_NVSHMEM_REDUCE, sum)
WEFT_NVSHMEM_STANDARD_TYPES(WEFT_NVSHMEM_REDUCE, prod)
WEFT_NVSHMEM_STANDARD_TYPES(WEFT_NVSHMEM_REDUCE, max)
WEFT_NVSHMEM_STANDARD_TYPES(WEFT_NVSHMEM_REDUCE, min)
SHMEM_BITWISE_TYPES(WEFT_NVSHMEM_REDUCE, and)
SHMEM_BITWISE_TYPES(WEFT_NVSHMEM_REDUCE, or)
SHMEM_BITWISE_TYPES(WEFT_NVSHMEM_REDUCE, xor)
#undef WEFT_NVSHMEM_REDUCE

/* Reductions of 16-bit floating point, which the standard does not have. */
#define WEFT_NVSHMEM_HALF(N, T, dtype, op, OP)                                                     \
    WEFT_NVSHMEM_INLINE int nvshmemx_##N##_##op##_reduce_on_stream(                                \
        nvshmem_team_t team, T *dest, const T *source, size_t nreduce, WEFT_NVSHMEM_STREAM) {      \
        return weft_all_reduce(weft_nvshmem_host_team(team), dest, source, nreduce, dtype, OP,     \
                               (weft_stream)stream);                                               \
    }                                                                                              \
    WEFT_NVSHMEM_INLINE int nvshmemx_##N##_##op##_reducescatter_on_stream(                         \
        nvshmem_team_t team, T *dest, const T *source, size_t nreduce, WEFT_NVSHMEM_STREAM) {      \
        return weft_reduce_scatter(weft_nvshmem_host_team(team), dest, source, nreduce, dtype, OP, \
                                   (weft_stream)stream);                                           \
    }
#define WEFT_NVSHMEM_HALF_OPS(N, T, dtype)          \
    WEFT_NVSHMEM_HALF(N, T, dtype, sum, WEFT_SUM)   \
    WEFT_NVSHMEM_HALF(N, T, dtype, prod, WEFT_PROD) \
    WEFT_NVSHMEM_HALF(N, T, dtype, max, WEFT_MAX)   \
    WEFT_NVSHMEM_HALF(N, T, dtype, min, WEFT_MIN)
#ifdef WEFT_NVSHMEM_HAS_CUDA
WEFT_NVSHMEM_HALF_OPS(half, half, WEFT_F16)
WEFT_NVSHMEM_HALF_OPS(bfloat16, __nv_bfloat16, WEFT_BF16)
#endif
#undef WEFT_NVSHMEM_HALF_OPS
#undef WEFT_NVSHMEM_HALF

#endif
