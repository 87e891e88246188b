/* SPDX-License-Identifier: BSD-3-Clause */
/* Signalling: puts that announce themselves, and the words that they announce themselves by. */
#include "core/ivar.h"
#include "core/rma.h"
#include "core/wait.h"
#include "api/define.h"

static enum weft_signal_op signal_op(const char *call, int sig_op) {
    if (sig_op != SHMEM_SIGNAL_SET && sig_op != SHMEM_SIGNAL_ADD)
        weft_misuse_constant(call, "sig_op", sig_op, "SHMEM_SIGNAL_SET or SHMEM_SIGNAL_ADD");
    return sig_op == SHMEM_SIGNAL_SET ? WEFT_SIGNAL_SET : WEFT_SIGNAL_ADD;
}

static void put_signal(const char *call, void *dest, const void *source, size_t nelems, size_t size,
                       uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) {
    enum weft_signal_op op = signal_op(call, sig_op);
    size_t bytes = weft_check_bytes(nelems, size);
    weft_check_local(call, "source", source, bytes);
    if (__builtin_expect(weft_put_signal(dest, source, bytes, sig_addr, signal, op, pe) == 0, 1))
        return;
    if (!weft_near(sig_addr, sizeof *sig_addr, pe))
        weft_misuse_access(call, "sig_addr", sig_addr, sizeof *sig_addr, pe);
    weft_misuse_access(call, "dest", dest, bytes, pe);
}

static void signal_word(const char *call, uint64_t *sig_addr, uint64_t signal,
                        enum weft_signal_op op, int pe) {
    if (__builtin_expect(weft_signal(sig_addr, signal, op, pe) != 0, 0))
        weft_misuse_access(call, "sig_addr", sig_addr, sizeof *sig_addr, pe);
}

static void check_own_word(const char *call, const uint64_t *sig_addr) {
    weft_check_running(call);
    if (!weft_near(sig_addr, sizeof *sig_addr, weft_job.pe))
        weft_misuse_access(call, "sig_addr", sig_addr, sizeof *sig_addr, weft_job.pe);
}

/* clang-format off */
#define PUT_SIGNAL(NAME, T, SIZE)                                                                  \
    PAIR(void, NAME,                                                                               \
         (T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal,            \
          int sig_op, int pe),                                                                     \
         put_signal(__func__, dest, source, nelems, SIZE, sig_addr, signal, sig_op, pe);)
#define TYPED(N, T, _)                                                                             \
    PUT_SIGNAL(N##_put_signal, T, sizeof(T))                                                       \
    PUT_SIGNAL(N##_put_signal_nbi, T, sizeof(T))
#define SIZED(BITS, BYTES, _)                                                                      \
    PUT_SIGNAL(put##BITS##_signal, void, BYTES)                                                    \
    PUT_SIGNAL(put##BITS##_signal_nbi, void, BYTES)
SHMEM_RMA_TYPES(TYPED, _)
SHMEM_SIZES(SIZED, _)
PUT_SIGNAL(putmem_signal, void, 1)
PUT_SIGNAL(putmem_signal_nbi, void, 1)

PAIR(void, signal_add, (uint64_t *sig_addr, uint64_t signal, int pe),
     signal_word(__func__, sig_addr, signal, WEFT_SIGNAL_ADD, pe);)
PAIR(void, signal_set, (uint64_t *sig_addr, uint64_t signal, int pe),
     signal_word(__func__, sig_addr, signal, WEFT_SIGNAL_SET, pe);)

/* clang-format on */

API(uint64_t, signal_fetch, (const uint64_t *sig_addr)) {
    check_own_word(__func__, sig_addr);
    return __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
}

API(uint64_t, signal_wait_until, (uint64_t * sig_addr, int cmp, uint64_t cmp_value)) {
    uint64_t signal;
    check_own_word(__func__, sig_addr);
    weft_check_cmp(__func__, cmp);
    WEFT_WAIT_UNTIL((signal = __atomic_load_n(sig_addr, __ATOMIC_RELAXED),
                     weft_ivar_compare(signal, cmp, cmp_value)),
                    __func__);
    return signal;
}
