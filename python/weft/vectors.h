/* SPDX-License-Identifier: BSD-3-Clause */
/* What collectives on arrays have in common: dest, then source, of one type. */
#ifndef PYWEFT_VECTORS_H
#define PYWEFT_VECTORS_H

#include "operator.h"

struct pyweft_vectors {
    struct pyweft_operator on;
    struct pyweft_array dest, source;
    size_t nelems; /* of one part */
    int root;
};

/* A source of None (or NULL) is dest itself. */
bool pyweft_vectors_take(struct pyweft_vectors *vectors, PyObject *dest, PyObject *source);

/* The whole has a part for each member: ValueError if it has not as many elements. */
bool pyweft_vectors_divide(struct pyweft_vectors *vectors, const char *whole_name,
                           const struct pyweft_array *whole, const char *part_name,
                           const struct pyweft_array *part);

/* The type, or one that is none, so that the library tells the members. */
weft_dtype pyweft_vectors_type(const struct pyweft_vectors *vectors, bool right);

/* Calls the library, by this thread or on the stream, and drops the arrays. If the arguments are
 * not `right` an exception is set, and the members hear of it from the call by thread. */
typedef int pyweft_vectors_call(const struct pyweft_vectors *vectors, weft_dtype dtype);
PyObject *pyweft_vectors_run(struct pyweft_vectors *vectors, bool right, pyweft_vectors_call *call);
PyObject *pyweft_vectors_close(struct pyweft_vectors *vectors, int error);

/* The way of calls that C has only for symmetric arrays, and which end the job where a member's are
 * wrong. The arrays are symmetric and either the same or apart: ValueError. */
bool pyweft_vectors_check_symmetric(const struct pyweft_vectors *vectors, size_t dest_bytes,
                                    size_t source_bytes, bool in_place);

/* What one member shows to all others before such a call: what it passes, and the source itself
 * where that is short, so that nothing is left for the call to do. All of it fits into the message
 * by which the members of a tensor call agree, so that it costs no more than that. */
enum { PYWEFT_FACTS_MAX = 10, PYWEFT_CARRIED_BYTES = 48 };
struct pyweft_proposal {
    int64_t
        facts[PYWEFT_FACTS_MAX]; /* PYWEFT_FACT_CALL, PYWEFT_FACT_TYPE, then what the call likes */
    char source[PYWEFT_CARRIED_BYTES];
};
_Static_assert(sizeof(struct pyweft_proposal) == 128,
               "what is shown fits into a tensor call's message");

/* Which call it is, lest different ones meet; and the type of the elements. */
enum pyweft_proposed_call {
    PYWEFT_CALL_AND,
    PYWEFT_CALL_OR,
    PYWEFT_CALL_XOR,
    PYWEFT_CALL_INSCAN,
    PYWEFT_CALL_EXSCAN,
    PYWEFT_CALL_ALL_TO_ALLS,
    PYWEFT_CALL_COLLECT,
};
enum { PYWEFT_FACT_CALL, PYWEFT_FACT_TYPE, PYWEFT_FACTS_COMMON };

/* What all members show, in order of rank, to be freed by PyMem_Free. NULL with an exception: on
 * all members where one is not `right`, which has set its own. Drops the arrays then. */
struct pyweft_proposal *pyweft_vectors_propose(struct pyweft_vectors *vectors, bool right,
                                               const struct pyweft_proposal *mine);

/* Whether the source is so short that it is shown: then it is in mine->source. */
bool pyweft_vectors_carry(const struct pyweft_vectors *vectors, struct pyweft_proposal *mine);

/* Whether the first `count` facts are the same on all members: ValueError, on all of them. */
bool pyweft_vectors_check_same(const struct pyweft_vectors *vectors,
                               const struct pyweft_proposal *proposals, int count);

/* Shows what has to be the same on all members: call, type, objects, and up to three numbers: of
 * elements, dst, sst. As pyweft_vectors_propose; an exception on all where anything differs.
 * *carried: all sources were shown; NULL where none shall be. */
struct pyweft_proposal *pyweft_vectors_agree(struct pyweft_vectors *vectors, bool right,
                                             enum pyweft_proposed_call call, const int64_t *numbers,
                                             int count, bool *carried);

/* Calls C with what the members have agreed on, and drops the arrays. */
typedef int pyweft_vectors_plain(const struct pyweft_vectors *vectors);
PyObject *pyweft_vectors_finish(struct pyweft_vectors *vectors, pyweft_vectors_plain *call);

#endif
