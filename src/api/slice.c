/* SPDX-License-Identifier: BSD-3-Clause */
/* Extension: puts, gets and signals in the order of a CUDA stream whose numbers may lie in memory.
 */
#include <errno.h>
#include <shmemx.h>
#include "base/log.h"
#include "core/job.h"
#include "device/begin.h"
#include "device/slice.h"

/* --- Arguments -------------------------------------------------------------------------------- */

static int check_number(const char *call, const char *argument, shmemx_number_t number) {
    if (!number.at)
        return 0;
    if (number.bytes != sizeof(int32_t) && number.bytes != sizeof(int64_t))
        return weft_fail(-EINVAL, "%s: argument %s has %zu bytes: an int32_t has 4, an int64_t 8",
                         call, argument, number.bytes);
    if ((uintptr_t)number.at % number.bytes != 0)
        return weft_fail(-EINVAL, "%s: argument %s lies at %p: align it to %zu bytes", call,
                         argument, number.at, number.bytes);
    return 0;
}

static int check_slice(const char *call, const char *argument, const shmemx_slice_t *slice) {
    if (!slice || (!slice->array && slice->nelems > 0))
        return weft_fail(-EINVAL, "%s: argument %s is NULL", call, argument);
    return check_number(call, argument, slice->begin);
}

static int check_words(const char *call, const shmemx_slice_t *words) {
    int rc = check_slice(call, "signals", words);
    if (rc == 0 && (uintptr_t)words->array % sizeof(int32_t) != 0)
        rc = weft_fail(-EINVAL, "%s: argument signals lies at %p: align it to %zu bytes", call,
                       words->array, sizeof(int32_t));
    return rc;
}

static int check_copy(const struct weft_slice_copy *copy) {
    int rc = check_slice(copy->call, "dest", copy->dest);
    rc = rc ? rc : check_slice(copy->call, "source", copy->source);
    rc = rc ? rc : check_number(copy->call, "nelems", copy->nelems);
    if (rc == 0 && copy->elem_bytes == 0)
        rc = weft_fail(-EINVAL, "%s: argument elem_bytes is 0", copy->call);
    return rc;
}

static int check_signal(const char *call, int sig_op, struct weft_slice_signal *signal) {
    int rc = check_words(call, signal->words);
    rc = rc ? rc : check_number(call, "signal", signal->value);
    signal->op = sig_op == SHMEM_SIGNAL_SET ? WEFT_SIGNAL_SET : WEFT_SIGNAL_ADD;
    if (rc == 0 && sig_op != SHMEM_SIGNAL_SET && sig_op != SHMEM_SIGNAL_ADD)
        rc = weft_fail(-EINVAL,
                       "%s: argument sig_op is %d: pass SHMEM_SIGNAL_SET or SHMEM_SIGNAL_ADD", call,
                       sig_op);
    return rc;
}

/* --- Calls ------------------------------------------------------------------------------------ */

static int enter(const char *call, struct weft_gpu_scope *scope) {
    if (weft_job.npes == 0)
        return weft_fail(-EPERM, "%s: called outside of shmem_init and shmem_finalize", call);
    if (weft_job_aborted())
        weft_job_die_aborted(call);
    int rc = weft_device_begin(call);
    if (rc == 0)
        *scope = weft_gpu_enter(weft_device.gpu);
    return rc;
}

static int move(const struct weft_slice_copy *copy, int (*how)(const struct weft_slice_copy *)) {
    struct weft_gpu_scope scope;
    int rc = check_copy(copy);
    rc = rc ? rc : enter(copy->call, &scope);
    if (rc)
        return rc;
    rc = how(copy);
    weft_gpu_leave(scope);
    return rc;
}

int shmemx_put_slice_on_stream(const shmemx_slice_t *dest, const shmemx_slice_t *source,
                               shmemx_number_t nelems, size_t elem_bytes, int pe,
                               shmemx_stream_t stream) {
    return move(&(struct weft_slice_copy){dest, source, nelems, elem_bytes, pe, stream, __func__},
                weft_stream_put_slice);
}

int shmemx_get_slice_on_stream(const shmemx_slice_t *dest, const shmemx_slice_t *source,
                               shmemx_number_t nelems, size_t elem_bytes, int pe,
                               shmemx_stream_t stream) {
    return move(&(struct weft_slice_copy){dest, source, nelems, elem_bytes, pe, stream, __func__},
                weft_stream_get_slice);
}

int shmemx_put_slice_signal_on_stream(const shmemx_slice_t *dest, const shmemx_slice_t *source,
                                      shmemx_number_t nelems, size_t elem_bytes,
                                      const shmemx_slice_t *signals, shmemx_number_t signal,
                                      int sig_op, int pe, shmemx_stream_t stream) {
    struct weft_slice_copy copy = {dest, source, nelems, elem_bytes, pe, stream, __func__};
    struct weft_slice_signal given = {.words = signals, .value = signal, .pe = pe};
    struct weft_gpu_scope scope;
    int rc = check_copy(&copy);
    rc = rc ? rc : check_signal(copy.call, sig_op, &given);
    rc = rc ? rc : enter(copy.call, &scope);
    if (rc)
        return rc;
    rc = weft_stream_put_slice_signal(&copy, &given);
    weft_gpu_leave(scope);
    return rc;
}

int shmemx_int32_signal_op_on_stream(const shmemx_slice_t *signals, shmemx_number_t signal,
                                     int sig_op, int pe, shmemx_stream_t stream) {
    struct weft_slice_signal given = {.words = signals, .value = signal, .pe = pe};
    struct weft_gpu_scope scope;
    int rc = check_signal(__func__, sig_op, &given);
    rc = rc ? rc : enter(__func__, &scope);
    if (rc)
        return rc;
    rc = weft_stream_signal32(&given, stream, __func__);
    weft_gpu_leave(scope);
    return rc;
}

int shmemx_int32_signal_wait_until_on_stream(const shmemx_slice_t *signals, int cmp,
                                             shmemx_number_t cmp_value, shmemx_stream_t stream) {
    struct weft_gpu_scope scope;
    int rc = check_words(__func__, signals);
    rc = rc ? rc : check_number(__func__, "cmp_value", cmp_value);
    if (rc == 0 && (cmp < SHMEM_CMP_EQ || cmp > SHMEM_CMP_LE))
        rc = weft_fail(-EINVAL,
                       "%s: argument cmp is %d: pass one of SHMEM_CMP_EQ, _NE, _GT, _GE, _LT, _LE",
                       __func__, cmp);
    rc = rc ? rc : enter(__func__, &scope);
    if (rc)
        return rc;
    rc = weft_stream_wait32(signals, cmp, cmp_value, stream, __func__);
    weft_gpu_leave(scope);
    return rc;
}
