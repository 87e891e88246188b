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

/* What one member shows to all others before such a call: what it passes, and the source itself
 * where that is short, so that nothing is left for the call to do. All of it fits into the message
 * by which the members of a tensor call agree, so that it costs no more than that. */
enum { WEFT_FACTS_MAX = 10, WEFT_CARRIED_BYTES = 48 };
struct weft_shown {
    int64_t facts[WEFT_FACTS_MAX]; /* WEFT_FACT_CALL, WEFT_FACT_TYPE, then what the call likes */
    char source[WEFT_CARRIED_BYTES];
};
_Static_assert(sizeof(struct weft_shown) == 128, "what is shown fits into a tensor call's message");

/* Which call it is, lest different ones meet; and the type of the elements. */
enum weft_shown_call {
    WEFT_SHOWN_AND,
    WEFT_SHOWN_OR,
    WEFT_SHOWN_XOR,
    WEFT_SHOWN_INSCAN,
    WEFT_SHOWN_EXSCAN,
    WEFT_SHOWN_ALL_TO_ALLS,
    WEFT_SHOWN_COLLECT,
};
enum { WEFT_FACT_CALL, WEFT_FACT_TYPE, WEFT_FACTS_COMMON };

/* What all members show, in order of rank, to be freed by PyMem_Free. NULL with an exception: on
 * all members where one is not `right`, which has set its own. Drops the arrays then. */
struct weft_shown *weft_vectors_show(struct weft_vectors *vectors, bool right,
                                     const struct weft_shown *mine);

/* Whether the source is so short that it is shown: then it is in mine->source. */
bool weft_vectors_carry(const struct weft_vectors *vectors, struct weft_shown *mine);

/* Whether the first `count` facts are the same on all members: ValueError, on all of them. */
bool weft_vectors_check_same(const struct weft_vectors *vectors, const struct weft_shown *shown,
                             int count);

/* Shows what has to be the same on all members: call, type, objects, and up to three numbers: of
 * elements, dst, sst. As weft_vectors_show; an exception on all where anything differs. *carried:
 * all sources were shown; NULL where none shall be. */
struct weft_shown *weft_vectors_agree(struct weft_vectors *vectors, bool right,
                                      enum weft_shown_call call, const int64_t *numbers, int count,
                                      bool *carried);

/* Calls C with what the members have agreed on, and drops the arrays. */
typedef int weft_vectors_plain(const struct weft_vectors *vectors);
PyObject *weft_vectors_finish(struct weft_vectors *vectors, weft_vectors_plain *call);

#endif
