/* SPDX-License-Identifier: BSD-3-Clause */
/* Extension: calls in the order of a CUDA stream. They return -errno and set its text in cases in
 * which the host's calls would end the job. A slice is an array from an element on; the index of
 * this element may lie in memory, and so may the number of elements that a call copies. */
#include <errno.h>
#include <shmemx.h>
#include "device/slice.h"
#include "coll/on_stream.h"
#include "api/refuse.h"

/* --- Begin and end of a call ------------------------------------------------------------------ */

static int check_stream(shmemx_stream_t stream) {
    if (stream != SHMEMX_STREAM_HOST)
        return weft_refuse_phase();
    return weft_fail(
        -EINVAL, "argument stream is SHMEMX_STREAM_HOST, which only the calls on signal pads take");
}

/* Begins a call that needs only this PE's GPU. Returns 0 or -errno; after 0 the caller calls
 * leave_gpu. */
static int enter_gpu(shmemx_stream_t stream, struct weft_gpu_scope *scope) {
    int result = check_stream(stream);
    result = result ? result : weft_device_begin();
    if (result == 0)
        *scope = weft_gpu_enter(weft_device.gpu);
    return result;
}

static int leave_gpu(struct weft_gpu_scope scope, int result) {
    weft_gpu_leave(scope);
    return result;
}

static int enter_team(struct weft_on_stream *on, shmem_team_t team) {
    int result = check_stream(on->stream);
    return result ? result : weft_on_stream_begin(on, team);
}

/* --- Arguments -------------------------------------------------------------------------------- */

static int check_local(const char *argument, const void *p, size_t bytes) {
    return bytes == 0 ? 0 : weft_refuse_null(argument, p);
}

static int check_signal_op(int sig_op, enum weft_signal_op *op) {
    *op = sig_op == SHMEM_SIGNAL_SET ? WEFT_SIGNAL_SET : WEFT_SIGNAL_ADD;
    if (sig_op == SHMEM_SIGNAL_SET || sig_op == SHMEM_SIGNAL_ADD)
        return 0;
    return weft_fail(-EINVAL, "argument sig_op is %d: pass SHMEM_SIGNAL_SET or SHMEM_SIGNAL_ADD",
                     sig_op);
}

static int check_cmp(int cmp) {
    if (cmp >= SHMEM_CMP_EQ && cmp <= SHMEM_CMP_LE)
        return 0;
    return weft_fail(-EINVAL,
                     "argument cmp is %d: pass one of SHMEM_CMP_EQ, _NE, _GT, _GE, _LT, _LE", cmp);
}

/* Refuses a misaligned word: a kernel that accesses it would destroy the whole context. */
static int check_alignment(const char *argument, const void *p, size_t bytes) {
    if ((uintptr_t)p % bytes == 0)
        return 0;
    return weft_fail(-EINVAL, "argument %s lies at %p: align it to %zu bytes", argument, p, bytes);
}

/* --- Put, get, signals ------------------------------------------------------------------------ */

int shmemx_putmem_on_stream(void *dest, const void *source, size_t nelems, int pe,
                            shmemx_stream_t stream) {
    WEFT_IN_CALL(__func__);
    struct weft_gpu_scope scope;
    int result = check_local("source", source, nelems);
    result = result ? result : enter_gpu(stream, &scope);
    return result ? result : leave_gpu(scope, weft_stream_put(dest, source, nelems, pe, stream));
}

int shmemx_getmem_on_stream(void *dest, const void *source, size_t nelems, int pe,
                            shmemx_stream_t stream) {
    WEFT_IN_CALL(__func__);
    struct weft_gpu_scope scope;
    int result = check_local("dest", dest, nelems);
    result = result ? result : enter_gpu(stream, &scope);
    return result ? result : leave_gpu(scope, weft_stream_get(dest, source, nelems, pe, stream));
}

int shmemx_putmem_signal_on_stream(void *dest, const void *source, size_t nelems,
                                   uint64_t *sig_addr, uint64_t signal, int sig_op, int pe,
                                   shmemx_stream_t stream) {
    WEFT_IN_CALL(__func__);
    struct weft_gpu_scope scope;
    struct weft_put_signal put = {dest, source, nelems, sig_addr, signal, WEFT_SIGNAL_SET, true};
    int result = check_local("source", source, nelems);
    result = result ? result : check_signal_op(sig_op, &put.op);
    result = result ? result : check_alignment("sig_addr", sig_addr, sizeof *sig_addr);
    result = result ? result : enter_gpu(stream, &scope);
    return result ? result : leave_gpu(scope, weft_stream_put_signal(&put, pe, stream));
}

