/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals by NVSHMEM's names: alone, and after a put. */
#ifndef WEFT_NVSHMEM_SIGNAL_CUH
#define WEFT_NVSHMEM_SIGNAL_CUH

#include "weft/nvshmem/device/state.cuh"

WEFT_DEVICE void nvshmemx_signal_op(uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) {
    weft_signal_by(WEFT_NVSHMEM_WORLD, sig_addr, signal, weft_nvshmem_signal_op(sig_op), pe);
}

WEFT_DEVICE uint64_t nvshmem_signal_fetch(uint64_t *sig_addr) {
    return weft_signal_fetch(WEFT_NVSHMEM_WORLD, sig_addr);
}

/* Returns the word's value after the wait. Another signal may have changed it since it satisfied
 * the comparison; if the job is over, it may never have satisfied it. */
WEFT_DEVICE uint64_t nvshmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value) {
    weft_wait_until(WEFT_NVSHMEM_WORLD, sig_addr, weft_nvshmem_cmp(cmp), cmp_value);
    return weft_signal_fetch(WEFT_NVSHMEM_WORLD, sig_addr);
}

/* --- Signals after a put: a warp or block syncs at both ends ---------------------------------- */

WEFT_DEVICE void weft_nvshmem_put_signal_t(void *dest, const void *source, size_t bytes,
                                           uint64_t *sig_addr, uint64_t signal, int sig_op,
                                           int pe) {
    weft_put_signal_t(WEFT_NVSHMEM_WORLD, dest, source, bytes, sig_addr, signal,
                      weft_nvshmem_signal_op(sig_op), pe);
}
WEFT_DEVICE void weft_nvshmem_put_signal_w(void *dest, const void *source, size_t bytes,
                                           uint64_t *sig_addr, uint64_t signal, int sig_op,
                                           int pe) {
    weft_warp_sync();
    weft_put_signal_w(WEFT_NVSHMEM_WORLD, dest, source, bytes, sig_addr, signal,
                      weft_nvshmem_signal_op(sig_op), pe);
    weft_warp_sync();
}
WEFT_DEVICE void weft_nvshmem_put_signal_b(void *dest, const void *source, size_t bytes,
                                           uint64_t *sig_addr, uint64_t signal, int sig_op,
                                           int pe) {
    weft_block_sync();
    weft_put_signal_b(WEFT_NVSHMEM_WORLD, dest, source, bytes, sig_addr, signal,
                      weft_nvshmem_signal_op(sig_op), pe);
    weft_block_sync();
}

#define WEFT_NVSHMEM_PUT(name, T, size, letter)                                                  \
    WEFT_DEVICE void name(T *dest, const T *source, size_t nelems, uint64_t *sig_addr,           \
                          uint64_t signal, int sig_op, int pe) {                                 \
        weft_nvshmem_put_signal_##letter(dest, source, nelems *(size), sig_addr, signal, sig_op, \
                                         pe);                                                    \
    }
#define WEFT_NVSHMEM_PUTS(N, T, size)                            \
    WEFT_NVSHMEM_PUT(nvshmem_##N##_signal, T, size, t)           \
    WEFT_NVSHMEM_PUT(nvshmem_##N##_signal_nbi, T, size, t)       \
    WEFT_NVSHMEM_PUT(nvshmemx_##N##_signal_warp, T, size, w)     \
    WEFT_NVSHMEM_PUT(nvshmemx_##N##_signal_nbi_warp, T, size, w) \
    WEFT_NVSHMEM_PUT(nvshmemx_##N##_signal_block, T, size, b)    \
    WEFT_NVSHMEM_PUT(nvshmemx_##N##_signal_nbi_block, T, size, b)
#define WEFT_NVSHMEM_PUTS_OF_TYPE(N, T, _)       WEFT_NVSHMEM_PUTS(N##_put, T, sizeof(T))
#define WEFT_NVSHMEM_PUTS_OF_SIZE(bits, size, _) WEFT_NVSHMEM_PUTS(put##bits, void, size)
WEFT_NVSHMEM_PUTS(putmem, void, 1)
WEFT_NVSHMEM_RMA_TYPES(WEFT_NVSHMEM_PUTS_OF_TYPE, _)
SHMEM_SIZES(WEFT_NVSHMEM_PUTS_OF_SIZE, _)
#undef WEFT_NVSHMEM_PUTS_OF_SIZE
#undef WEFT_NVSHMEM_PUTS_OF_TYPE
#undef WEFT_NVSHMEM_PUTS
#undef WEFT_NVSHMEM_PUT

#endif
