/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops over plain arrays that the compiler vectorises; the loader picks the widest that the
 * processor has. A block of dest is written in one loop, after or while the same elements of the
 * last source are read, which is why dest may be one of the sources. */
#include "coll/elements.h"
#include <stdbool.h>
#include <string.h>
#include "coll/loop.h"

enum { BLOCK_ELEMS = 1024 };

size_t weft_element_bytes(weft_dtype dtype) {
    static const unsigned char bytes[] = {
        [WEFT_F32] = 4, [WEFT_F64] = 8, [WEFT_BF16] = 2, [WEFT_F16] = 2};
    return (size_t)dtype < sizeof bytes ? bytes[dtype] : 0;
}

static inline float as_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t as_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Arithmetic instead of a choice: compilers will not vectorise a branch around float operations. */
static inline uint32_t choose(bool condition, uint32_t yes, uint32_t no) {
    uint32_t mask = -(uint32_t)condition;
    return (yes & mask) | (no & ~mask);
}

static inline uint16_t bf16_of(float value) {
    uint32_t bits = as_bits(value);
    uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    uint32_t quiet = bits | 0x400000;
    return (uint16_t)(choose((bits & 0x7fffffff) > 0x7f800000, quiet, rounded) >> 16);
}

/* Moves exponent and mantissa into place and corrects the bias; infinities need it once more, and
 * subnormals are renormalised by a subtraction of normal numbers, exact even where hardware
 * flushes subnormals. (After F. Giesen's public notes on half floats.) */
static inline float float_of_f16(uint16_t half) {
    uint32_t bits = (uint32_t)(half & 0x7fff) << 13;
    uint32_t normal = bits + (112u << 23), special = bits + (224u << 23);
    uint32_t subnormal = as_bits(as_float(bits + (113u << 23)) - as_float(113u << 23));
    uint32_t magnitude = choose(bits >= 31u << 23, special, normal);
    magnitude = choose(bits < 1u << 23, subnormal, magnitude);
    return as_float(magnitude | (uint32_t)(half & 0x8000) << 16);
}

/* Three ranges of the result: too large or NaN; subnormal, where adding 0.5 makes the hardware
 * round at the right bit; normal, rounded to even by hand. */
static inline uint16_t f16_of(float value) {
    uint32_t bits = as_bits(value), magnitude = bits & 0x7fffffff;
    uint32_t special = choose(magnitude > 0x7f800000, 0x7e00, 0x7c00);
    uint32_t subnormal = as_bits(as_float(magnitude) + 0.5f) - as_bits(0.5f);
    uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    uint32_t half = choose(magnitude < 113u << 23, subnormal, normal);
    half = choose(magnitude >= 143u << 23, special, half);
    return (uint16_t)(half | (bits >> 16 & 0x8000));
}

WEFT_WIDEST static void widen_bf16(float *restrict dest, const uint16_t *restrict source,
                                   size_t n) {
    for (size_t i = 0; i < n; i++)
        dest[i] = as_float((uint32_t)source[i] << 16);
}

WEFT_WIDEST static void widen_f16(float *restrict dest, const uint16_t *restrict source, size_t n) {
    for (size_t i = 0; i < n; i++)
        dest[i] = float_of_f16(source[i]);
}

WEFT_WIDEST static void narrow_bf16(uint16_t *restrict dest, const float *restrict source,
                                    size_t n) {
    for (size_t i = 0; i < n; i++)
        dest[i] = bf16_of(source[i]);
}

WEFT_WIDEST static void narrow_f16(uint16_t *restrict dest, const float *restrict source,
                                   size_t n) {
    for (size_t i = 0; i < n; i++)
        dest[i] = f16_of(source[i]);
}

void weft_elements_widen(float *dest, const void *source, weft_dtype dtype, size_t nelems) {
    if (dtype == WEFT_BF16)
        widen_bf16(dest, source, nelems);
    else if (dtype == WEFT_F16)
        widen_f16(dest, source, nelems);
    else
        memcpy(dest, source, nelems * sizeof *dest);
}

void weft_elements_narrow(void *dest, weft_dtype dtype, const float *source, size_t nelems) {
    if (dtype == WEFT_BF16)
        narrow_bf16(dest, source, nelems);
    else if (dtype == WEFT_F16)
        narrow_f16(dest, source, nelems);
    else
        memcpy(dest, source, nelems * sizeof *source);
}

/* to[i] = value of a = so_far[i] and b = next[i]; `to` may be either of them. In the choices a NaN
 * on either side wins. */
#define FOLD(name, type, value)                                                              \
    WEFT_WIDEST static void name(type *to, const type *so_far, const type *next, size_t n) { \
        WEFT_INDEPENDENT                                                                     \
        for (size_t i = 0; i < n; i++) {                                                     \
            type a = so_far[i], b = next[i];                                                 \
            to[i] = value;                                                                   \
        }                                                                                    \
    }
FOLD(sum_f32, float, (a + b))
FOLD(sum_f64, double, (a + b))
FOLD(prod_f32, float, (a * b))
FOLD(prod_f64, double, (a * b))
FOLD(max_f32, float, ((b > a) | (b != b)) ? b : a)
FOLD(max_f64, double, ((b > a) | (b != b)) ? b : a)
FOLD(min_f32, float, ((b < a) | (b != b)) ? b : a)
FOLD(min_f64, double, ((b < a) | (b != b)) ? b : a)
#undef FOLD

