/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the library, and converts types for it.
 *
 * A library multiplies f32, f64 and, if the processor can, bf16 into f32 directly. Other products
 * are made in blocks in this thread's scratch memory: inputs are widened before, 8-bit inputs to
 * bf16 if the library has it, else to f32; afterwards a product is scaled, and a 16-bit result
 * rounded. */
#include "ops/matmul.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/size.h"
#include "job/job.h"
#include "ops/matmul_exit.h"

static struct weft_matmul_library library;
static pthread_once_t library_once = PTHREAD_ONCE_INIT;
static pthread_key_t scratch_key;

/* Only grows, and is kept until its thread ends, because new pages cost more than some products. */
static _Thread_local struct scratch {
    void *memory;
    size_t bytes;
} scratch;

static void open_libraries(void) {
    weft_matmul_begin();
    weft_matmul_open_onednn(&library);
    weft_matmul_open_blas(&library);
    weft_matmul_end();
    pthread_key_create(&scratch_key, free);
}

static float *scratch_floats(size_t nelems) {
    size_t bytes = nelems * sizeof(float);
    if (bytes <= scratch.bytes)
        return scratch.memory;
    free(scratch.memory);
    scratch.memory = NULL;
    scratch.bytes = 0;
    if (posix_memalign(&scratch.memory, weft_page_bytes(), bytes) == 0)
        scratch.bytes = bytes;
    else
        scratch.memory = NULL;
    pthread_setspecific(scratch_key, scratch.memory);
    return scratch.memory;
}

/* Returns this PE's share of its host's processors, at most the number on which it may run. */
static int threads_share(void) {
    int share = weft_job.npes > 0 ? weft_job.control->cores / weft_boot_npes_here() : 1;
    cpu_set_t allowed;
    if (share > 1 && sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
        int mine = CPU_COUNT(&allowed);
        share = mine < share ? mine : share;
    }
    return share > 1 ? share : 1;
}

int weft_matmul_supports(weft_dtype dtype) {
    pthread_once(&library_once, open_libraries);
    if (dtype == WEFT_F64 ? library.f64 != NULL : library.f32 != NULL)
        return 0;
    if (dtype == WEFT_F64)
        return weft_fail_bare(-ENOTSUP, "no library multiplies f64 matrices: install OpenBLAS "
                                        "(Debian, Ubuntu: libopenblas0-pthread)");
    return weft_fail_bare(-ENOTSUP, "no library multiplies matrices: install oneDNN or OpenBLAS "
                                    "(Debian, Ubuntu: libdnnl2, libopenblas0-pthread)");
}

/* Returns the type in which the library takes such a factor: the same type or a wider one. */
static weft_dtype taken_as(weft_dtype dtype) {
    if (dtype == WEFT_F64)
        return WEFT_F64;
    bool fits_bf16 = dtype == WEFT_BF16 || dtype == WEFT_F8E4M3 || dtype == WEFT_F8E5M2;
    return fits_bf16 && library.bf16 ? WEFT_BF16 : WEFT_F32;
}

size_t weft_matmul_rows_least(weft_dtype dtype, bool scaled, bool transposed) {
    enum { LEAST = 256, SCALED_LEAST = 1024 };
    pthread_once(&library_once, open_libraries);
    if (dtype == WEFT_F64 || !library.parts_are_alike || (transposed && dtype == taken_as(dtype)))
        return SIZE_MAX;
    return scaled ? SCALED_LEAST : LEAST;
}

static struct weft_matmul_sizes sizes_of(const weft_matrix *a, const weft_matrix *b,
                                         const weft_matrix *c) {
    return (struct weft_matmul_sizes){c->rows, c->cols, a->cols,       a->ld,
                                      b->ld,   c->ld,   a->transposed, b->transposed};
}

static void clear(const weft_matrix *c) {
    for (size_t row = 0; row < c->rows; row++)
        memset(weft_matrix_at(c, row, 0), 0, c->cols * weft_element_bytes(c->dtype));
}