int shmemx_signal_op_on_stream(uint64_t *sig_addr, uint64_t signal, int sig_op, int pe,
                               shmemx_stream_t stream) {
    WEFT_IN_CALL(__func__);
    struct weft_gpu_scope scope;
    enum weft_signal_op op;
    int result = check_signal_op(sig_op, &op);
    result = result ? result : check_alignment("sig_addr", sig_addr, sizeof *sig_addr);
    result = result ? result : enter_gpu(stream, &scope);
    return result ? result : leave_gpu(scope, weft_stream_signal(sig_addr, signal, op, pe, stream));
}

int shmemx_signal_wait_until_on_stream(uint64_t *sig_addr, int cmp, uint64_t cmp_value,
                                       shmemx_stream_t stream) {
    WEFT_IN_CALL(__func__);
    struct weft_gpu_scope scope;
    int result = check_cmp(cmp);
    result = result ? result : check_alignment("sig_addr", sig_addr, sizeof *sig_addr);
    result = result ? result : enter_gpu(stream, &scope);
    return result ? result : leave_gpu(scope, weft_stream_wait(sig_addr, cmp, cmp_value, stream));
}

/* --- Slices ----------------------------------------------------------------------------------- */

static int check_number(const char *argument, shmemx_number_t number) {
    if (!number.at)
        return 0;
    if (number.bytes != sizeof(int32_t) && number.bytes != sizeof(int64_t))
        return weft_fail(-EINVAL,
                         "argument %s has %zu bytes: pass 4 for an int32_t, or 8 for an int64_t",
                         argument, number.bytes);
    return check_alignment(argument, number.at, number.bytes);
}

static int check_slice(const char *argument, const shmemx_slice_t *slice) {
    int result = weft_refuse_null(argument, slice);
    result = result ? result : check_local(argument, slice->array, slice->nelems);
    return result ? result : check_number(argument, slice->begin);
}

static int check_words(const shmemx_slice_t *words) {
    int result = check_slice("signals", words);
    return result ? result : check_alignment("signals", words->array, sizeof(int32_t));
}

static int check_copy(const struct weft_slice_copy *copy) {
    int result = check_slice("dest", copy->dest);
    result = result ? result : check_slice("source", copy->source);
    result = result ? result : check_number("nelems", copy->nelems);
    if (result == 0 && copy->elem_bytes == 0)
        result = weft_fail(-EINVAL, "argument elem_bytes is 0: pass the size of an element");
    return result;
}

static int check_slice_signal(int sig_op, struct weft_slice_signal *signal) {
    int result = check_words(signal->words);
    result = result ? result : check_number("signal", signal->value);
    return result ? result : check_signal_op(sig_op, &signal->op);
}

static int move_slice(const struct weft_slice_copy *copy,
                      int (*how)(const struct weft_slice_copy *)) {
    struct weft_gpu_scope scope;
    int result = check_copy(copy);
    result = result ? result : enter_gpu(copy->stream, &scope);
    return result ? result : leave_gpu(scope, how(copy));
}

int shmemx_put_slice_on_stream(const shmemx_slice_t *dest, const shmemx_slice_t *source,
                               shmemx_number_t nelems, size_t elem_bytes, int pe,
                               shmemx_stream_t stream) {
    WEFT_IN_CALL(__func__);
    return move_slice(&(struct weft_slice_copy){dest, source, nelems, elem_bytes, pe, stream},
                      weft_stream_put_slice);
}

int shmemx_get_slice_on_stream(const shmemx_slice_t *dest, const shmemx_slice_t *source,
                               shmemx_number_t nelems, size_t elem_bytes, int pe,
                               shmemx_stream_t stream) {
    WEFT_IN_CALL(__func__);
    return move_slice(&(struct weft_slice_copy){dest, source, nelems, elem_bytes, pe, stream},
                      weft_stream_get_slice);
}

int shmemx_put_slice_signal_on_stream(const shmemx_slice_t *dest, const shmemx_slice_t *source,
                                      shmemx_number_t nelems, size_t elem_bytes,
                                      const shmemx_slice_t *signals, shmemx_number_t signal,
                                      int sig_op, int pe, shmemx_stream_t stream) {
    WEFT_IN_CALL(__func__);
    struct weft_slice_copy copy = {dest, source, nelems, elem_bytes, pe, stream};
    struct weft_slice_signal given = {.words = signals, .value = signal, .pe = pe};
    struct weft_gpu_scope scope;
    int result = check_copy(&copy);
    result = result ? result : check_slice_signal(sig_op, &given);
    result = result ? result : enter_gpu(stream, &scope);
    return result ? result : leave_gpu(scope, weft_stream_put_slice_signal(&copy, &given));
}

