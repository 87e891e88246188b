/* SPDX-License-Identifier: BSD-3-Clause */
/* Agreement before a C collective that ends the job if arguments are wrong. The members exchange
 * their arguments by an all-gather, which a member with wrong arguments makes fail for all. Short
 * sources travel in the same message. */
#include <errno.h>
#include <string.h>
#include "memory.h"
#include "session.h"
#include "vectors.h"

bool pyweft_vectors_check_symmetric(const struct pyweft_vectors *vectors, size_t dest_bytes,
                                    size_t source_bytes, bool in_place) {
    const struct pyweft_array *dest = &vectors->dest, *source = &vectors->source;
    const char *call = vectors->on.call;
    bool same = in_place && dest->data == source->data;
    if (!pyweft_array_check_symmetric(call, "dest", dest, pyweft_session.pe) ||
        !pyweft_array_check_symmetric(call, "source", source, pyweft_session.pe))
        return false;
    if (same || dest->data + dest_bytes <= source->data ||
        source->data + source_bytes <= dest->data)
        return true;
    PyErr_Format(PyExc_ValueError, "%s: arguments dest and source overlap: pass arrays %s", call,
                 in_place ? "that are apart, or one and the same" : "that are apart");
    return false;
}

bool pyweft_vectors_carry(const struct pyweft_vectors *vectors, struct pyweft_proposal *mine) {
    const struct pyweft_array *source = &vectors->source;
    bool fits =
        source->bytes <= sizeof mine->source && source->device < 0 && vectors->dest.device < 0;
    if (fits && source->bytes > 0)
        memcpy(mine->source, source->data, source->bytes);
    return fits;
}

struct pyweft_proposal *pyweft_vectors_propose(struct pyweft_vectors *vectors, bool right,
                                               const struct pyweft_proposal *mine) {
    const struct pyweft_operator *on = &vectors->on;
    struct pyweft_proposal *all = PyMem_Malloc((size_t)on->size * sizeof *all);
    int error;
    if (right && !all)
        PyErr_NoMemory();
    PYWEFT_WITHOUT_GIL(error,
                       weft_all_gather(on->team, all, mine, sizeof *mine,
                                       right && all ? WEFT_U8 : (weft_dtype)PYWEFT_OPERATOR_REFUSES,
                                       WEFT_STREAM_HOST));
    if (!error)
        return all;
    PyMem_Free(all);
    Py_XDECREF(pyweft_vectors_close(vectors, error));
    return NULL;
}

/* --- Agreement of all members ----------------------------------------------------------------- */

enum { DEST = PYWEFT_FACTS_COMMON, DEST_OFFSET, SOURCE, SOURCE_OFFSET, CARRIED, NUMBERS };
_Static_assert(NUMBERS + 3 <= PYWEFT_FACTS_MAX, "there is room for three numbers");

/* Returns the index of the first fact that differs between members, or `count`. */
static int find_difference(const struct pyweft_proposal *proposals, int members, int count) {
    for (int fact = 0; fact < count; fact++)
        for (int member = 1; member < members; member++)
            if (proposals[member].facts[fact] != proposals[0].facts[fact])
                return fact;
    return count;
}

bool pyweft_vectors_check_same(const struct pyweft_vectors *vectors,
                               const struct pyweft_proposal *proposals, int count) {
    static const char *const what[PYWEFT_FACTS_MAX] = {
        [PYWEFT_FACT_CALL] = "make a different call, or pass a different op,",
        [PYWEFT_FACT_TYPE] = "pass arrays of a different type",
        [DEST] = "pass a different dest",
        [DEST_OFFSET] = "pass a different dest",
        [SOURCE] = "pass a different source",
        [SOURCE_OFFSET] = "pass a different source",
        [CARRIED] = "pass a different size",
        [NUMBERS] = "pass a different size",
        [NUMBERS + 1] = "pass a different dst",
        [NUMBERS + 2] = "pass a different sst",
    };
    int fact = find_difference(proposals, vectors->on.size, count);
    if (fact < count)
        PyErr_Format(
            PyExc_ValueError,
            "%s: the members' arguments differ: some %s than others, and all must pass the same",
            vectors->on.call, what[fact]);
    return fact == count;
}

/* Memory allocated by C code is not in the list of symmetric memory, so it is not compared. */
static void describe(const struct pyweft_vectors *vectors, int64_t *facts) {
    facts[PYWEFT_FACT_TYPE] = vectors->dest.dtype->operand;
    pyweft_memory_place(vectors->dest.data, &facts[DEST], &facts[DEST_OFFSET]);
    pyweft_memory_place(vectors->source.data, &facts[SOURCE], &facts[SOURCE_OFFSET]);
}

struct pyweft_proposal *pyweft_vectors_agree(struct pyweft_vectors *vectors, bool right,
                                             enum pyweft_proposed_call call, const int64_t *numbers,
                                             int count, bool *carried) {
    struct pyweft_proposal mine = {.facts = {[PYWEFT_FACT_CALL] = call}};
    if (right) {
        describe(vectors, mine.facts);
        mine.facts[CARRIED] = carried && pyweft_vectors_carry(vectors, &mine);
        memcpy(mine.facts + NUMBERS, numbers, (size_t)count * sizeof *numbers);
    }
    if (carried)
        *carried = mine.facts[CARRIED];
    struct pyweft_proposal *proposals = pyweft_vectors_propose(vectors, right, &mine);
    if (!proposals || pyweft_vectors_check_same(vectors, proposals, NUMBERS + count))
        return proposals;
    PyMem_Free(proposals);
    Py_XDECREF(pyweft_vectors_close(vectors, -EINVAL));
    return NULL;
}

PyObject *pyweft_vectors_finish(struct pyweft_vectors *vectors, pyweft_vectors_plain *call) {
    int error = 0;
    if (call)
        PYWEFT_WITHOUT_GIL(error, call(vectors));
    return pyweft_vectors_close(vectors, error);
}