/* Makes one product of types that a library accepts. */
static int multiply(const weft_matrix *a, const weft_matrix *b, const weft_matrix *c) {
    if (a->cols == 0) {
        clear(c);
        return 0;
    }
    struct weft_matmul_sizes sizes = sizes_of(a, b, c);
    int threads = threads_share(), error;
    weft_matmul_begin();
    if (a->dtype == WEFT_F64)
        error = library.f64(sizes, threads, a->data, b->data, c->data);
    else if (a->dtype == WEFT_BF16)
        error = library.bf16(sizes, threads, a->data, b->data, c->data);
    else
        error = library.f32(sizes, threads, a->data, b->data, c->data);
    weft_matmul_end();
    return error;
}

/* Blocks are large enough that packing inside the library costs little (3 % with 512 rows, 20 %
 * with 64), and small enough that the scratch memory stays at tens of megabytes. */
struct blocks {
    bool widen, narrow;
    weft_dtype taken; /* the type to which factors are widened */
    size_t k, rows, cols;
    float *a, *b, *c; /* scratch: rows x k, k x cols, rows x cols, if needed */
};

static size_t clamp(size_t value, size_t low, size_t high) {
    return value < low ? low : value > high ? high : value;
}

static int blocks_plan(struct blocks *blocks, const weft_matrix *a, const weft_matrix *c) {
    enum { PANEL_ELEMS = 4 << 20 };
    blocks->taken = taken_as(a->dtype);
    blocks->widen = a->dtype != blocks->taken;
    blocks->narrow = c->dtype != WEFT_F32;
    blocks->k = a->cols > 0 ? a->cols : 1;
    blocks->rows = blocks->widen ? clamp(PANEL_ELEMS / 4 / blocks->k, 64, 512) : 512;
    blocks->cols = PANEL_ELEMS / (blocks->widen ? clamp(blocks->k, 512, PANEL_ELEMS / 256) : 512);
    if (blocks->rows > c->rows)
        blocks->rows = c->rows;
    if (blocks->cols > c->cols)
        blocks->cols = c->cols;
    size_t b = blocks->widen ? blocks->k * blocks->cols : 0;
    size_t a_elems = blocks->widen ? blocks->rows * blocks->k : 0;
    blocks->b = scratch_floats(b + a_elems + blocks->rows * blocks->cols);
    blocks->a = blocks->b + b;
    blocks->c = blocks->a + a_elems;
    return blocks->b ? 0 : -ENOMEM;
}

static void widen_rows(const weft_matrix *wide, const weft_matrix *part) {
    for (size_t row = 0; row < part->rows; row++) {
        const void *from = weft_matrix_at(part, row, 0);
        void *to = weft_matrix_at(wide, row, 0);
        if (wide->dtype == WEFT_BF16)
            weft_elements_widen_bf16(to, from, part->dtype, part->cols);
        else
            weft_elements_widen(to, from, part->dtype, part->cols);
    }
}

/* Widens a block of columns, which are contiguous, and copies it to the rows of `wide`. */
static void widen_transposed(const weft_matrix *wide, const weft_matrix *part) {
    enum { SIDE = 64 };
    _Alignas(64) float room[SIDE * SIDE];
    for (size_t row = 0; row < part->rows; row += SIDE)
        for (size_t col = 0; col < part->cols; col += SIDE) {
            size_t rows = clamp(part->rows - row, 0, SIDE), cols = clamp(part->cols - col, 0, SIDE);
            weft_matrix from = weft_matrix_part(part, row, rows, col, cols);
            weft_matrix to = weft_matrix_part(wide, row, rows, col, cols);
            weft_matrix block = {room, rows, cols, rows, wide->dtype, true};
            weft_matrix columns = weft_matrix_transpose(&from);
            weft_matrix wide_columns = weft_matrix_transpose(&block);
            widen_rows(&wide_columns, &columns);
            weft_elements_copy(&to, &block);
        }
}

/* Returns a part of a factor, widened to `taken`, row-major and densely packed in `room`. */
static weft_matrix widened(const weft_matrix *part, weft_dtype taken, float *room) {
    weft_matrix wide = {room, part->rows, part->cols, part->cols, taken, false};
    (part->transposed ? widen_transposed : widen_rows)(&wide, part);
    return wide;
}

static void narrow(const weft_matrix *part, const weft_matrix *floats) {
    for (size_t row = 0; row < part->rows; row++)
        weft_elements_narrow(weft_matrix_at(part, row, 0), part->dtype,
                             weft_matrix_at(floats, row, 0), part->cols);
}

