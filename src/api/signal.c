/* SPDX-License-Identifier: BSD-3-Clause */
/* Signalling: puts with signal, and operations on signal words. */
#include "core/awaited.h"
#include "core/rma.h"
#include "core/view.h"
#include "api/checked.h"
#include "api/define.h"

_Static_assert((int)WEFT_SIGNAL_SET == SHMEM_SIGNAL_SET &&
                   (int)WEFT_SIGNAL_ADD == SHMEM_SIGNAL_ADD && (int)WEFT_CMP_EQ == SHMEM_CMP_EQ &&
                   (int)WEFT_CMP_NE == SHMEM_CMP_NE && (int)WEFT_CMP_GT == SHMEM_CMP_GT &&
                   (int)WEFT_CMP_GE == SHMEM_CMP_GE && (int)WEFT_CMP_LT == SHMEM_CMP_LT &&
                   (int)WEFT_CMP_LE == SHMEM_CMP_LE,
               "hosts and kernels have the same numbers");

static enum weft_signal_op signal_op(const char *call, int sig_op) {
    if (sig_op != SHMEM_SIGNAL_SET && sig_op != SHMEM_SIGNAL_ADD)
        weft_misuse_constant(call, "sig_op", sig_op, "SHMEM_SIGNAL_SET or SHMEM_SIGNAL_ADD");
    return (enum weft_signal_op)sig_op;
}

static void check_signal_word(const uint64_t *sig_addr, int pe) {
    weft_checked_access(&(struct weft_access){"sig_addr", NULL, sig_addr, NULL, sizeof *sig_addr, 0,
                                              sizeof *sig_addr, pe, false});
}

WEFT_COLD static void check_put_signal(const struct weft_put_signal *put, size_t elem_bytes,
                                       int pe) {
    check_signal_word(put->sig_addr, pe);
    weft_checked_access(&(struct weft_access){"dest", "source", put->dest, put->source, put->bytes,
                                              put->bytes, elem_bytes, pe, false});
    weft_checked_disjoint((struct weft_argument){"dest", put->dest, put->bytes},
                          (struct weft_argument){"sig_addr", put->sig_addr, sizeof *put->sig_addr});
}

static void put_signal_now(const char *call, struct weft_put_signal *put, int sig_op, int pe) {
    put->op = signal_op(call, sig_op);
    weft_check_local(call, "source", put->source, put->bytes);
    weft_rma_put_signal(put, pe, call);
}

WEFT_COLD static void put_signal_slow(const char *call, struct weft_put_signal *put, int sig_op,
                                      size_t elem_bytes, int pe) {
    WEFT_ENTER(call);
    if (weft_checked())
        check_put_signal(put, elem_bytes, pe);
    put_signal_now(call, put, sig_op, pe);
}

static void put_signal(const char *call, struct weft_put_signal *put, int sig_op, size_t elem_bytes,
                       int pe) {
    if (weft_is_slow())
        put_signal_slow(call, put, sig_op, elem_bytes, pe);
    else
        put_signal_now(call, put, sig_op, pe);
}

WEFT_COLD static void signal_slow(const char *call, uint64_t *sig_addr, uint64_t signal,
                                  enum weft_signal_op op, int pe) {
    WEFT_IN_CALL(call);
    if (weft_checked())
        check_signal_word(sig_addr, pe);
    weft_rma_signal_slow(sig_addr, signal, op, pe, call);
}

/* Inlined with a constant `op`, so that only one instruction remains after the bounds check. */
static inline __attribute__((always_inline)) void signal_word(const char *call, uint64_t *sig_addr,
                                                              uint64_t signal,
                                                              enum weft_signal_op op, int pe) {
    if (weft_is_slow())
        signal_slow(call, sig_addr, signal, op, pe);
    else
        weft_rma_signal(sig_addr, signal, op, pe, call);
}

static void check_own_word(const uint64_t *sig_addr) {
    if (weft_checked())
        check_signal_word(sig_addr, weft_job.pe);
    if (!weft_dispatch_symmetric(sig_addr, sizeof *sig_addr, weft_job.pe))
        weft_misuse_access(weft_current_call, "sig_addr", sig_addr, sizeof *sig_addr, weft_job.pe);
}

static const struct weft_ivar_type signal_type = {sizeof(uint64_t), false};

/* Reads this PE's word, in whichever memory it lies. */
static inline uint64_t load_signal(const uint64_t *sig_addr) {
    return weft_view_key(signal_type, sig_addr);
}

/* clang-format off */
#define PUT_SIGNAL(NAME, T, SIZE, NBI)                                                             \
    PAIR(void, NAME,                                                                               \
         (T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal,            \
          int sig_op, int pe),                                                                     \
         put_signal(__func__,                                                                      \
                    &(struct weft_put_signal){dest, source, weft_check_bytes(nelems, SIZE),        \
                                              sig_addr, signal, WEFT_SIGNAL_SET, NBI},             \
                    sig_op, SIZE, pe);)
#define TYPED(N, T, _)                                                                             \
    PUT_SIGNAL(N##_put_signal, T, sizeof(T), false)                                                \
    PUT_SIGNAL(N##_put_signal_nbi, T, sizeof(T), true)
#define SIZED(BITS, BYTES, _)                                                                      \
    PUT_SIGNAL(put##BITS##_signal, void, BYTES, false)                                             \
    PUT_SIGNAL(put##BITS##_signal_nbi, void, BYTES, true)
SHMEM_RMA_TYPES(TYPED, _)
SHMEM_SIZES(SIZED, _)
PUT_SIGNAL(putmem_signal, void, 1, false)
PUT_SIGNAL(putmem_signal_nbi, void, 1, true)

PAIR(void, signal_add, (uint64_t *sig_addr, uint64_t signal, int pe),
     signal_word(__func__, sig_addr, signal, WEFT_SIGNAL_ADD, pe);)
PAIR(void, signal_set, (uint64_t *sig_addr, uint64_t signal, int pe),
     signal_word(__func__, sig_addr, signal, WEFT_SIGNAL_SET, pe);)

/* clang-format on */

WEFT_COLD static uint64_t fetch_slow(const char *call, const uint64_t *sig_addr) {
    WEFT_IN_CALL(call);
    weft_check_running(call);
    check_own_word(sig_addr);
    uint64_t signal = load_signal(sig_addr);
    weft_poll_fetched(sig_addr, &signal, sizeof signal, weft_job.pe, call);
    return signal;
}

API(uint64_t, signal_fetch, (const uint64_t *sig_addr)) {
    if (weft_fetch_is_slow())
        return fetch_slow(__func__, sig_addr);
    if (__builtin_expect(!weft_near(sig_addr, sizeof *sig_addr, weft_job.pe), 0))
        weft_misuse_access(__func__, "sig_addr", sig_addr, sizeof *sig_addr, weft_job.pe);
    return __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
}

API(uint64_t, signal_wait_until, (uint64_t * sig_addr, int cmp, uint64_t cmp_value)) {
    WEFT_ENTER(__func__);
    uint64_t signal;
    check_own_word(sig_addr);
    weft_check_cmp(__func__, cmp);
    const struct weft_ivars word = {signal_type, sig_addr, 1, NULL, &cmp_value, false, cmp};
    WEFT_WAIT_FOR(WEFT_AWAITED_IVARS(&word, 0),
                  (signal = load_signal(sig_addr), weft_ivar_compare(signal, cmp, cmp_value)));
    return signal;
}
