/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops over plain arrays that the compiler vectorises; the loader selects the widest variant that
 * the processor supports. A block of dest is written in one loop, after or while the same elements
 * of the last source are read, so dest may be one of the sources. */
#include "coll/elements.h"
#include <string.h>
#include "coll/loop.h"
#include "coll/narrow.h"

enum { BLOCK_ELEMS = 1024, ELEMENT_BYTES_MAX = 16 };

/* How an element is reduced: not at all, as a float, in its own type, or as a truth value. */
enum kind { MOVED, WIDENED, FOLDED, LOGICAL };

static const struct element {
    unsigned char bytes;
    enum kind kind;
    enum weft_number number;
    const char *name;
} elements[] = {
    [WEFT_F32] = {4, WIDENED, WEFT_NUMBER_FLOAT, "WEFT_F32"},
    [WEFT_F64] = {8, FOLDED, WEFT_NUMBER_DOUBLE, "WEFT_F64"},
    [WEFT_BF16] = {2, WIDENED, WEFT_NUMBER_BF16, "WEFT_BF16"},
    [WEFT_F16] = {2, WIDENED, WEFT_NUMBER_F16, "WEFT_F16"},
    [WEFT_F8E4M3] = {1, MOVED, 0, "WEFT_F8E4M3"},
    [WEFT_F8E5M2] = {1, MOVED, 0, "WEFT_F8E5M2"},
    [WEFT_I8] = {1, FOLDED, WEFT_NUMBER_I8, "WEFT_I8"},
    [WEFT_I16] = {2, FOLDED, WEFT_NUMBER_I16, "WEFT_I16"},
    [WEFT_I32] = {4, FOLDED, WEFT_NUMBER_I32, "WEFT_I32"},
    [WEFT_I64] = {8, FOLDED, WEFT_NUMBER_I64, "WEFT_I64"},
    [WEFT_U8] = {1, FOLDED, WEFT_NUMBER_U8, "WEFT_U8"},
    [WEFT_U16] = {2, FOLDED, WEFT_NUMBER_U16, "WEFT_U16"},
    [WEFT_U32] = {4, FOLDED, WEFT_NUMBER_U32, "WEFT_U32"},
    [WEFT_U64] = {8, FOLDED, WEFT_NUMBER_U64, "WEFT_U64"},
    [WEFT_BOOL] = {1, LOGICAL, WEFT_NUMBER_U8, "WEFT_BOOL"},
    [WEFT_C64] = {8, FOLDED, WEFT_NUMBER_COMPLEXF, "WEFT_C64"},
    [WEFT_C128] = {16, FOLDED, WEFT_NUMBER_COMPLEXD, "WEFT_C128"},
};

static const struct element *element_of(weft_dtype dtype) {
    static const struct element none = {0, MOVED, 0, "?"};
    bool known = dtype >= WEFT_F32 && (size_t)dtype < sizeof elements / sizeof *elements;
    return known ? &elements[dtype] : &none;
}

size_t weft_element_bytes(weft_dtype dtype) {
    return element_of(dtype)->bytes;
}

const char *weft_element_name(weft_dtype dtype) {
    return element_of(dtype)->name;
}

const char *weft_op_name(weft_op op) {
    static const char *const names[] = {"?",        "WEFT_SUM", "WEFT_AVG",
                                        "WEFT_MAX", "WEFT_MIN", "WEFT_PROD"};
    return (size_t)op < sizeof names / sizeof *names ? names[op] : "?";
}

/* VALUE is an expression of `a`, an element of the source. */
#define CONVERT(NAME, TO, FROM, VALUE)                                                       \
    WEFT_WIDEST static void NAME(TO *restrict dest, const FROM *restrict source, size_t n) { \
        for (size_t i = 0; i < n; i++) {                                                     \
            FROM a = source[i];                                                              \
            dest[i] = VALUE;                                                                 \
        }                                                                                    \
    }
CONVERT(widen_bf16, float, uint16_t, weft_float_of_bf16(a))
CONVERT(widen_f16, float, uint16_t, weft_float_of_f16(a))
CONVERT(widen_f8e4m3, float, uint8_t, weft_float_of_f8e4m3(a))
CONVERT(widen_f8e5m2, float, uint8_t, weft_float_of_f8e5m2(a))
CONVERT(narrow_bf16, uint16_t, float, weft_bf16_of_float(a))
CONVERT(narrow_f16, uint16_t, float, weft_f16_of_float(a))
CONVERT(bf16_of_f8e4m3, uint16_t, uint8_t,
        (uint16_t)(weft_bits_of_float(weft_float_of_f8e4m3(a)) >> 16))
