/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops over plain arrays that the compiler vectorises, one for each type and operation, and a pass
 * over several sources in blocks that stay in the first-level cache. */
#include "coll/fold.h"
#include <complex.h>
#include <stdint.h>
#include <string.h>
#include "coll/loop.h"

/* clang-format off */
#define LOOP(NAME, T, VALUE, WIDEST, INDEPENDENT)                                                  \
    WIDEST static void NAME(void *to, const void *so_far, const void *next, size_t nelems) {       \
        T *result = to;                                                                            \
        const T *left = so_far, *right = next;                                                     \
        INDEPENDENT                                                                                \
        for (size_t i = 0; i < nelems; i++) {                                                      \
            T a = left[i], b = right[i];                                                           \
            result[i] = (T)(VALUE);                                                                \
        }                                                                                          \
    }
#define PAIR(NAME, T, VALUE) LOOP(NAME, T, VALUE, WEFT_WIDEST, WEFT_INDEPENDENT)

/* Types without vectors: long double, and products of complex numbers, which test for NaNs. */
#define LONE(NAME, T, VALUE) LOOP(NAME, T, VALUE, , )

/* Unsigned arithmetic wraps around; 1u prevents the promotion of narrow factors to int, which would
 * overflow. */
#define UNSIGNED(T, N)                                                                             \
    PAIR(and_##N, T, a & b) PAIR(or_##N, T, a | b) PAIR(xor_##N, T, a ^ b)                         \
    PAIR(sum_##N, T, a + b) PAIR(prod_##N, T, 1u * a * b)
UNSIGNED(uint8_t, u8) UNSIGNED(uint16_t, u16) UNSIGNED(uint32_t, u32) UNSIGNED(uint64_t, u64)

#define ORDERED(T, N) PAIR(max_##N, T, b > a ? b : a) PAIR(min_##N, T, b < a ? b : a)
ORDERED(int8_t, i8) ORDERED(int16_t, i16) ORDERED(int32_t, i32) ORDERED(int64_t, i64)
ORDERED(uint8_t, u8) ORDERED(uint16_t, u16) ORDERED(uint32_t, u32) ORDERED(uint64_t, u64)

#define REAL(T, N, KIND)                                                                           \
    KIND(max_##N, T, ((b > a) | (b != b)) ? b : a) KIND(min_##N, T, ((b < a) | (b != b)) ? b : a)  \
    KIND(sum_##N, T, a + b) KIND(prod_##N, T, a * b)
REAL(float, f, PAIR) REAL(double, d, PAIR) REAL(long double, ld, LONE)

#define COMPLEX(T, N) PAIR(sum_##N, T, a + b) LONE(prod_##N, T, a * b)
COMPLEX(float complex, cf) COMPLEX(double complex, cd)

#define ROW(NUMBER, NAME, T) [WEFT_NUMBER_##NUMBER] = {NAME, sizeof(T)}
#define BY_WIDTH(OP)                                                                               \
    ROW(I8, OP##_u8, uint8_t), ROW(I16, OP##_u16, uint16_t), ROW(I32, OP##_u32, uint32_t),         \
    ROW(I64, OP##_u64, uint64_t),                                                                  \
    ROW(U8, OP##_u8, uint8_t), ROW(U16, OP##_u16, uint16_t), ROW(U32, OP##_u32, uint32_t),         \
    ROW(U64, OP##_u64, uint64_t)
#define BY_SIGN(OP)                                                                                \
    ROW(I8, OP##_i8, int8_t), ROW(I16, OP##_i16, int16_t), ROW(I32, OP##_i32, int32_t),            \
    ROW(I64, OP##_i64, int64_t),                                                                   \
    ROW(U8, OP##_u8, uint8_t), ROW(U16, OP##_u16, uint16_t), ROW(U32, OP##_u32, uint32_t),         \
    ROW(U64, OP##_u64, uint64_t)
#define REALS(OP)                                                                                  \
    ROW(FLOAT, OP##_f, float), ROW(DOUBLE, OP##_d, double), ROW(LONGDOUBLE, OP##_ld, long double)
#define NARROW_REALS                                                                               \
    ROW(BF16, NULL, uint16_t), ROW(F16, NULL, uint16_t) /* folded in coll/elements.c */
#define COMPLEXES(OP)                                                                              \
    ROW(COMPLEXF, OP##_cf, float complex), ROW(COMPLEXD, OP##_cd, double complex)
    /* clang-format on */

    const struct weft_fold weft_folds[WEFT_FOLD_OPS][WEFT_NUMBERS] = {
        [WEFT_FOLD_AND] = {BY_WIDTH(and)},
        [WEFT_FOLD_OR] = {BY_WIDTH(or)},
        [WEFT_FOLD_XOR] = {BY_WIDTH(xor)},
        [WEFT_FOLD_MAX] = {BY_SIGN(max), REALS(max), NARROW_REALS},
        [WEFT_FOLD_MIN] = {BY_SIGN(min), REALS(min), NARROW_REALS},
        [WEFT_FOLD_SUM] = {BY_WIDTH(sum), REALS(sum), NARROW_REALS, COMPLEXES(sum)},
        [WEFT_FOLD_PROD] = {BY_WIDTH(prod), REALS(prod), NARROW_REALS, COMPLEXES(prod)},
};

/* Folds into a separate block, because `to` may be a source that has not been read yet. */
static void fold_block(const struct weft_fold *fold, char *to, const struct weft_chunk *chunk,
                       void *block) {
    size_t offset = chunk->first * fold->elem_bytes;
    const void *so_far = (const char *)chunk->sources[0] + offset;
    for (int s = 1; s < chunk->n; s++) {
        void *sum = s + 1 == chunk->n ? to : block;
        fold->pair(sum, so_far, (const char *)chunk->sources[s] + offset, chunk->nelems);
        so_far = sum;
    }
}

void weft_fold_all(const struct weft_fold *fold, void *to, const struct weft_chunk *chunk) {
    enum { BLOCK_BYTES = 4096 };
    _Alignas(64) char block[BLOCK_BYTES];
    size_t elem = fold->elem_bytes, end = chunk->first + chunk->nelems;
    struct weft_chunk part = *chunk;
    if (chunk->n == 1) {
        memmove(to, (const char *)chunk->sources[0] + chunk->first * elem, chunk->nelems * elem);
        return;
    }
    size_t step = chunk->n == 2 ? chunk->nelems : BLOCK_BYTES / elem;
    for (; part.first < end; part.first += step) {
        part.nelems = end - part.first < step ? end - part.first : step;
        fold_block(fold, (char *)to + (part.first - chunk->first) * elem, &part, block);
    }
}

/* --- Scans ----------------------------------------------------------------------------------- */

enum { SCAN_BYTES = 8 << 10 }; /* of each array: a few blocks fit into the cache */

/* Each result is the previous result folded with one more source. */
static void scan_inclusive(const struct weft_fold *fold, const struct weft_chunk *chunk) {
    size_t offset = chunk->first * fold->elem_bytes;
    const void *so_far = (const char *)chunk->sources[0] + offset;
    memmove((char *)chunk->dests[0] + offset, so_far, chunk->nelems * fold->elem_bytes);
    for (int member = 1; member < chunk->n; member++) {
        void *to = (char *)chunk->dests[member] + offset;
        fold->pair(to, so_far, (const char *)chunk->sources[member] + offset, chunk->nelems);
        so_far = to;
    }
}

/* A member's dest may be its source, so the source is added to the next sum before dest receives
 * the previous sum. */
static void scan_exclusive(const struct weft_fold *fold, const struct weft_chunk *chunk) {
    _Alignas(64) char sums[2][SCAN_BYTES];
    size_t offset = chunk->first * fold->elem_bytes, bytes = chunk->nelems * fold->elem_bytes;
    memcpy(sums[1], (const char *)chunk->sources[0] + offset, bytes);
    memset((char *)chunk->dests[0] + offset, 0, bytes);
    for (int member = 1; member < chunk->n; member++) {
        const void *so_far = sums[member % 2];
        if (member + 1 < chunk->n)
            fold->pair(sums[(member + 1) % 2], so_far,
                       (const char *)chunk->sources[member] + offset, chunk->nelems);
        memcpy((char *)chunk->dests[member] + offset, so_far, bytes);
    }
}

void weft_fold_scan(const struct weft_folding *folding, const struct weft_chunk *chunk) {
    size_t step = SCAN_BYTES / folding->fold->elem_bytes, end = chunk->first + chunk->nelems;
    struct weft_chunk block = *chunk;
    for (; block.first < end; block.first += step) {
        block.nelems = end - block.first < step ? end - block.first : step;
        (folding->of == WEFT_FOLD_UP_TO_OWN ? scan_inclusive : scan_exclusive)(folding->fold,
                                                                               &block);
    }
}
