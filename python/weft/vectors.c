/* SPDX-License-Identifier: BSD-3-Clause */
/* The array arguments of collectives. */
#include "vectors.h"
#include <errno.h>
#include "session.h"

bool pyweft_vectors_take(struct pyweft_vectors *vectors, PyObject *dest, PyObject *source) {
    const struct pyweft_operator *on = &vectors->on;
    if (!pyweft_array_take(&vectors->dest, on->call, "dest", dest, PYWEFT_ARRAY_WRITTEN,
                           on->stream) ||
        !pyweft_array_take(&vectors->source, on->call, "source",
                           source && source != Py_None ? source : dest, PYWEFT_ARRAY_READ,
                           on->stream))
        return false;
    return pyweft_array_check_dtype(on->call, "dest", &vectors->dest, "source", &vectors->source);
}

bool pyweft_vectors_divide(struct pyweft_vectors *vectors, const char *whole_name,
                           const struct pyweft_array *whole, const char *part_name,
                           const struct pyweft_array *part) {
    char because[96];
    PyOS_snprintf(because, sizeof because, "the %zu of %s times %d members", part->nelems,
                  part_name, vectors->on.size);
    vectors->nelems = part->nelems;
    return pyweft_array_check_nelems(vectors->on.call, whole_name, whole,
                                     part->nelems * (size_t)vectors->on.size, because);
}

weft_dtype pyweft_vectors_type(const struct pyweft_vectors *vectors, bool right) {
    return right ? vectors->source.dtype->operand : (weft_dtype)PYWEFT_OPERATOR_REFUSES;
}

PyObject *pyweft_vectors_close(struct pyweft_vectors *vectors, int error) {
    pyweft_array_drop(&vectors->dest);
    pyweft_array_drop(&vectors->source);
    return pyweft_operator_close(&vectors->on, error);
}

/* On a stream the other members cannot be informed, so a wrong argument is this member's error
 * only. */
static int run(struct pyweft_vectors *vectors, bool right, pyweft_vectors_call *call) {
    if (!right && vectors->on.stream != WEFT_STREAM_HOST)
        return -EINVAL;
    return call(vectors, pyweft_vectors_type(vectors, right));
}

PyObject *pyweft_vectors_run(struct pyweft_vectors *vectors, bool right,
                             pyweft_vectors_call *call) {
    int error;
    PYWEFT_WITHOUT_GIL(error, run(vectors, right, call));
    return pyweft_vectors_close(vectors, error);
}