CONVERT(bf16_of_f8e5m2, uint16_t, uint8_t,
        (uint16_t)(weft_bits_of_float(weft_float_of_f8e5m2(a)) >> 16))
#undef CONVERT

void weft_elements_widen_bf16(uint16_t *dest, const void *source, weft_dtype dtype, size_t nelems) {
    (dtype == WEFT_F8E4M3 ? bf16_of_f8e4m3 : bf16_of_f8e5m2)(dest, source, nelems);
}

WEFT_WIDEST static void scale_elements(float *dest, const float *source, float factor,
                                       const float *scales, const float *bias, size_t n) {
    WEFT_INDEPENDENT
    for (size_t i = 0; i < n; i++)
        dest[i] = source[i] * factor * scales[i] + bias[i];
}

void weft_elements_scale(float *dest, const float *source, float factor, const float *scales,
                         const float *bias, size_t nelems) {
    scale_elements(dest, source, factor, scales, bias, nelems);
}

void weft_elements_widen(float *dest, const void *source, weft_dtype dtype, size_t nelems) {
    if (dtype == WEFT_BF16)
        widen_bf16(dest, source, nelems);
    else if (dtype == WEFT_F16)
        widen_f16(dest, source, nelems);
    else if (dtype == WEFT_F8E4M3)
        widen_f8e4m3(dest, source, nelems);
    else if (dtype == WEFT_F8E5M2)
        widen_f8e5m2(dest, source, nelems);
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

/* WEFT_AVG is a sum that is divided at the end. */
struct weft_reduction weft_element_reduction(weft_dtype dtype, weft_op op) {
    static const enum weft_fold_op numbers[] = {
        [WEFT_SUM] = WEFT_FOLD_SUM, [WEFT_AVG] = WEFT_FOLD_SUM,   [WEFT_MAX] = WEFT_FOLD_MAX,
        [WEFT_MIN] = WEFT_FOLD_MIN, [WEFT_PROD] = WEFT_FOLD_PROD,
    };
    static const enum weft_fold_op truths[] = {
        [WEFT_SUM] = WEFT_FOLD_OR,  [WEFT_AVG] = WEFT_FOLD_OR,   [WEFT_MAX] = WEFT_FOLD_OR,
        [WEFT_MIN] = WEFT_FOLD_AND, [WEFT_PROD] = WEFT_FOLD_AND,
    };
    const struct element *element = element_of(dtype);
    return (struct weft_reduction){.op = element->kind == LOGICAL ? truths[op] : numbers[op],
                                   .number = element->number,
                                   .average = op == WEFT_AVG};
}

static const struct weft_fold *fold_of(weft_dtype dtype, weft_op op) {
    struct weft_reduction reduction = weft_element_reduction(dtype, op);
    return &weft_folds[reduction.op][reduction.number];
}

static bool is_integer(enum weft_number number) {
    return number <= WEFT_NUMBER_U64;
}

bool weft_element_reduces(weft_dtype dtype, weft_op op) {
    const struct element *element = element_of(dtype);
    return element->kind != MOVED && fold_of(dtype, op)->elem_bytes > 0 &&
           (op != WEFT_AVG || !is_integer(element->number));
}

WEFT_WIDEST static void divide_f32(float *values, float by, size_t n) {
    for (size_t i = 0; i < n; i++)
        values[i] /= by;
}

WEFT_WIDEST static void divide_f64(double *values, double by, size_t n) {
    for (size_t i = 0; i < n; i++)
        values[i] /= by;
}

static void divide_elements(void *values, enum weft_number number, int by, size_t nelems) {
    bool complex = number == WEFT_NUMBER_COMPLEXF || number == WEFT_NUMBER_COMPLEXD;
    size_t n = complex ? 2 * nelems : nelems;
    if (number == WEFT_NUMBER_FLOAT || number == WEFT_NUMBER_COMPLEXF)
        divide_f32(values, (float)by, n);
    else
        divide_f64(values, by, n);
}

#define MULTIPLY(NAME, TYPE)                                                           \
    WEFT_WIDEST static void NAME(TYPE *dest, const TYPE *source, float by, size_t n) { \
        WEFT_INDEPENDENT                                                               \
        for (size_t i = 0; i < n; i++)                                                 \
            dest[i] = source[i] * by;                                                  \
    }
MULTIPLY(multiply_f32, float)
MULTIPLY(multiply_f64, double)
#undef MULTIPLY

/* A block of a row of the sources, to be reduced. */
struct reduction_block {
    const weft_matrix *sources;
    const float *factors; /* of the sources, or NULL */
    int nsources, of;
    weft_op op;
    size_t row, col, nelems;
};

/* Returns the block of source s: in place, or in `room` if it is converted to floats because its
 * type is reduced as float, or has a factor. */
static const void *block_of(const struct reduction_block *block, int s, void *room) {
    const weft_matrix *source = &block->sources[s];
    const void *at = weft_matrix_at(source, block->row, block->col);
    if (source->dtype != WEFT_F32 && element_of(source->dtype)->kind == WIDENED) {
        weft_elements_widen(room, at, source->dtype, block->nelems);
        at = room;
    }
    if (!block->factors)
        return at;
    if (source->dtype == WEFT_F64)
        multiply_f64(room, at, block->factors[s], block->nelems);
    else
        multiply_f32(room, at, block->factors[s], block->nelems);
    return room;
}

/* Floats of at most 32 bits are reduced as 32-bit floats, all other types in their own type. The
 * last step stores its result in dest if dest has the type in which it is reduced. */
static void reduce_block(const struct reduction_block *block, const weft_matrix *dest) {
    _Alignas(64) char first[BLOCK_ELEMS * ELEMENT_BYTES_MAX];
    _Alignas(64) double room[BLOCK_ELEMS];
    weft_dtype dtype = element_of(dest->dtype)->kind == WIDENED ? WEFT_F32 : dest->dtype;
    const struct weft_fold *fold = fold_of(dtype, block->op);
    void *at = weft_matrix_at(dest, block->row, block->col), *to = NULL;
    const void *result = block_of(block, 0, first);
    for (int s = 1; s < block->nsources; s++) {
        to = s + 1 == block->nsources && dest->dtype == dtype ? at : first;
        fold->pair(to, result, block_of(block, s, room), block->nelems);
        result = to;
    }
    if (block->op == WEFT_AVG && to)
        divide_elements(to, element_of(dtype)->number, block->of, block->nelems);
    if (at != result && dest->dtype == dtype)
        memcpy(at, result, block->nelems * weft_element_bytes(dtype));
    else if (at != result)
        weft_elements_narrow(at, dest->dtype, result, block->nelems);
}

/* Prefetches the same block of the next row: a peer's product is in another core's cache, and the
 * hardware prefetcher stops at the end of the page. */
static void prefetch_below(const struct reduction_block *block) {
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
    weft_elements_reduce_sums(dest, sources, nsources, op, nsources);
}

/* Reduces all blocks of all rows. */
static void reduce_blocks(struct reduction_block block, const weft_matrix *dest) {
    for (block.row = 0; block.row < dest->rows; block.row++)
        for (block.col = 0; block.col < dest->cols; block.col += BLOCK_ELEMS) {
            size_t left = dest->cols - block.col;
            block.nelems = left < BLOCK_ELEMS ? left : BLOCK_ELEMS;
            prefetch_below(&block);
            reduce_block(&block, dest);
        }
}

void weft_elements_reduce_sums(const weft_matrix *dest, const weft_matrix *sources, int nsources,
                               weft_op op, int of) {
    struct reduction_block block = {.sources = sources, .nsources = nsources, .of = of, .op = op};
    reduce_blocks(block, dest);
}

void weft_elements_sum_scaled(const weft_matrix *dest, const weft_matrix *sources,
                              const float *factors, int nsources) {
    struct reduction_block block = {
        .sources = sources, .factors = factors, .nsources = nsources, .of = 1, .op = WEFT_SUM};
    reduce_blocks(block, dest);
}

/* 16-bit floats have no loop for a pair, since they are rounded once at the end. */
static void fold_narrow(const struct weft_vector_folding *vector, int step, void *to,
                        const struct weft_chunk *chunk) {
    static const weft_op ops[WEFT_FOLD_OPS] = {[WEFT_FOLD_SUM] = WEFT_SUM,
                                               [WEFT_FOLD_MAX] = WEFT_MAX,
                                               [WEFT_FOLD_MIN] = WEFT_MIN,
                                               [WEFT_FOLD_PROD] = WEFT_PROD};
    const struct weft_reduction *reduction = &vector->reduction;
    weft_dtype dtype = reduction->number == WEFT_NUMBER_BF16 ? WEFT_BF16 : WEFT_F16;
    bool divides = reduction->average && !(step & WEFT_FOLD_TO_PARTIAL);
    size_t n = chunk->nelems;
    weft_matrix dest = {to, 1, n, n, step & WEFT_FOLD_TO_PARTIAL ? WEFT_F32 : dtype, false};
    weft_matrix from[chunk->n];
    for (int i = 0; i < chunk->n; i++) {
        weft_dtype type = i == 0 && step & WEFT_FOLD_FROM_PARTIAL ? WEFT_F32 : dtype;
        size_t offset = chunk->first * weft_element_bytes(type);
        from[i] = (weft_matrix){(char *)chunk->sources[i] + offset, 1, n, n, type, false};
    }
    weft_elements_reduce_sums(&dest, from, chunk->n, divides ? WEFT_AVG : ops[reduction->op],
                              vector->npes);
}

void weft_elements_fold(const struct weft_folding *folding, int step, void *to,
                        const struct weft_chunk *chunk) {
    const struct weft_vector_folding *vector = folding->vector;
    if (!folding->fold->pair) {
        fold_narrow(vector, step, to, chunk);
        return;
    }
    weft_fold_all(folding->fold, to, chunk);
    if (vector && vector->reduction.average && !(step & WEFT_FOLD_TO_PARTIAL))
        divide_elements(to, vector->reduction.number, vector->npes, chunk->nelems);
}

/* Copies a transposed block to a row-major one. */
#define TURN(NAME, TYPE)                                                   \
    static void NAME(const weft_matrix *dest, const weft_matrix *source) { \
        const TYPE *from = source->data;                                   \
        TYPE *to = dest->data;                                             \
        for (size_t row = 0; row < dest->rows; row++)                      \
            for (size_t col = 0; col < dest->cols; col++)                  \
                to[row * dest->ld + col] = from[col * source->ld + row];   \
    }
TURN(turn_8, uint8_t)
TURN(turn_16, uint16_t)
TURN(turn_32, uint32_t)
TURN(turn_64, uint64_t)
#undef TURN

/* Blocks are so small that the cache lines of both sides stay in the first-level cache. */
static void copy_transposed(const weft_matrix *dest, const weft_matrix *source) {
    enum { SIDE = 32 };
    size_t bytes = weft_element_bytes(dest->dtype);
    for (size_t row = 0; row < dest->rows; row += SIDE)
        for (size_t col = 0; col < dest->cols; col += SIDE) {
            size_t rows = dest->rows - row < SIDE ? dest->rows - row : SIDE;
            size_t cols = dest->cols - col < SIDE ? dest->cols - col : SIDE;
            weft_matrix to = weft_matrix_part(dest, row, rows, col, cols);
            weft_matrix from = weft_matrix_part(source, row, rows, col, cols);
            (bytes == 1   ? turn_8
             : bytes == 2 ? turn_16
             : bytes == 4 ? turn_32
                          : turn_64)(&to, &from);
        }
}

void weft_elements_copy(const weft_matrix *dest, const weft_matrix *source) {
    if (dest->transposed) {
        weft_matrix to = weft_matrix_transpose(dest), from = weft_matrix_transpose(source);
        weft_elements_copy(&to, &from);
        return;
    }
    if (source->transposed) {
        copy_transposed(dest, source);
        return;
    }
    size_t row_bytes = dest->cols * weft_element_bytes(dest->dtype);
    bool whole = dest->ld == dest->cols && source->ld == dest->cols;
    size_t rows = whole ? 1 : dest->rows, bytes = whole ? dest->rows * row_bytes : row_bytes;
    if (dest->data == source->data || bytes == 0 || dest->rows == 0)
        return;
    for (size_t row = 0; row < rows; row++)
        memcpy(weft_matrix_at(dest, row, 0), weft_matrix_at(source, row, 0), bytes);
}