int shmemx_int32_signal_op_on_stream(const shmemx_slice_t *signals, shmemx_number_t signal,
                                     int sig_op, int pe, shmemx_stream_t stream) {
    WEFT_IN_CALL(__func__);
    struct weft_slice_signal given = {.words = signals, .value = signal, .pe = pe};
    struct weft_gpu_scope scope;
    int result = check_slice_signal(sig_op, &given);
    result = result ? result : enter_gpu(stream, &scope);
    return result ? result : leave_gpu(scope, weft_stream_signal32(&given, stream));
}

int shmemx_int32_signal_wait_until_on_stream(const shmemx_slice_t *signals, int cmp,
                                             shmemx_number_t cmp_value, shmemx_stream_t stream) {
    WEFT_IN_CALL(__func__);
    struct weft_gpu_scope scope;
    int result = check_words(signals);
    result = result ? result : check_number("cmp_value", cmp_value);
    result = result ? result : check_cmp(cmp);
    result = result ? result : enter_gpu(stream, &scope);
    return result ? result : leave_gpu(scope, weft_stream_wait32(signals, cmp, cmp_value, stream));
}

/* --- Order ------------------------------------------------------------------------------------ */

/* A stream executes in order, and its effects become visible to other PEs through signals and
 * barriers. So both calls complete what the host has begun. */
static int quiet_stream(shmemx_stream_t stream) {
    struct weft_gpu_scope scope;
    int result = enter_gpu(stream, &scope);
    return result ? result : leave_gpu(scope, weft_stream_quiet(stream));
}

int shmemx_quiet_on_stream(shmemx_stream_t stream) {
    WEFT_IN_CALL(__func__);
    return quiet_stream(stream);
}

int shmemx_fence_on_stream(shmemx_stream_t stream) {
    WEFT_IN_CALL(__func__);
    return quiet_stream(stream);
}

static int meet_team(shmem_team_t team, shmemx_stream_t stream,
                     int (*how)(const struct weft_team *, weft_cu_stream)) {
    struct weft_on_stream on = {.stream = stream};
    int result = enter_team(&on, team);
    return result ? result : weft_on_stream_end(&on, how(on.team, stream));
}

int shmemx_barrier_on_stream(shmem_team_t team, shmemx_stream_t stream) {
    WEFT_IN_CALL(__func__);
    return meet_team(team, stream, weft_stream_barrier);
}

int shmemx_barrier_all_on_stream(shmemx_stream_t stream) {
    WEFT_IN_CALL(__func__);
    return meet_team(SHMEM_TEAM_WORLD, stream, weft_stream_barrier);
}

int shmemx_sync_on_stream(shmem_team_t team, shmemx_stream_t stream) {
    WEFT_IN_CALL(__func__);
    return meet_team(team, stream, weft_stream_sync);
}

/* --- Collectives ------------------------------------------------------------------------------ */

/* Only a member that sends needs a source. */
static int check_sender(const struct weft_on_stream *on, const struct weft_plan *plan,
                        const void *source) {
    if (plan->sender < 0 || plan->sender >= on->team->npes)
        return weft_fail(-EINVAL, "argument PE_root is %d: the team has %d PEs", plan->sender,
                         on->team->npes);
    return weft_plan_sends(plan, on->team->my_pe)
               ? check_local("source", source, plan->pieces.bytes)
               : 0;
}

int shmemx_broadcastmem_on_stream(shmem_team_t team, void *dest, const void *source, size_t nelems,
                                  int PE_root, shmemx_stream_t stream) {
    WEFT_IN_CALL(__func__);
    struct weft_on_stream on = {.stream = stream};
    struct weft_plan plan = weft_plan_broadcast(nelems, PE_root);
    int result = enter_team(&on, team);
    if (result)
        return result;
    result = check_sender(&on, &plan, source);
    result = result ? result : weft_on_stream_copy(&on, &plan, dest, source);
    return weft_on_stream_end(&on, result);
}

