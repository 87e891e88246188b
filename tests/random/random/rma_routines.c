/* SPDX-License-Identifier: BSD-3-Clause */
#include "routines.h"

/* clang-format off */
#define CALL(NAME, ...)                                                                            \
    if (ctx == SHMEM_CTX_INVALID)                                                                  \
        shmem_##NAME(__VA_ARGS__);                                                                 \
    else                                                                                           \
        shmem_ctx_##NAME(ctx, __VA_ARGS__)
#define COPY(NAME)                                                                                 \
    static void call_##NAME(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems,        \
                            int pe) {                                                              \
        CALL(NAME, dest, source, nelems, pe);                                                      \
    }
#define SIGNAL(NAME)                                                                               \
    static void call_##NAME(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems,        \
                            uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) {             \
        CALL(NAME, dest, source, nelems, sig_addr, signal, sig_op, pe);                            \
    }
#define STRIDED(NAME)                                                                              \
    static void call_##NAME(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,        \
                            ptrdiff_t sst, size_t nelems, int pe) {                                \
        CALL(NAME, dest, source, dst, sst, nelems, pe);                                            \
    }
#define BLOCKS(NAME)                                                                               \
    static void call_##NAME(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,        \
                            ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) {                 \
        CALL(NAME, dest, source, dst, sst, bsize, nblocks, pe);                                    \
    }
#define ELEMENT(N, T)                                                                              \
    static void call_##N##_p(shmem_ctx_t ctx, void *dest, const void *source, int pe) {            \
        CALL(N##_p, dest, *(const T *)source, pe);                                                 \
    }                                                                                              \
    static void call_##N##_g(shmem_ctx_t ctx, void *dest, const void *source, int pe) {            \
        *(T *)dest = ctx == SHMEM_CTX_INVALID ? shmem_##N##_g(source, pe)                          \
                                              : shmem_ctx_##N##_g(ctx, source, pe);                \
    }
#define TYPED(N, T, _)                                                                             \
    COPY(N##_put) COPY(N##_get) COPY(N##_put_nbi) COPY(N##_get_nbi)                                \
    SIGNAL(N##_put_signal) SIGNAL(N##_put_signal_nbi)                                              \
    STRIDED(N##_iput) STRIDED(N##_iget) BLOCKS(N##_ibput) BLOCKS(N##_ibget) ELEMENT(N, T)
#define SIZED(BITS, SIZE, _)                                                                       \
    COPY(put##BITS) COPY(get##BITS) COPY(put##BITS##_nbi) COPY(get##BITS##_nbi)                    \
    SIGNAL(put##BITS##_signal) SIGNAL(put##BITS##_signal_nbi)                                      \
    STRIDED(iput##BITS) STRIDED(iget##BITS) BLOCKS(ibput##BITS) BLOCKS(ibget##BITS)
SHMEM_RMA_TYPES(TYPED, _)
SHMEM_SIZES(SIZED, _)
COPY(putmem) COPY(getmem) COPY(putmem_nbi) COPY(getmem_nbi)
SIGNAL(putmem_signal) SIGNAL(putmem_signal_nbi)

#define TYPED_ROW(N, T, _)                                                                         \
    {#N, sizeof(T), VALUE_BYTES(T),                                                                \
     call_##N##_put, call_##N##_get, call_##N##_put_nbi, call_##N##_get_nbi,                       \
     call_##N##_put_signal, call_##N##_put_signal_nbi,                                             \
     call_##N##_iput, call_##N##_iget, call_##N##_ibput, call_##N##_ibget,                         \
     call_##N##_p, call_##N##_g},
#define SIZED_ROW(BITS, SIZE, _)                                                                   \
    {#BITS " bits", SIZE, SIZE,                                                                    \
     call_put##BITS, call_get##BITS, call_put##BITS##_nbi, call_get##BITS##_nbi,                   \
     call_put##BITS##_signal, call_put##BITS##_signal_nbi,                                         \
     call_iput##BITS, call_iget##BITS, call_ibput##BITS, call_ibget##BITS, NULL, NULL},
const struct rma_routines rma_routines[] = {
    SHMEM_RMA_TYPES(TYPED_ROW, _)
    SHMEM_SIZES(SIZED_ROW, _)
    {"mem", 1, 1, call_putmem, call_getmem, call_putmem_nbi, call_getmem_nbi,
     call_putmem_signal, call_putmem_signal_nbi, NULL, NULL, NULL, NULL, NULL, NULL},
};
const int RMA_TYPED_ROWS = 0 SHMEM_RMA_TYPES(ONE_ROW, _);
const int RMA_STRIDED_ROWS = 0 SHMEM_RMA_TYPES(ONE_ROW, _) SHMEM_SIZES(ONE_ROW, _);
const int RMA_ROWS = sizeof rma_routines / sizeof *rma_routines;
/* clang-format on */
