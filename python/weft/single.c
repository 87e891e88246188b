/* SPDX-License-Identifier: BSD-3-Clause */
/* p and g: one element of a symmetric array of any type, by its index. */
#include "argument.h"
#include "array.h"
#include "context.h"
#include "element.h"
#include "error.h"
#include "rma.h"
#include "session.h"
#include "word.h"

struct single {
    const char *call;
    struct pyweft_target target;
    struct pyweft_array array;
    char *at;
    _Alignas(16) char element[PYWEFT_ELEMENT_BYTES_MAX];
};

static int put(const struct single *single) {
    pyweft_put_whole(&single->array, single->at, single->element, single->array.dtype->bytes,
                     single->target.ctx, single->target.pe);
    return 0;
}

static int get(struct single *single) {
    shmem_ctx_getmem(single->target.ctx, single->element, single->at, single->array.dtype->bytes,
                     single->target.pe);
    return 0;
}

static bool take(struct single *single, const char *name, PyObject *array, PyObject *pe,
                 PyObject *index, PyObject *ctx, enum pyweft_array_use use) {
    const char *call = single->call;
    size_t at;
    if (!pyweft_target_take(call, ctx, pe, WEFT_STREAM_HOST, &single->target) ||
        !pyweft_array_take(&single->array, call, name, array, use, WEFT_STREAM_HOST) ||
        !pyweft_words_index(&single->array, call, name, index, &at) ||
        !pyweft_array_check_symmetric(call, name, &single->array, single->target.world_pe))
        return false;
    single->at = single->array.data + at * single->array.dtype->bytes;
    return true;
}

PYWEFT_FUNCTION(p) {
    static const struct pyweft_signature signature = {
        "p", 3, 3, {"dest", "value", "pe", "index", "ctx"}};
    struct single single = {.call = signature.call};
    PyObject *in[5], *result = NULL;
    int error;
    (void)self;
    if (!pyweft_arguments_in_job(&signature, args, nargs, names, in))
        return NULL;
    if (take(&single, "dest", in[0], in[2], in[3], in[4], PYWEFT_ARRAY_WRITTEN) &&
        pyweft_element_make(signature.call, single.array.dtype, in[1], single.element)) {
        if (single.array.device < 0)
            PYWEFT_WITH_GIL_BRIEF(error, put(&single));
        else
            PYWEFT_WITHOUT_GIL(error, put(&single));
        result = pyweft_error_result(signature.call, error);
    }
    pyweft_array_drop(&single.array);
    return result;
}

PYWEFT_FUNCTION(g) {
    static const struct pyweft_signature signature = {"g", 2, 2, {"source", "pe", "index", "ctx"}};
    struct single single = {.call = signature.call};
    PyObject *in[4], *result = NULL;
    int error;
    (void)self;
    if (!pyweft_arguments_in_job(&signature, args, nargs, names, in))
        return NULL;
    if (take(&single, "source", in[0], in[1], in[2], in[3], PYWEFT_ARRAY_READ)) {
        if (single.array.device < 0)
            PYWEFT_WITH_GIL_BRIEF(error, get(&single));
        else
            PYWEFT_WITHOUT_GIL(error, get(&single));
        result = error ? pyweft_error_raise(signature.call, error)
                       : pyweft_element_read(single.array.dtype, single.element);
    }
    pyweft_array_drop(&single.array);
    return result;
}

#define ERRORS                                                                               \
    "\n\nFor elements of any type, in host or GPU memory. With ctx, the call\n"              \
    "belongs to that context, and pe is a rank of its team. ValueError: no such PE or\n"     \
    "element, an array that is not symmetric. TypeError: no array, no number, or one that\n" \
    "does not fit the type; OverflowError: a number out of the type's range.\n"              \
    "RuntimeError: before init(), after finalize(), or a GPU or a peer failed."

PyMethodDef pyweft_single_methods[] = {
    PYWEFT_METHOD(p, "p(dest, value, pe, *, index=0, ctx=None)\n--\n\n"
                     "Sets dest[index] on PE pe to value." ERRORS),
    PYWEFT_METHOD(g, "g(source, pe, *, index=0, ctx=None)\n--\n\n"
                     "Returns source[index] of PE pe, as a Python number." ERRORS),
    {NULL, NULL, 0, NULL},
};
