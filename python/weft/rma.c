/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets of whole arrays. All misuse that would end the job is refused here. */
#include "rma.h"
#include <string.h>
#include "argument.h"
#include "error.h"
#include "pending.h"
#include "session.h"

/* --- Arguments ------------------------------------------------------------------------------- */

/* An array of uint8 is accepted with any other type. */
static bool check_types(const struct pyweft_transfer *transfer) {
    const struct pyweft_array *dest = &transfer->dest, *source = &transfer->source;
    if (dest->bytes != source->bytes) {
        PyErr_Format(
            PyExc_ValueError,
            "%s: argument dest has %zu elements of %s, %zu bytes, but source has %zu of %s, %zu "
            "bytes: pass the same size",
            transfer->call, dest->nelems, dest->dtype->name, dest->bytes, source->nelems,
            source->dtype->name, source->bytes);
        return false;
    }
    if (strcmp(dest->dtype->name, "uint8") == 0 || strcmp(source->dtype->name, "uint8") == 0)
        return true;
    return pyweft_array_check_dtype(transfer->call, "dest", dest, "source", source);
}

bool pyweft_transfer_take(struct pyweft_transfer *transfer, PyObject *dest, PyObject *source,
                          PyObject *pe, PyObject *ctx) {
    const char *call = transfer->call;
    return pyweft_target_take(call, ctx, pe, transfer->stream, &transfer->target) &&
           pyweft_array_take(&transfer->dest, call, "dest", dest, PYWEFT_ARRAY_WRITTEN,
                             transfer->stream) &&
           pyweft_array_take(&transfer->source, call, "source", source, PYWEFT_ARRAY_READ,
                             transfer->stream) &&
           check_types(transfer);
}

void pyweft_transfer_drop(struct pyweft_transfer *transfer) {
    pyweft_array_drop(&transfer->dest);
    pyweft_array_drop(&transfer->source);
}

static bool is_device(const struct pyweft_transfer *transfer) {
    return transfer->dest.device >= 0 || transfer->source.device >= 0;
}

bool pyweft_transfer_is_short(const struct pyweft_transfer *transfer) {
    return transfer->stream == WEFT_STREAM_HOST && transfer->dest.bytes <= PYWEFT_SHORT_BYTES &&
           !is_device(transfer);
}

bool pyweft_transfer_hold(struct pyweft_transfer *transfer) {
    return !is_device(transfer) || (pyweft_pending_hold(transfer->target.ctx, &transfer->dest) &&
                                    pyweft_pending_hold(transfer->target.ctx, &transfer->source));
}

/* --- put, get -------------------------------------------------------------------------------- */

typedef int move(const struct pyweft_transfer *transfer);

void pyweft_put_whole(const struct pyweft_array *array, void *dest, const void *source,
                      size_t bytes, shmem_ctx_t ctx, int pe) {
    shmem_ctx_putmem(ctx, dest, source, bytes, pe);
    if (array->device >= 0)
        shmem_ctx_quiet(ctx);
}

static int put_now(const struct pyweft_transfer *transfer) {
    const struct pyweft_array *dest = &transfer->dest, *source = &transfer->source;
    if (transfer->stream != WEFT_STREAM_HOST)
        return shmemx_putmem_on_stream(dest->data, source->data, dest->bytes, transfer->target.pe,
                                       (shmemx_stream_t)transfer->stream);
    pyweft_put_whole(dest, dest->data, source->data, dest->bytes, transfer->target.ctx,
                     transfer->target.pe);
    return 0;
}

static int get_now(const struct pyweft_transfer *transfer) {
    const struct pyweft_array *dest = &transfer->dest, *source = &transfer->source;
    if (transfer->stream != WEFT_STREAM_HOST)
        return shmemx_getmem_on_stream(dest->data, source->data, dest->bytes, transfer->target.pe,
                                       (shmemx_stream_t)transfer->stream);
    shmem_ctx_getmem(transfer->target.ctx, dest->data, source->data, dest->bytes,
                     transfer->target.pe);
    return 0;
}

static int begin_put(const struct pyweft_transfer *transfer) {
    shmem_ctx_putmem_nbi(transfer->target.ctx, transfer->dest.data, transfer->source.data,
                         transfer->dest.bytes, transfer->target.pe);
    return 0;
}

static int begin_get(const struct pyweft_transfer *transfer) {
    shmem_ctx_getmem_nbi(transfer->target.ctx, transfer->dest.data, transfer->source.data,
                         transfer->dest.bytes, transfer->target.pe);
    return 0;
}

static int move_by(const struct pyweft_transfer *transfer, move *by) {
    int error;
    if (pyweft_transfer_is_short(transfer))
        PYWEFT_WITH_GIL_BRIEF(error, by(transfer));
    else
        PYWEFT_WITHOUT_GIL(error, by(transfer));
    return error;
}

/* in[]: dest, source, pe, ctx, and the stream if the call has one. */
static PyObject *copy(struct pyweft_transfer *transfer, PyObject *const *in, bool put, move *by) {
    PyObject *result = NULL;
    if (pyweft_transfer_take(transfer, in[0], in[1], in[2], in[3]) &&
        pyweft_array_check_symmetric(transfer->call, put ? "dest" : "source",
                                     put ? &transfer->dest : &transfer->source,
                                     transfer->target.world_pe)) {
        int error = move_by(transfer, by);
        bool begun = !error && (by == begin_put || by == begin_get);
        if (!begun || pyweft_transfer_hold(transfer))
            result = pyweft_error_result(transfer->call, error);
    }
    pyweft_transfer_drop(transfer);
    return result;
}

