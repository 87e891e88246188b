/* SPDX-License-Identifier: BSD-3-Clause */
/* The common part of collectives on arrays: dest, then source, of the same type. */
#ifndef PYWEFT_VECTORS_H
#define PYWEFT_VECTORS_H

#include "operator.h"

struct pyweft_vectors {
    struct pyweft_operator on;
    struct pyweft_array dest, source;
    size_t nelems; /* of one part */
    int root;
};

/* Reads the arrays. A source of NULL or None is dest itself. */
bool pyweft_vectors_take(struct pyweft_vectors *vectors, PyObject *dest, PyObject *source);

/* Checks that the whole has `part`'s number of elements for each member, and sets nelems to that
 * number. Returns false with ValueError. */
bool pyweft_vectors_divide(struct pyweft_vectors *vectors, const char *whole_name,
                           const struct pyweft_array *whole, const char *part_name,
                           const struct pyweft_array *part);

/* Returns the arrays' dtype if right, otherwise a dtype that the library refuses, which informs the
 * other members. */
weft_dtype pyweft_vectors_type(const struct pyweft_vectors *vectors, bool right);

/* Calls the library, by this thread or on the stream, and drops the arrays. If the arguments are
 * not `right`, an exception is set already; a call by this thread then fails on the other members,
 * too. */
typedef int pyweft_vectors_call(const struct pyweft_vectors *vectors, weft_dtype dtype);
PyObject *pyweft_vectors_run(struct pyweft_vectors *vectors, bool right, pyweft_vectors_call *call);
PyObject *pyweft_vectors_close(struct pyweft_vectors *vectors, int error);

/* The following functions are for calls that C offers for symmetric arrays only, and that end the
 * job if a member's arrays are wrong. check_symmetric checks that the arrays are symmetric, and
 * either identical (if in_place) or disjoint. Returns false with ValueError. */
bool pyweft_vectors_check_symmetric(const struct pyweft_vectors *vectors, size_t dest_bytes,
                                    size_t source_bytes, bool in_place);

/* The arguments of one member, exchanged with all other members before such a call, and the source
 * itself if it is short, so that the call need not be made. It fits into the message that every
 * tensor call exchanges, so it costs no more than that message. */
enum { PYWEFT_FACTS_MAX = 10, PYWEFT_CARRIED_BYTES = 48 };
struct pyweft_proposal {
    int64_t
        facts[PYWEFT_FACTS_MAX]; /* PYWEFT_FACT_CALL, PYWEFT_FACT_TYPE, then facts of the call */
    char source[PYWEFT_CARRIED_BYTES];
};
_Static_assert(sizeof(struct pyweft_proposal) == 128,
               "a proposal fits into a tensor call's message");

/* The call, to detect members that make different calls, and the element type. */
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

/* Exchanges the members' proposals. Collective. Returns all of them in order of rank, to be freed
 * with PyMem_Free. If a member is not `right` it has set its own exception, and the call fails on
 * all members; then returns NULL, and drops the arrays. */
struct pyweft_proposal *pyweft_vectors_propose(struct pyweft_vectors *vectors, bool right,
                                               const struct pyweft_proposal *mine);

/* Copies the source into the proposal if it is short enough. Returns whether it was. */
bool pyweft_vectors_carry(const struct pyweft_vectors *vectors, struct pyweft_proposal *mine);

/* Checks that the first `count` facts are the same on all members. If not, returns false with
 * ValueError, on all of them. */
bool pyweft_vectors_check_same(const struct pyweft_vectors *vectors,
                               const struct pyweft_proposal *proposals, int count);

/* Compares the arguments of all members: the call, type, arrays, and up to three numbers (elements,
 * dst, sst). Returns the proposals like pyweft_vectors_propose, or NULL with an exception on all
 * members if they differ. Sets *carried if all proposals contain their source; with NULL none
 * does. */
struct pyweft_proposal *pyweft_vectors_agree(struct pyweft_vectors *vectors, bool right,
                                             enum pyweft_proposed_call call, const int64_t *numbers,
                                             int count, bool *carried);

/* Makes the C call that the members have agreed on (NULL: none is needed), and drops the arrays. */
typedef int pyweft_vectors_plain(const struct pyweft_vectors *vectors);
PyObject *pyweft_vectors_finish(struct pyweft_vectors *vectors, pyweft_vectors_plain *call);

#endif
