/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets of elements, or of blocks of elements, at regular distances. */
#include <shmem_types.h>
#include "argument.h"
#include "error.h"
#include "rma.h"
#include "session.h"

/* `nblocks` blocks of `bsize` elements, whose beginnings are dst elements apart in dest and sst in
 * source. */
struct strided_transfer {
    struct pyweft_transfer transfer;
    size_t bsize, nblocks, dst, sst;
};

/* --- The calls of C -------------------------------------------------------------------------- */

#define MOVE(BITS, BYTES, VERB)                                                           \
    case BYTES:                                                                           \
        shmem_ctx_##VERB##BITS(target->ctx, dest, source, (ptrdiff_t)strided->dst,        \
                               (ptrdiff_t)strided->sst, strided->bsize, strided->nblocks, \
                               target->pe);                                               \
        break;

static int put_now(const struct strided_transfer *strided) {
    const struct pyweft_target *target = &strided->transfer.target;
    void *dest = strided->transfer.dest.data;
    const void *source = strided->transfer.source.data;
    switch (strided->transfer.dest.dtype->bytes) { SHMEM_SIZES(MOVE, ibput) }
    if (strided->transfer.dest.device >= 0)
        shmem_ctx_quiet(target->ctx);
    return 0;
}

static int get_now(const struct strided_transfer *strided) {
    const struct pyweft_target *target = &strided->transfer.target;
    void *dest = strided->transfer.dest.data;
    const void *source = strided->transfer.source.data;
    switch (strided->transfer.dest.dtype->bytes) { SHMEM_SIZES(MOVE, ibget) }
    return 0;
}
#undef MOVE

static int move_unlocked(const struct strided_transfer *strided, bool put) {
    const struct pyweft_transfer *transfer = &strided->transfer;
    size_t bytes = strided->nblocks * strided->bsize * transfer->dest.dtype->bytes;
    int error = 0;
    if (bytes == 0)
        return 0;
    if (bytes <= PYWEFT_SHORT_BYTES && transfer->dest.device < 0 && transfer->source.device < 0)
        PYWEFT_WITH_GIL_BRIEF(error, (put ? put_now : get_now)(strided));
    else
        PYWEFT_WITHOUT_GIL(error, (put ? put_now : get_now)(strided));
    return error;
}

/* --- Arguments ------------------------------------------------------------------------------- */

static bool take_positive(const char *call, const char *name, PyObject *object, size_t *value) {
    if (!pyweft_argument_size(call, name, object, value))
        return false;
    if (*value > 0)
        return true;
    PyErr_Format(PyExc_ValueError, "%s: argument %s is 0: pass 1 or more", call, name);
    return false;
}

/* Returns how many whole blocks fit an array. */
static size_t blocks_in(const struct pyweft_array *array, size_t bsize, size_t stride) {
    return array->nelems < bsize ? 0 : (array->nelems - bsize) / stride + 1;
}

/* Without a number, takes as many blocks as fit both arrays. */
static bool take_count(struct strided_transfer *strided, const char *name, PyObject *object) {
    const struct pyweft_transfer *transfer = &strided->transfer;
    size_t in_dest = blocks_in(&transfer->dest, strided->bsize, strided->dst);
    size_t in_source = blocks_in(&transfer->source, strided->bsize, strided->sst);
    size_t most = in_dest < in_source ? in_dest : in_source;
    strided->nblocks = most;
    if (object == Py_None || !object)
        return true;
    if (!pyweft_argument_size(transfer->call, name, object, &strided->nblocks))
        return false;
    if (strided->nblocks <= most)
        return true;
    PyErr_Format(PyExc_ValueError,
                 "%s: argument %s is %zu: dest has %zu elements and source %zu, enough for %zu",
                 transfer->call, name, strided->nblocks, transfer->dest.nelems,
                 transfer->source.nelems, most);
    return false;
}

static bool take_arrays(struct pyweft_transfer *transfer, PyObject *const *in, PyObject *ctx,
                        bool put) {
    const char *call = transfer->call;
    return pyweft_target_take(call, ctx, in[2], WEFT_STREAM_HOST, &transfer->target) &&
           pyweft_array_take(&transfer->dest, call, "dest", in[0], PYWEFT_ARRAY_WRITTEN,
                             WEFT_STREAM_HOST) &&
           pyweft_array_take(&transfer->source, call, "source", in[1], PYWEFT_ARRAY_READ,
                             WEFT_STREAM_HOST) &&
           pyweft_array_check_dtype(call, "dest", &transfer->dest, "source", &transfer->source) &&
           pyweft_array_check_symmetric(call, put ? "dest" : "source",
                                        put ? &transfer->dest : &transfer->source,
                                        transfer->target.world_pe);
}