static const struct fold {
    void (*f32)(float *to, const float *so_far, const float *next, size_t n);
    void (*f64)(double *to, const double *so_far, const double *next, size_t n);
} folds[] = {
    [WEFT_SUM] = {sum_f32, sum_f64},    [WEFT_AVG] = {sum_f32, sum_f64},
    [WEFT_MAX] = {max_f32, max_f64},    [WEFT_MIN] = {min_f32, min_f64},
    [WEFT_PROD] = {prod_f32, prod_f64},
};

WEFT_WIDEST static void divide_f32(float *values, float by, size_t n) {
    for (size_t i = 0; i < n; i++)
        values[i] /= by;
}

WEFT_WIDEST static void divide_f64(double *values, double by, size_t n) {
    for (size_t i = 0; i < n; i++)
        values[i] /= by;
}

/* A block of a row of the sources, reduced. */
struct block {
    const weft_matrix *sources;
    int nsources;
    weft_op op;
    size_t row, col, nelems;
};

/* The block of source s as floats: where it lies, or converted into `room`. */
static const float *block_floats(const struct block *block, int s, float *room) {
    const weft_matrix *source = &block->sources[s];
    const void *at = weft_matrix_at(source, block->row, block->col);
    if (source->dtype == WEFT_F32)
        return at;
    weft_elements_widen(room, at, source->dtype, block->nelems);
    return room;
}

/* The sums alternate between two arrays; the last goes to dest if the type is right. */
static void reduce_f32(const struct block *block, const weft_matrix *dest) {
    float sums[2][BLOCK_ELEMS], room[BLOCK_ELEMS], *to = NULL;
    void *at = weft_matrix_at(dest, block->row, block->col);
    const float *result = block_floats(block, 0, sums[0]);
    for (int s = 1; s < block->nsources; s++) {
        bool last = s + 1 == block->nsources && dest->dtype == WEFT_F32;
        to = last ? at : sums[s % 2];
        folds[block->op].f32(to, result, block_floats(block, s, room), block->nelems);
        result = to;
    }
    if (block->op == WEFT_AVG && to)
        divide_f32(to, (float)block->nsources, block->nelems);
    if (at != result)
        weft_elements_narrow(at, dest->dtype, result, block->nelems);
}

static void reduce_f64(const struct block *block, const weft_matrix *dest) {
    double sums[2][BLOCK_ELEMS], *to = NULL;
    void *at = weft_matrix_at(dest, block->row, block->col);
    const double *result = weft_matrix_at(&block->sources[0], block->row, block->col);
    for (int s = 1; s < block->nsources; s++) {
        const double *next = weft_matrix_at(&block->sources[s], block->row, block->col);
        to = s + 1 == block->nsources ? at : sums[s % 2];
        folds[block->op].f64(to, result, next, block->nelems);
        result = to;
    }
    if (block->op == WEFT_AVG && to)
        divide_f64(to, block->nsources, block->nelems);
    if (at != result)
        memcpy(at, result, block->nelems * sizeof *result);
}

/* Asks for the same block of the next row: a peer's product comes from another core's cache, and
 * what the processor fetches ahead by itself ends with the page. */
static void prefetch_below(const struct block *block) {
    enum { LINE_BYTES = 64, SECOND_LEVEL = 2 };
    for (int s = 0; s < block->nsources; s++) {
        const weft_matrix *source = &block->sources[s];
        if (block->row + 1 == source->rows)
            return;
        const char *at = weft_matrix_at(source, block->row + 1, block->col);
        size_t bytes = block->nelems * weft_element_bytes(source->dtype);
        for (size_t offset = 0; offset < bytes; offset += LINE_BYTES)
            __builtin_prefetch(at + offset, 0, SECOND_LEVEL);
    }
}

void weft_elements_reduce(const weft_matrix *dest, const weft_matrix *sources, int nsources,
                          weft_op op) {
    struct block block = {.sources = sources, .nsources = nsources, .op = op};
    for (block.row = 0; block.row < dest->rows; block.row++)
        for (block.col = 0; block.col < dest->cols; block.col += BLOCK_ELEMS) {
            size_t left = dest->cols - block.col;
            block.nelems = left < BLOCK_ELEMS ? left : BLOCK_ELEMS;
            prefetch_below(&block);
            if (dest->dtype == WEFT_F64)
                reduce_f64(&block, dest);
            else
                reduce_f32(&block, dest);
        }
}

void weft_elements_copy(const weft_matrix *dest, const weft_matrix *source) {
    size_t row_bytes = dest->cols * weft_element_bytes(dest->dtype);
    bool whole = dest->ld == dest->cols && source->ld == dest->cols;
    size_t rows = whole ? 1 : dest->rows, bytes = whole ? dest->rows * row_bytes : row_bytes;
    if (dest->data == source->data || bytes == 0 || dest->rows == 0)
        return;
    for (size_t row = 0; row < rows; row++)
        memcpy(weft_matrix_at(dest, row, 0), weft_matrix_at(source, row, 0), bytes);
}
