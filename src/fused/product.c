/* SPDX-License-Identifier: BSD-3-Clause */
/* cuBLASLt's matrices are column-major, so it is asked for the transposed product, c' = b' x a': a
 * row-major matrix is the transposed one, column-major, with the same leading dimension.
 *
 * The library needs some 20 us to recommend an algorithm. So what it needs for products of a shape
 * is kept in a table, at a place that depends on the shape; another shape may take that place. */
#include "fused/product.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include "base/env.h"
#include "base/hash.h"
#include "base/log.h"
#include "coll/elements.h"
#include "fused/cublaslt.h"

/* What the algorithm depends on. The alignments are those of the matrices' rows. Without padding,
 * because it is compared by its bytes. */
struct shape {
    uint64_t m, n, k, lda, ldb, ldc;
    uint32_t align_a, align_b, align_c;
    uint32_t type; /* weft_dtype */
    uint32_t transposed_a, transposed_b;
};

struct plan {
    struct shape shape;
    weft_lt_desc desc; /* NULL: the place is free */
    weft_lt_layout a, b, c;
    struct weft_lt_heuristic chosen;
};

enum { PLANS = 1024 };
static struct {
    pthread_mutex_t lock;
    weft_lt_handle handle;
    struct plan plans[PLANS];
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- Shapes ----------------------------------------------------------------------------------- */

/* Returns the largest power of two, up to 256, that divides the address of every row. */
static uint32_t row_alignment(const weft_matrix *m) {
    uintptr_t bits = (uintptr_t)m->data | (m->ld * weft_element_bytes(m->dtype)) | 256;
    return (uint32_t)(bits & -bits);
}

static struct shape shape_of(const weft_matrix *a, const weft_matrix *b, const weft_matrix *c) {
    return (struct shape){.m = c->rows,
                          .n = c->cols,
                          .k = a->cols,
                          .lda = a->ld,
                          .ldb = b->ld,
                          .ldc = c->ld,
                          .align_a = row_alignment(a),
                          .align_b = row_alignment(b),
                          .align_c = row_alignment(c),
                          .type = (uint32_t)c->dtype,
                          .transposed_a = a->transposed,
                          .transposed_b = b->transposed};
}

/* --- Plans ------------------------------------------------------------------------------------ */

struct types {
    int element, compute, scale;
};

static struct types types_of(weft_dtype dtype) {
    int f32 = weft_env.tf32[0] == '1' ? WEFT_LT_COMPUTE_32F_FAST_TF32 : WEFT_LT_COMPUTE_32F;
    switch (dtype) {
    case WEFT_F64:
        return (struct types){WEFT_LT_R_64F, WEFT_LT_COMPUTE_64F, WEFT_LT_R_64F};
    case WEFT_BF16:
        return (struct types){WEFT_LT_R_16BF, WEFT_LT_COMPUTE_32F, WEFT_LT_R_32F};
    case WEFT_F16:
        return (struct types){WEFT_LT_R_16F, WEFT_LT_COMPUTE_32F, WEFT_LT_R_32F};
    default:
        return (struct types){WEFT_LT_R_32F, f32, WEFT_LT_R_32F};
    }
}

static int desc_make(struct plan *plan, const struct types *types) {
    const struct weft_cublaslt *lt = &weft_cublaslt;
    int first = plan->shape.transposed_b ? WEFT_LT_OP_T : WEFT_LT_OP_N;
    int second = plan->shape.transposed_a ? WEFT_LT_OP_T : WEFT_LT_OP_N;
    int status = lt->cublasLtMatmulDescCreate(&plan->desc, types->compute, types->scale);
    if (status == 0)
        status = lt->cublasLtMatmulDescSetAttribute(plan->desc, WEFT_LT_DESC_TRANSA, &first,
                                                    sizeof first);
    if (status == 0)
        status = lt->cublasLtMatmulDescSetAttribute(plan->desc, WEFT_LT_DESC_TRANSB, &second,
                                                    sizeof second);
    return weft_cublaslt_check(status, "cublasLtMatmulDescCreate");
}

/* A row-major rows x cols matrix is column-major cols x rows; a transposed one is column-major as
 * it is. */
static int layout_make(weft_lt_layout *layout, int type, uint64_t rows, uint64_t cols, uint64_t ld,
                       bool transposed) {
    return weft_cublaslt_check(
        weft_cublaslt.cublasLtMatrixLayoutCreate(layout, type, transposed ? rows : cols,
                                                 transposed ? cols : rows, (int64_t)ld),
        "cublasLtMatrixLayoutCreate");
}

static int layouts_make(struct plan *plan, int type) {
    const struct shape *s = &plan->shape;
    int error = layout_make(&plan->a, type, s->m, s->k, s->lda, s->transposed_a);
    error = error ? error : layout_make(&plan->b, type, s->k, s->n, s->ldb, s->transposed_b);
    return error ? error : layout_make(&plan->c, type, s->m, s->n, s->ldc, false);
}

static int preference_make(weft_lt_preference *preference, const struct shape *s) {
    const struct weft_cublaslt *lt = &weft_cublaslt;
    const uint64_t room = WEFT_PRODUCT_ROOM_BYTES;
    const uint32_t alignments[] = {s->align_b, s->align_a, s->align_c, s->align_c};
    int status = lt->cublasLtMatmulPreferenceCreate(preference);
    if (status == 0)
        status = lt->cublasLtMatmulPreferenceSetAttribute(*preference, WEFT_LT_PREF_WORKSPACE_BYTES,
                                                          &room, sizeof room);
    for (int i = 0; i < 4 && status == 0; i++)
        status = lt->cublasLtMatmulPreferenceSetAttribute(*preference, WEFT_LT_PREF_ALIGNMENT_A + i,
                                                          &alignments[i], sizeof alignments[i]);
    return weft_cublaslt_check(status, "cublasLtMatmulPreferenceCreate");
}

static int algorithm_choose(struct plan *plan) {
    const struct shape *s = &plan->shape;
    weft_lt_preference preference = NULL;
    int count = 0, error = preference_make(&preference, s);
    if (error == 0) {
        int status = weft_cublaslt.cublasLtMatmulAlgoGetHeuristic(
            kept.handle, plan->desc, plan->b, plan->a, plan->c, plan->c, preference, 1,
            &plan->chosen, &count);
        if (status == WEFT_LT_NOT_SUPPORTED || (status == 0 && count == 0))
            error = weft_fail(-ENOTSUP,
                              "cuBLASLt has no algorithm for %llu x %llu x %llu %s elements (M x N "
                              "x K), leading dimensions %llu, %llu, %llu",
                              (unsigned long long)s->m, (unsigned long long)s->n,
                              (unsigned long long)s->k, weft_element_name((weft_dtype)s->type),
                              (unsigned long long)s->lda, (unsigned long long)s->ldb,
                              (unsigned long long)s->ldc);
        else
            error = weft_cublaslt_check(status, "cublasLtMatmulAlgoGetHeuristic");
    }
    if (preference)
        weft_cublaslt.cublasLtMatmulPreferenceDestroy(preference);
    return error;
}

static void plan_clear(struct plan *plan) {
    weft_lt_layout layouts[] = {plan->a, plan->b, plan->c};
    for (int i = 0; i < 3; i++)
        if (layouts[i])
            weft_cublaslt.cublasLtMatrixLayoutDestroy(layouts[i]);
    if (plan->desc)
        weft_cublaslt.cublasLtMatmulDescDestroy(plan->desc);
    *plan = (struct plan){.desc = NULL};
}

static int plan_make(struct plan *plan, const struct shape *shape) {
    struct types types = types_of((weft_dtype)shape->type);
    plan_clear(plan);
    plan->shape = *shape;
    int error = desc_make(plan, &types);
    error = error ? error : layouts_make(plan, types.element);
    error = error ? error : algorithm_choose(plan);
    if (error)
        plan_clear(plan);
    return error;
}

static int plan_find(struct plan **plan, const struct shape *shape) {
    int error = 0;
    *plan = &kept.plans[weft_hash(WEFT_HASH_BASIS, shape, sizeof *shape) % PLANS];
    if (!kept.handle)
        error = weft_cublaslt_check(weft_cublaslt.cublasLtCreate(&kept.handle), "cublasLtCreate");
    if (error || ((*plan)->desc && memcmp(&(*plan)->shape, shape, sizeof *shape) == 0))
        return error;
    return plan_make(*plan, shape);
}

/* --- Products --------------------------------------------------------------------------------- */

static int plan_enqueue(const struct plan *plan, const void *a, const void *b, void *c, void *room,
                        weft_cu_stream stream) {
    static const float one = 1, zero = 0;
    static const double one64 = 1, zero64 = 0;
    bool wide = plan->shape.type == WEFT_F64;
    int status = weft_cublaslt.cublasLtMatmul(
        kept.handle, plan->desc, wide ? (const void *)&one64 : &one, b, plan->b, a, plan->a,
        wide ? (const void *)&zero64 : &zero, c, plan->c, c, plan->c, plan->chosen.algorithm, room,
        WEFT_PRODUCT_ROOM_BYTES, stream);
    return weft_cublaslt_check(status, "cublasLtMatmul");
}

static int zeros_enqueue(const weft_matrix *c, weft_cu_stream stream) {
    size_t element = weft_element_bytes(c->dtype);
    return weft_cuda_check(weft_cuda.cuMemsetD2D8Async((weft_cu_address)c->data, c->ld * element, 0,
                                                       c->cols * element, c->rows, stream),
                           "cuMemsetD2D8Async");
}

int weft_product_enqueue(const weft_matrix *a, const weft_matrix *b, const weft_matrix *c,
                         void *room, weft_cu_stream stream) {
    struct plan *plan;
    if (c->rows == 0 || c->cols == 0)
        return 0;
    if (a->cols == 0)
        return zeros_enqueue(c, stream);
    struct shape shape = shape_of(a, b, c);
    pthread_mutex_lock(&kept.lock);
    int error = plan_find(&plan, &shape);
    error = error ? error : plan_enqueue(plan, a->data, b->data, c->data, room, stream);
    pthread_mutex_unlock(&kept.lock);
    return error;
}

int weft_product_begin(void) {
    return weft_cublaslt_load();
}
