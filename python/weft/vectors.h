/* SPDX-License-Identifier: BSD-3-Clause */
/* What collectives on arrays have in common: dest, then source, of one type. */
#ifndef WEFT_PYTHON_VECTORS_H
#define WEFT_PYTHON_VECTORS_H

#include "operator.h"

struct weft_vectors {
    struct weft_operator on;
    struct weft_array dest, source;
    size_t nelems; /* of one part */
    int root;
};

/* A source of None (or NULL) is dest itself. */
bool weft_vectors_take(struct weft_vectors *vectors, PyObject *dest, PyObject *source);

/* The whole has a part for each member: ValueError if it has not as many elements. */
bool weft_vectors_divide(struct weft_vectors *vectors, const char *whole_name,
                         const struct weft_array *whole, const char *part_name,
                         const struct weft_array *part);

/* The type, or one that is none, so that the library tells the members. */
weft_dtype weft_vectors_type(const struct weft_vectors *vectors, bool right);

/* Calls the library, by this thread or on the stream, and drops the arrays. If the arguments are
 * not `right` an exception is set, and the members hear of it from the call by thread. */
typedef int weft_vectors_call(const struct weft_vectors *vectors, weft_dtype dtype);
PyObject *weft_vectors_run(struct weft_vectors *vectors, bool right, weft_vectors_call *call);
PyObject *weft_vectors_close(struct weft_vectors *vectors, int error);

/* The way of calls that C has only for symmetric arrays, and which end the job where a member's are
 * wrong. The arrays are symmetric and either the same or apart: ValueError. */
bool weft_vectors_check_symmetric(const struct weft_vectors *vectors, size_t dest_bytes,
                                  size_t source_bytes, bool in_place);

/* Meets the members before such a call: whether all come with right arguments, the same type, the
 * same objects, and the same `numbers`: of elements, and of the call. Otherwise an exception on
 * all, and false. */
enum { WEFT_NUMBERS_MAX = 2 };
bool weft_vectors_agree(const struct weft_vectors *vectors, bool right, const double *numbers,
                        int count);

/* Calls C with what the members have agreed on, and drops the arrays. */
typedef int weft_vectors_plain(const struct weft_vectors *vectors);
PyObject *weft_vectors_finish(struct weft_vectors *vectors, bool agreed, weft_vectors_plain *call);

#endif
