/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions of several arrays into one, element by element, for every type of the standard.
 *
 * Sources are taken in the given order, however many they are and however the arrays are split, so
 * a result has the same bits wherever it is computed. Integers wrap around. min and max return NaN
 * if an operand is NaN. */
#ifndef WEFT_COLL_FOLD_H
#define WEFT_COLL_FOLD_H

#include <limits.h>
#include <stddef.h>
#include "coll/number.h"

/* clang-format off */
#define WEFT_NUMBER_OF(T)                                                                         \
    _Generic((T){0},                                                                              \
        char:           CHAR_MIN < 0 ? WEFT_NUMBER_I8 : WEFT_NUMBER_U8,                           \
        signed char:    WEFT_NUMBER_I8,  unsigned char:      WEFT_NUMBER_U8,                      \
        short:          WEFT_NUMBER_I16, unsigned short:     WEFT_NUMBER_U16,                     \
        int:            WEFT_NUMBER_I32, unsigned:           WEFT_NUMBER_U32,                     \
        long:           WEFT_NUMBER_I64, unsigned long:      WEFT_NUMBER_U64,                     \
        long long:      WEFT_NUMBER_I64, unsigned long long: WEFT_NUMBER_U64,                     \
        float:          WEFT_NUMBER_FLOAT,    double:          WEFT_NUMBER_DOUBLE,                \
        float _Complex: WEFT_NUMBER_COMPLEXF, double _Complex: WEFT_NUMBER_COMPLEXD,              \
        long double:    WEFT_NUMBER_LONGDOUBLE)
/* clang-format on */
_Static_assert(sizeof(short) == 2 && sizeof(int) == 4 && sizeof(long) == 8 &&
                   sizeof(long long) == 8,
               "the integers are as wide as WEFT_NUMBER_OF says");

struct weft_fold {
    /* to[i] = so_far[i] op next[i]; `to` may be either of them. NULL: the type has no such op, or,
     * with elem_bytes > 0, it is a 16-bit float (coll/elements.h). */
    void (*pair)(void *to, const void *so_far, const void *next, size_t nelems);
    size_t elem_bytes;
};
extern const struct weft_fold weft_folds[WEFT_FOLD_OPS][WEFT_NUMBERS];

/* A collective reduction of nelems elements. A member's result folds the elements of all members,
 * of those up to itself, or of those before itself. In the last case member 0 gets zeros, so the
 * fold must be a sum. */
struct weft_folding {
    const struct weft_fold *fold;
    size_t nelems;
    enum weft_fold_of { WEFT_FOLD_OF_ALL, WEFT_FOLD_UP_TO_OWN, WEFT_FOLD_BEFORE_OWN } of;
    const struct weft_vector_folding *vector; /* of a reduction of weft.h; otherwise NULL */
};

/* Additional fields of a reduction of weft.h. 16-bit floats are folded as 32-bit floats and rounded
 * once, so the fold of some members is a partial result of 32 bits. An average is divided at the
 * end. */
struct weft_vector_folding {
    struct weft_reduction reduction;
    int npes; /* the divisor of an average */
    /* 0: a source is one block. Otherwise a source has a block of nelems for each member,
     * source_block bytes apart, and a dest has only its own block. */
    size_t source_block;
    char *partial; /* symmetric room for the partial results of a source; NULL: dest holds them */
    bool entered;  /* all members have entered, and their sources may be read */
};

/* Returns the bytes of an element of a partial result. */
static inline size_t weft_partial_bytes(const struct weft_fold *fold) {
    return fold->pair ? fold->elem_bytes : sizeof(float);
}

/* Elements [first, first + nelems) of the arrays of n members. */
struct weft_chunk {
    const void *const *sources;
    void *const *dests;
    int n;
    size_t first, nelems;
};

/* to[i] = the fold of the chunk's sources[0 ... n - 1][first + i] for i < nelems; n >= 1. `to` may
 * be the memory of one of these sources; `dests` is not used. */
void weft_fold_all(const struct weft_fold *fold, void *to, const struct weft_chunk *chunk);

/* Each member's dest = its result of a scan. A dest may be the same member's source. */
void weft_fold_scan(const struct weft_folding *folding, const struct weft_chunk *chunk);

#endif