/* Makes one block of c from rows of a and a panel of b, which has a type for the library. */
static int multiply_block(const struct blocks *blocks, const weft_matrix *a, const weft_matrix *b,
                          const struct weft_scaling *scaling, const weft_matrix *c) {
    weft_matrix left = blocks->widen ? widened(a, blocks->taken, blocks->a) : *a;
    weft_matrix floats = {blocks->c, c->rows, c->cols, c->cols, WEFT_F32, false};
    const weft_matrix *product = blocks->narrow ? &floats : c;
    int error = multiply(&left, b, product);
    if (!error && scaling)
        weft_scaling_apply(scaling, c, product);
    else if (!error && blocks->narrow)
        narrow(c, product);
    return error;
}

static int multiply_blocks(const weft_matrix *a, const weft_matrix *b,
                           const struct weft_scaling *scaling, const weft_matrix *c) {
    struct blocks blocks;
    int error = blocks_plan(&blocks, a, c);
    for (size_t col = 0; !error && col < c->cols; col += blocks.cols) {
        size_t cols = clamp(c->cols - col, 0, blocks.cols);
        weft_matrix panel = weft_matrix_cols(b, col, cols), strip = weft_matrix_cols(c, col, cols);
        if (blocks.widen)
            panel = widened(&panel, blocks.taken, blocks.b);
        for (size_t row = 0; !error && row < c->rows; row += blocks.rows) {
            size_t rows = clamp(c->rows - row, 0, blocks.rows);
            weft_matrix left = weft_matrix_rows(a, row, rows);
            weft_matrix out = weft_matrix_rows(&strip, row, rows);
            struct weft_piece piece = {row, rows, col, cols};
            struct weft_scaling part;
            if (scaling)
                part = weft_scaling_part(scaling, &piece);
            error = multiply_block(&blocks, &left, &panel, scaling ? &part : NULL, &out);
        }
    }
    return error;
}

static int failed(int error, const weft_matrix *a, const weft_matrix *c) {
    if (error == -EOVERFLOW)
        return weft_fail_bare(error, "%zu x %zu x %zu is more than this CBLAS can count", c->rows,
                              c->cols, a->cols);
    return weft_fail_bare(error, "the library could not multiply %zu x %zu x %zu: %s", c->rows,
                          c->cols, a->cols, strerror(-error));
}

struct weft_factor weft_matmul_pack(const weft_matrix *a, const weft_matrix *b, size_t rows) {
    struct weft_factor factor = {*b, NULL, threads_share()};
    struct weft_matmul_sizes sizes = {rows,  b->cols, b->rows,       a->ld,
                                      b->ld, b->cols, a->transposed, b->transposed};
    if (weft_matmul_supports(b->dtype) || b->dtype != WEFT_F32 || !library.packed_f32 ||
        rows == 0 || b->rows == 0 || b->cols == 0)
        return factor;
    weft_matmul_begin();
    size_t bytes = library.packed_f32_bytes(sizes, factor.threads);
    float *packed =
        bytes > 0 ? scratch_floats((bytes + sizeof *packed - 1) / sizeof *packed) : NULL;
    if (packed && library.pack_f32(sizes, factor.threads, b->data, packed) == 0)
        factor.packed = packed;
    weft_matmul_end();
    return factor;
}

int weft_matmul_by(const weft_matrix *a, const struct weft_factor *b, const weft_matrix *c) {
    if (!b->packed || c->rows == 0)
        return weft_matmul(a, &b->b, NULL, c);
    weft_matmul_begin();
    int error = library.packed_f32(sizes_of(a, &b->b, c), b->threads, a->data, b->packed, c->data);
    weft_matmul_end();
    return error ? failed(error, a, c) : 0;
}

int weft_matmul(const weft_matrix *a, const weft_matrix *b, const struct weft_scaling *scaling,
                const weft_matrix *c) {
    int error = weft_matmul_supports(a->dtype);
    if (error || c->rows == 0 || c->cols == 0)
        return error;
    bool as_it_is = a->dtype == taken_as(a->dtype) && !scaling &&
                    (c->dtype == WEFT_F32 || c->dtype == WEFT_F64);
    error = as_it_is ? multiply(a, b, c) : multiply_blocks(a, b, scaling, c);
    return error ? failed(error, a, c) : 0;
}
