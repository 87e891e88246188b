/* SPDX-License-Identifier: BSD-3-Clause */
/* The matmul of one PE: c = a x b on local or mapped memory, with this PE's share of the cores.
 *
 * The libraries that do the work are opened on the first call, never linked: oneDNN for f32 and
 * bf16, a CBLAS for f64 and for f32 where oneDNN is missing. matmul.c chooses among them; a
 * backend file knows one library and fills in what it offers. */
#ifndef WEFT_OPS_MATMUL_H
#define WEFT_OPS_MATMUL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft.h>
#include "ops/scaling.h"

/* a: M x K, b: K x N of one type, or each of an 8-bit one; c: M x N of the same type or f32, for
 * 8-bit types f32 or a 16-bit type. scaling: of the product, c not being f64, or NULL. The product
 * of zero K is zeros. c must not overlap a or b. Thread safe. 0; -ENOTSUP where no library
 * multiplies this type; -ENOMEM, -EOVERFLOW; each with text. */
int weft_matmul(const weft_matrix *a, const weft_matrix *b, const struct weft_scaling *scaling,
                const weft_matrix *c);

/* Rows that a part of a product has at least if it is made by itself for the sake of time: fewer
 * may have other bits than in the whole (oneDNN: below 256, measured), and 8-bit factors are
 * widened anew for each. Where a part ends inside of a product it ends at a multiple of the grain.
 * SIZE_MAX: such products are not cut, because the library takes the last rows of each in its own
 * way: a CBLAS, and oneDNN without AVX-512. So members on other processors may be told otherwise.
 */
enum { WEFT_MATMUL_GRAIN = 64 };
size_t weft_matmul_rows_least(weft_dtype dtype, bool scaled);

/* The second factor of several products, packed once for all of them where a library can do that,
 * and otherwise for each product. */
struct weft_factor {
    weft_matrix b;
    const void *packed; /* NULL: not */
    int threads;
};

/* For products of `rows` rows. Valid until this thread packs another one, or multiplies narrower
 * types than f32. */
struct weft_factor weft_matmul_pack(const weft_matrix *b, size_t rows);

/* weft_matmul, unscaled. */
int weft_matmul_by(const weft_matrix *a, const struct weft_factor *b, const weft_matrix *c);

/* Whether weft_matmul can multiply this type: 0, or -ENOTSUP with text. */
int weft_matmul_supports(weft_dtype dtype);

/* What a library offers; NULL where it has no such thing. All row-major; sizes and leading
 * dimensions in elements, each at least 1; `threads` at most are used. 0 or -errno without text. */
struct weft_matmul_sizes {
    size_t m, n, k, lda, ldb, ldc;
};
struct weft_matmul_library {
    int (*f32)(struct weft_matmul_sizes, int threads, const float *a, const float *b, float *c);
    int (*f64)(struct weft_matmul_sizes, int threads, const double *a, const double *b, double *c);
    int (*bf16)(struct weft_matmul_sizes, int threads, const uint16_t *a, const uint16_t *b,
                float *c);

    /* f32 and bf16 products of 256 rows and more have the bits that they have in larger ones. */
    bool parts_are_alike;

    /* Packs b for products of these sizes, of which m and lda may change from one to the next, and
     * multiplies by it, with the same number of threads. 0 bytes: packing does not pay. */
    size_t (*packed_f32_bytes)(struct weft_matmul_sizes, int threads);
    int (*pack_f32)(struct weft_matmul_sizes, int threads, const float *b, float *packed);
    int (*packed_f32)(struct weft_matmul_sizes, int threads, const float *a, const float *packed,
                      float *c);
};

/* Fill in what the library has and `library` does not have yet. */
void weft_matmul_open_onednn(struct weft_matmul_library *library);
void weft_matmul_open_blas(struct weft_matmul_library *library);

#endif