/* in[]: dest, source, pe, bsize (NULL: 1), dst, sst, the number of blocks, ctx. */
static PyObject *move(struct strided_transfer *strided, PyObject *const *in, const char *count,
                      bool put) {
    struct pyweft_transfer *transfer = &strided->transfer;
    const char *call = transfer->call;
    PyObject *result = NULL;
    strided->bsize = strided->dst = strided->sst = 1;
    transfer->stream = WEFT_STREAM_HOST;
    if (take_arrays(transfer, in, in[7], put) &&
        take_positive(call, "bsize", in[3], &strided->bsize) &&
        take_positive(call, "dst", in[4], &strided->dst) &&
        take_positive(call, "sst", in[5], &strided->sst) && take_count(strided, count, in[6]))
        result = pyweft_error_result(call, move_unlocked(strided, put));
    pyweft_transfer_drop(transfer);
    return result;
}

static PyObject *move_elements(const struct pyweft_signature *signature, PyObject *const *args,
                               Py_ssize_t nargs, PyObject *names, bool put) {
    struct strided_transfer strided = {.transfer.call = signature->call};
    PyObject *in[7];
    if (!pyweft_arguments_in_job(signature, args, nargs, names, in))
        return NULL;
    PyObject *const given[] = {in[0], in[1], in[2], NULL, in[3], in[4], in[5], in[6]};
    return move(&strided, given, "nelems", put);
}

static PyObject *move_blocks(const struct pyweft_signature *signature, PyObject *const *args,
                             Py_ssize_t nargs, PyObject *names, bool put) {
    struct strided_transfer strided = {.transfer.call = signature->call};
    PyObject *in[8];
    if (!pyweft_arguments_in_job(signature, args, nargs, names, in))
        return NULL;
    return move(&strided, in, "nblocks", put);
}

#define ELEMENTS(NAME, PUT)                                                        \
    PYWEFT_FUNCTION(NAME) {                                                        \
        static const struct pyweft_signature signature = {                         \
            #NAME, 3, 6, {"dest", "source", "pe", "dst", "sst", "nelems", "ctx"}}; \
        (void)self;                                                                \
        return move_elements(&signature, args, nargs, names, PUT);                 \
    }
#define BLOCKS(NAME, PUT)                                                                    \
    PYWEFT_FUNCTION(NAME) {                                                                  \
        static const struct pyweft_signature signature = {                                   \
            #NAME, 6, 7, {"dest", "source", "pe", "bsize", "dst", "sst", "nblocks", "ctx"}}; \
        (void)self;                                                                          \
        return move_blocks(&signature, args, nargs, names, PUT);                             \
    }
ELEMENTS(iput, true)
ELEMENTS(iget, false)
BLOCKS(ibput, true)
BLOCKS(ibget, false)
#undef ELEMENTS
#undef BLOCKS

#define ERRORS                                                                                  \
    "\n\nStrides are counted in elements, and at least 1. Both arrays are contiguous, of one\n" \
    "type. With ctx, the call belongs to that context, and pe is a rank of its team.\n"         \
    "Errors as for put()."

PyMethodDef pyweft_strided_methods[] = {
    PYWEFT_METHOD(
        iput,
        "iput(dest, source, pe, dst=1, sst=1, nelems=None, *, ctx=None)\n--\n\n"
        "dest[i * dst] on PE pe <- source[i * sst] here, for `nelems` elements (None: as many\n"
        "as fit both arrays). dest is symmetric." ERRORS),
    PYWEFT_METHOD(
        iget,
        "iget(dest, source, pe, dst=1, sst=1, nelems=None, *, ctx=None)\n--\n\n"
        "dest[i * dst] here <- source[i * sst] on PE pe, for `nelems` elements (None: as many\n"
        "as fit both arrays). source is symmetric." ERRORS),
    PYWEFT_METHOD(
        ibput, "ibput(dest, source, pe, bsize, dst, sst, nblocks=None, *, ctx=None)\n--\n\n"
               "dest[i * dst:][:bsize] on PE pe <- source[i * sst:][:bsize] here, for `nblocks`\n"
               "blocks (None: as many whole blocks as fit both arrays). dest is symmetric." ERRORS),
    PYWEFT_METHOD(
        ibget,
        "ibget(dest, source, pe, bsize, dst, sst, nblocks=None, *, ctx=None)\n--\n\n"
        "dest[i * dst:][:bsize] here <- source[i * sst:][:bsize] on PE pe, for `nblocks`\n"
        "blocks (None: as many whole blocks as fit both arrays). source is symmetric." ERRORS),
    {NULL, NULL, 0, NULL},
};