static int exchange_pieces(shmem_team_t team, const struct weft_plan *plan, void *dest,
                           const void *source, shmemx_stream_t stream) {
    struct weft_on_stream on = {.stream = stream};
    int result = check_local("source", source, plan->pieces.bytes);
    result = result ? result : enter_team(&on, team);
    return result ? result : weft_on_stream_end(&on, weft_on_stream_copy(&on, plan, dest, source));
}

int shmemx_fcollectmem_on_stream(shmem_team_t team, void *dest, const void *source, size_t nelems,
                                 shmemx_stream_t stream) {
    WEFT_IN_CALL(__func__);
    struct weft_plan plan = weft_plan_fcollect(nelems);
    return exchange_pieces(team, &plan, dest, source, stream);
}

int shmemx_alltoallmem_on_stream(shmem_team_t team, void *dest, const void *source, size_t nelems,
                                 shmemx_stream_t stream) {
    WEFT_IN_CALL(__func__);
    struct weft_plan plan = weft_plan_alltoall(nelems);
    return exchange_pieces(team, &plan, dest, source, stream);
}

static int fold_array(shmem_team_t team, void *dest, const void *source,
                      const struct weft_stream_folding *folding, shmemx_stream_t stream) {
    struct weft_on_stream on = {.stream = stream};
    if (folding->reduction.number == WEFT_NUMBER_LONGDOUBLE)
        return weft_fail(-ENOTSUP, "GPUs have no long double: use double");
    int result = enter_team(&on, team);
    return result ? result
                  : weft_on_stream_end(&on, weft_on_stream_fold(&on, dest, source, folding));
}

/* clang-format off */
#define FOLDING(NAME, T, FOLD, SCATTER)                                                            \
    int NAME(shmem_team_t team, T *dest, const T *source, size_t nreduce,                          \
             shmemx_stream_t stream) {                                                             \
        WEFT_IN_CALL(__func__);                                                                    \
        struct weft_stream_folding folding = {                                                     \
            {.op = WEFT_FOLD_##FOLD, .number = WEFT_NUMBER_OF(T)}, nreduce, SCATTER, false};       \
        return fold_array(team, dest, source, &folding, stream);                                   \
    }
#define REDUCE(N, T, OP, FOLD)                                                                     \
    FOLDING(shmemx_##N##_##OP##_reduce_on_stream, T, FOLD, false)                                  \
    FOLDING(shmemx_##N##_##OP##_reducescatter_on_stream, T, FOLD, true)
#define BITWISE(N, T, _)    REDUCE(N, T, and, AND) REDUCE(N, T, or, OR) REDUCE(N, T, xor, XOR)
#define ORDERED(N, T, _)    REDUCE(N, T, max, MAX) REDUCE(N, T, min, MIN)
#define ARITHMETIC(N, T, _) REDUCE(N, T, sum, SUM) REDUCE(N, T, prod, PROD)
SHMEM_BITWISE_TYPES(BITWISE, _)
SHMEM_RMA_TYPES(ORDERED, _)
SHMEM_ARITHMETIC_TYPES(ARITHMETIC, _)
/* clang-format on */

/* --- Engines ---------------------------------------------------------------------------------- */

_Static_assert((int)SHMEMX_ENGINE_AUTO == WEFT_ENGINE_AUTO, "as named");
_Static_assert((int)SHMEMX_ENGINE_SM == WEFT_ENGINE_SM, "as named");
_Static_assert((int)SHMEMX_ENGINE_COPY == WEFT_ENGINE_COPY, "as named");

shmemx_engine_t shmemx_get_engine(void) {
    return (shmemx_engine_t)weft_engine_get();
}

int shmemx_set_engine(shmemx_engine_t engine) {
    WEFT_IN_CALL(__func__);
    switch (engine) {
    case SHMEMX_ENGINE_AUTO:
    case SHMEMX_ENGINE_SM:
    case SHMEMX_ENGINE_COPY:
        weft_engine_set((enum weft_copy_engine)engine);
        return 0;
    }
    return weft_fail(
        -EINVAL,
        "argument engine is %d: pass SHMEMX_ENGINE_AUTO, SHMEMX_ENGINE_SM or SHMEMX_ENGINE_COPY",
        (int)engine);
}

int shmemx_device(int *device) {
    WEFT_IN_CALL(__func__);
    int result = weft_refuse_null("device", device);
    result = result ? result : weft_refuse_phase();
    result = result ? result : weft_device_begin();
    if (result == 0)
        *device = weft_device.gpu->ordinal;
    return result;
}
