/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays of collectives. */
#include "vectors.h"
#include <errno.h>
#include "session.h"

bool weft_vectors_take(struct weft_vectors *vectors, PyObject *dest, PyObject *source) {
    const struct weft_operator *on = &vectors->on;
    if (!weft_array_take(&vectors->dest, on->call, "dest", dest, WEFT_ARRAY_WRITTEN, on->stream) ||
        !weft_array_take(&vectors->source, on->call, "source",
                         source && source != Py_None ? source : dest, WEFT_ARRAY_READ, on->stream))
        return false;
    return weft_array_check_dtype(on->call, "dest", &vectors->dest, "source", &vectors->source);
}

bool weft_vectors_divide(struct weft_vectors *vectors, const char *whole_name,
                         const struct weft_array *whole, const char *part_name,
                         const struct weft_array *part) {
    char because[96];
    PyOS_snprintf(because, sizeof because, "the %zu of %s times %d members", part->nelems,
                  part_name, vectors->on.size);
    vectors->nelems = part->nelems;
    return weft_array_check_nelems(vectors->on.call, whole_name, whole,
                                   part->nelems * (size_t)vectors->on.size, because);
}

weft_dtype weft_vectors_type(const struct weft_vectors *vectors, bool right) {
    return right ? vectors->source.dtype->operand : (weft_dtype)WEFT_OPERATOR_REFUSES;
}

PyObject *weft_vectors_close(struct weft_vectors *vectors, int error) {
    weft_array_drop(&vectors->dest);
    weft_array_drop(&vectors->source);
    return weft_operator_close(&vectors->on, error);
}

/* On a stream there is nobody to tell: what is wrong is this member's alone. */
static int run(struct weft_vectors *vectors, bool right, weft_vectors_call *call) {
    if (!right && vectors->on.stream != WEFT_STREAM_HOST)
        return -EINVAL;
    return call(vectors, weft_vectors_type(vectors, right));
}

PyObject *weft_vectors_run(struct weft_vectors *vectors, bool right, weft_vectors_call *call) {
    int error;
    WEFT_UNLOCKED(error, run(vectors, right, call));
    return weft_vectors_close(vectors, error);
}