PYWEFT_FUNCTION(put) {
    static const struct pyweft_signature signature = {
        "put", 3, 3, {"dest", "source", "pe", "ctx", "stream"}};
    struct pyweft_transfer transfer = {.call = signature.call};
    PyObject *in[5];
    (void)self;
    if (!pyweft_arguments_in_job(&signature, args, nargs, names, in) ||
        !pyweft_argument_stream(signature.call, in[4], &transfer.stream))
        return NULL;
    return copy(&transfer, in, true, put_now);
}

PYWEFT_FUNCTION(get) {
    static const struct pyweft_signature signature = {
        "get", 3, 3, {"dest", "source", "pe", "ctx", "stream"}};
    struct pyweft_transfer transfer = {.call = signature.call};
    PyObject *in[5];
    (void)self;
    if (!pyweft_arguments_in_job(&signature, args, nargs, names, in) ||
        !pyweft_argument_stream(signature.call, in[4], &transfer.stream))
        return NULL;
    return copy(&transfer, in, false, get_now);
}

static PyObject *begin(const struct pyweft_signature *signature, PyObject *const *args,
                       Py_ssize_t nargs, PyObject *names, bool put) {
    struct pyweft_transfer transfer = {.call = signature->call, .stream = WEFT_STREAM_HOST};
    PyObject *in[4];
    if (!pyweft_arguments_in_job(signature, args, nargs, names, in))
        return NULL;
    return copy(&transfer, in, put, put ? begin_put : begin_get);
}

PYWEFT_FUNCTION(put_nbi) {
    static const struct pyweft_signature signature = {
        "put_nbi", 3, 3, {"dest", "source", "pe", "ctx"}};
    (void)self;
    return begin(&signature, args, nargs, names, true);
}

PYWEFT_FUNCTION(get_nbi) {
    static const struct pyweft_signature signature = {
        "get_nbi", 3, 3, {"dest", "source", "pe", "ctx"}};
    (void)self;
    return begin(&signature, args, nargs, names, false);
}

#define ARRAYS_AND_STATE                                                                  \
    "\n\nValueError: no such PE; arrays of different sizes or types, not contiguous,\n"   \
    "read-only, without memory, not symmetric where they must be; a Buffer that was\n"    \
    "freed. TypeError: no array. BufferError: a tensor with the conjugate or negative\n"  \
    "bit, or one that requires grad and is written. RuntimeError: before init(), after\n" \
    "finalize(), or a GPU or a peer failed."

/* --- set_engine ------------------------------------------------------------------------------ */

PYWEFT_FUNCTION(set_engine) {
    static const struct pyweft_signature signature = {"set_engine", 1, 1, {"engine"}};
    static const char *const engines[] = {"auto", "sm", "copy", NULL};
    PyObject *in[1];
    int choice = 0;
    (void)self;
    if (!pyweft_arguments_in_job(&signature, args, nargs, names, in) ||
        !pyweft_argument_choice(signature.call, "engine", in[0], engines, &choice))
        return NULL;
    PyObject *before = PyUnicode_FromString(engines[shmemx_get_engine()]);
    int error = before ? shmemx_set_engine((shmemx_engine_t)choice) : 0;
    if (error)
        Py_CLEAR(before);
    return error ? pyweft_error_raise(signature.call, error) : before;
}

PyMethodDef pyweft_rma_methods[] = {
    PYWEFT_METHOD(
        put, "put(dest, source, pe, *, ctx=None, stream=None)\n--\n\n"
             "Copies source, an array of this PE, into PE pe's copy of the symmetric dest. Both\n"
             "have the same size in bytes and one type; uint8 is accepted with any type. source\n"
             "may be reused on return.\n\n" PYWEFT_ON_STREAM ARRAYS_AND_STATE),
    PYWEFT_METHOD(
        get, "get(dest, source, pe, *, ctx=None, stream=None)\n--\n\n"
             "Copies PE pe's copy of the symmetric source into dest, an array of this PE. Sizes\n"
             "and types as for put().\n\n" PYWEFT_ON_STREAM ARRAYS_AND_STATE),
    PYWEFT_METHOD(put_nbi, "put_nbi(dest, source, pe, *, ctx=None)\n--\n\n"
                           "put(), non-blocking. " PYWEFT_UNTIL_QUIET "put()."),
    PYWEFT_METHOD(get_nbi, "get_nbi(dest, source, pe, *, ctx=None)\n--\n\n"
                           "get(), non-blocking. " PYWEFT_UNTIL_QUIET "get()."),
    PYWEFT_METHOD(
        set_engine,
        "set_engine(engine)\n--\n\n"
        "Chooses the engine that copies GPU memory from now on, in this process: 'sm',\n"
        "the multiprocessors; 'copy', a copy engine; 'auto', the faster one for the size.\n"
        "Returns the previous choice."),
    {NULL, NULL, 0, NULL},
};
