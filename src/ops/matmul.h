/* SPDX-License-Identifier: BSD-3-Clause */
/* The matmul of one PE: c = a x b in local or mapped memory, with this PE's share of the
 * processors.
 *
 * The libraries are opened at the first call, never linked: oneDNN for f32 and bf16, a CBLAS for
 * f64, and for f32 if there is no oneDNN. matmul.c chooses between them; each backend file knows
 * one library, and fills in its functions. */
#ifndef WEFT_OPS_MATMUL_H
#define WEFT_OPS_MATMUL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft.h>
#include "coll/scaling.h"

/* Computes c = a x b, for a: M x K and b: K x N of one type, or each of an 8-bit type; c: M x N of
 * the same type or f32, for 8-bit types f32 or a 16-bit type. a and b may be transposed. Scales the
 * product unless `scaling` is NULL; c is not f64 then. If K is zero, the product is zeros, and c
 * the bias if there is one. c must not overlap a or b. Thread safe. Returns 0; -ENOTSUP if no
 * library multiplies this type; -ENOMEM or -EOVERFLOW; each with text. */
int weft_matmul(const weft_matrix *a, const weft_matrix *b, const struct weft_scaling *scaling,
                const weft_matrix *c);

/* Returns the least number of rows of a part of a product that is computed separately to save time.
 * With fewer rows a part may have other bits than the whole product (oneDNN: below 256, measured),
 * and 8-bit factors are widened again for each part. A part that ends inside the product ends at a
 * multiple of the grain. Returns SIZE_MAX if products must not be cut, because the library computes
 * the last rows of each in another way (a CBLAS, and oneDNN without AVX-512), or because a factor
 * is transposed and the library reads it as it is: oneDNN chooses for that between kernels that add
 * in different orders, by sizes and leading dimensions. A factor that is widened is row-major
 * afterwards. So the result may differ between members. */
enum { WEFT_MATMUL_GRAIN = 64 };
size_t weft_matmul_rows_least(weft_dtype dtype, bool scaled, bool transposed);

/* The second factor of several products. It is packed once for all of them if a library can do
 * that, otherwise for each product. */
struct weft_factor {
    weft_matrix b;
    const void *packed; /* NULL: it is not packed */
    int threads;
};

/* Packs b for products of `rows` rows of a. The result is valid until this thread packs another
 * factor, or multiplies types narrower than f32. */
struct weft_factor weft_matmul_pack(const weft_matrix *a, const weft_matrix *b, size_t rows);

/* Does the work of weft_matmul, unscaled. */
int weft_matmul_by(const weft_matrix *a, const struct weft_factor *b, const weft_matrix *c);

/* Returns 0 if weft_matmul can multiply this type, or -ENOTSUP with text. */
int weft_matmul_supports(weft_dtype dtype);

/* The functions of a library; NULL: it lacks the function. c is row-major; sizes and leading
 * dimensions are in elements, each at least 1; at most `threads` are used. Functions return 0 or
 * -errno without text. */
struct weft_matmul_sizes {
    size_t m, n, k, lda, ldb, ldc;
    bool a_transposed, b_transposed;
};
struct weft_matmul_library {
    int (*f32)(struct weft_matmul_sizes, int threads, const float *a, const float *b, float *c);
    int (*f64)(struct weft_matmul_sizes, int threads, const double *a, const double *b, double *c);
    int (*bf16)(struct weft_matmul_sizes, int threads, const uint16_t *a, const uint16_t *b,
                float *c);

    /* Parts of f32 and bf16 products with 256 rows or more have the bits of the whole. */
    bool parts_are_alike;

    /* Pack b for products of these sizes, and multiply by it, with the same number of threads; m
     * and lda may change between products. 0 bytes: packing does not pay. */
    size_t (*packed_f32_bytes)(struct weft_matmul_sizes, int threads);
    int (*pack_f32)(struct weft_matmul_sizes, int threads, const float *b, float *packed);
    int (*packed_f32)(struct weft_matmul_sizes, int threads, const float *a, const float *packed,
                      float *c);
};

/* Fill in the functions of oneDNN or a CBLAS that `library` lacks. */
void weft_matmul_open_onednn(struct weft_matmul_library *library);
void weft_matmul_open_blas(struct weft_matmul_library *library);

#endif
