/* SPDX-License-Identifier: BSD-3-Clause */
/* cuBLASLt's matrices are column-major, so it is asked for the transposed product, c' = b' x a': a
 * row-major matrix is the transposed one, column-major, with the same leading dimension.
 *
 * The library needs some 20 us to recommend an algorithm. So each shape's descriptors and algorithm
 * are kept in a hash table; a shape with the same hash replaces the entry. The fastest of several
 * recommended algorithms and Weft's kernel is chosen (fused/trial.h), and the choice is kept for
 * later runs (fused/memo.h). A program whose shapes never end would spend its time in trials, so a
 * process has TRIALS_MAX. */
#include "fused/library.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "base/env.h"
#include "base/hash.h"
#include "fused/cublaslt.h"
#include "fused/hopper.h"
#include "fused/plan.h"
#include "fused/trial.h"

/* The properties on which the algorithm depends. The alignments are those of the matrices' rows.
 * The struct has no padding, because it is compared by its bytes. */
struct shape {
    uint64_t m, n, k, lda, ldb, ldc;
    uint32_t align_a, align_b, align_c;
    uint32_t type_a, type_b, type_c; /* weft_dtype */
    uint32_t transposed_a, transposed_b;
};

struct plan {
    struct shape shape; /* m is 0 if the place is free */
    weft_lt_desc desc;
    weft_lt_layout a, b, c;
    struct weft_lt_heuristic chosen;
    bool own; /* Weft's kernel multiplies instead */
};

enum { PLANS = 1024, TRIALS_MAX = 64 };
static struct {
    pthread_mutex_t lock;
    weft_lt_handle handle;
    int trials;
    struct plan plans[PLANS];
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- Shapes ----------------------------------------------------------------------------------- */

static struct shape shape_of(const struct weft_product *p) {
    const weft_matrix *a = &p->a, *b = &p->b, *c = &p->c;
    return (struct shape){.m = c->rows,
                          .n = c->cols,
                          .k = a->cols,
                          .lda = a->ld,
                          .ldb = b->ld,
                          .ldc = c->ld,
                          .align_a = weft_matrix_alignment(a),
                          .align_b = weft_matrix_alignment(b),
                          .align_c = weft_matrix_alignment(c),
                          .type_a = (uint32_t)a->dtype,
                          .type_b = (uint32_t)b->dtype,
                          .type_c = (uint32_t)c->dtype,
                          .transposed_a = a->transposed,
                          .transposed_b = b->transposed};
}

/* --- Plans ------------------------------------------------------------------------------------ */

static int element_type(uint32_t dtype) {
    static const int types[] = {
        [WEFT_F32] = WEFT_LT_R_32F,        [WEFT_F64] = WEFT_LT_R_64F,
        [WEFT_BF16] = WEFT_LT_R_16BF,      [WEFT_F16] = WEFT_LT_R_16F,
        [WEFT_F8E4M3] = WEFT_LT_R_8F_E4M3, [WEFT_F8E5M2] = WEFT_LT_R_8F_E5M2};
    return types[dtype];
}

static int compute_type(uint32_t dtype) {
    if (dtype == WEFT_F64)
        return WEFT_LT_COMPUTE_64F;
    bool narrow = dtype == WEFT_F32 && weft_env.tf32[0] == '1';
    return narrow ? WEFT_LT_COMPUTE_32F_FAST_TF32 : WEFT_LT_COMPUTE_32F;
}

static int desc_make(struct plan *plan) {
    const struct weft_cublaslt *lt = &weft_cublaslt;
    int scale = plan->shape.type_a == WEFT_F64 ? WEFT_LT_R_64F : WEFT_LT_R_32F;
    int first = plan->shape.transposed_b ? WEFT_LT_OP_T : WEFT_LT_OP_N;
    int second = plan->shape.transposed_a ? WEFT_LT_OP_T : WEFT_LT_OP_N;
    int status = lt->cublasLtMatmulDescCreate(&plan->desc, compute_type(plan->shape.type_a), scale);
    if (status == 0)
        status = lt->cublasLtMatmulDescSetAttribute(plan->desc, WEFT_LT_DESC_TRANSA, &first,
                                                    sizeof first);
    if (status == 0)
        status = lt->cublasLtMatmulDescSetAttribute(plan->desc, WEFT_LT_DESC_TRANSB, &second,
                                                    sizeof second);
    return weft_cublaslt_check(status, "cublasLtMatmulDescCreate");
}

/* A row-major rows x cols matrix is column-major cols x rows; a transposed matrix is column-major
 * as it is. */
static int layout_make(weft_lt_layout *layout, uint32_t dtype, uint64_t rows, uint64_t cols,
                       uint64_t ld, bool transposed) {
    int status = weft_cublaslt.cublasLtMatrixLayoutCreate(layout, element_type(dtype),
                                                          transposed ? rows : cols,
                                                          transposed ? cols : rows, (int64_t)ld);
    return weft_cublaslt_check(status, "cublasLtMatrixLayoutCreate");
}

static int layouts_make(struct plan *plan) {
    const struct shape *s = &plan->shape;
    int error = layout_make(&plan->a, s->type_a, s->m, s->k, s->lda, s->transposed_a);
    error = error ? error : layout_make(&plan->b, s->type_b, s->k, s->n, s->ldb, s->transposed_b);
    return error ? error : layout_make(&plan->c, s->type_c, s->m, s->n, s->ldc, false);
}

static int preference_make(weft_lt_preference *preference, const struct shape *s) {
    const struct weft_cublaslt *lt = &weft_cublaslt;
    const uint64_t room = WEFT_LIBRARY_ROOM_BYTES;
    const uint32_t schemes = WEFT_LT_REDUCTION_COMPUTE_TYPE;
    const uint32_t alignments[] = {s->align_b, s->align_a, s->align_c, s->align_c};
    int status = lt->cublasLtMatmulPreferenceCreate(preference);
    if (status == 0)
        status = lt->cublasLtMatmulPreferenceSetAttribute(*preference, WEFT_LT_PREF_WORKSPACE_BYTES,
                                                          &room, sizeof room);
    if (status == 0)
        status = lt->cublasLtMatmulPreferenceSetAttribute(
            *preference, WEFT_LT_PREF_REDUCTION_SCHEMES, &schemes, sizeof schemes);
    for (int i = 0; i < 4 && status == 0; i++)
        status = lt->cublasLtMatmulPreferenceSetAttribute(*preference, WEFT_LT_PREF_ALIGNMENT_A + i,
                                                          &alignments[i], sizeof alignments[i]);
    return weft_cublaslt_check(status, "cublasLtMatmulPreferenceCreate");
}

static int fail_refused(const struct shape *s) {
    return weft_fail(-ENOTSUP,
                     "cuBLASLt has no algorithm for %llu x %llu x %llu (M x N x K) %s elements, "
                     "leading dimensions %llu, %llu, %llu",
                     (unsigned long long)s->m, (unsigned long long)s->n, (unsigned long long)s->k,
                     weft_element_name((weft_dtype)s->type_a), (unsigned long long)s->lda,
                     (unsigned long long)s->ldb, (unsigned long long)s->ldc);
}

/* Stores in found the algorithms that the library recommends, the best first, and in *count their
 * number, which is at most `wanted`. */
static int algorithms_find(const struct plan *plan, int wanted, struct weft_lt_heuristic *found,
                           int *count) {
    weft_lt_preference preference = NULL;
    int error = preference_make(&preference, &plan->shape);
    *count = 0;
    if (error == 0) {
        int status = weft_cublaslt.cublasLtMatmulAlgoGetHeuristic(kept.handle, plan->desc, plan->b,
                                                                  plan->a, plan->c, plan->c,
                                                                  preference, wanted, found, count);
        bool refused = status == WEFT_LT_NOT_SUPPORTED || (status == 0 && *count == 0);
        error = refused ? fail_refused(&plan->shape)
                        : weft_cublaslt_check(status, "cublasLtMatmulAlgoGetHeuristic");
    }
    if (preference)
        weft_cublaslt.cublasLtMatmulPreferenceDestroy(preference);
    return error;
}

/* --- Products --------------------------------------------------------------------------------- */

/* The scales belong to the call, not to the shape: a call without scales removes those of an
 * earlier call. */
static int scales_set(const struct plan *plan, const struct weft_scaling *scaling) {
    const void *first = scaling ? scaling->cols.data : NULL;
    const void *second = scaling ? scaling->rows.data : NULL;
    int status = weft_cublaslt.cublasLtMatmulDescSetAttribute(
        plan->desc, WEFT_LT_DESC_A_SCALE_POINTER, &first, sizeof first);
    if (status == 0)
        status = weft_cublaslt.cublasLtMatmulDescSetAttribute(
            plan->desc, WEFT_LT_DESC_B_SCALE_POINTER, &second, sizeof second);
    return weft_cublaslt_check(status, "cublasLtMatmulDescSetAttribute");
}

static int plan_enqueue(const struct plan *plan, const struct weft_lt_heuristic *algorithm,
                        const struct weft_product *p, char *room, weft_cu_stream stream) {
    static const float one = 1, zero = 0;
    static const double one64 = 1, zero64 = 0;
    bool wide = plan->shape.type_a == WEFT_F64;
    bool narrow = weft_element_bytes(p->a.dtype) == 1;
    int error = narrow ? scales_set(plan, p->scaling) : 0;
    if (error)
        return error;
    int status = weft_cublaslt.cublasLtMatmul(
        kept.handle, plan->desc, wide ? (const void *)&one64 : &one, p->b.data, plan->b, p->a.data,
        plan->a, wide ? (const void *)&zero64 : &zero, p->c.data, plan->c, p->c.data, plan->c,
        algorithm->algorithm, room, WEFT_LIBRARY_ROOM_BYTES, stream);
    return weft_cublaslt_check(status, "cublasLtMatmul");
}

/* --- The fastest algorithm -------------------------------------------------------------------- */

enum { ALGORITHMS = 8 };

/* Hashes the rules of this file's choices, too, because a choice by other rules may break them. */
uint64_t weft_library_machine(uint64_t hash) {
    static const char rules[] = "sums in the type of computation, times in graphs";
    char name[128] = "";
    int driver = 0;
    size_t library = weft_cublaslt.cublasLtGetVersion();
    weft_cuda.cuDriverGetVersion(&driver);
    weft_cuda.cuDeviceGetName(name, sizeof name, weft_device.gpu->device);
    hash = weft_hash(hash, rules, sizeof rules);
    hash = weft_hash(hash, &driver, sizeof driver);
    hash = weft_hash(hash, &library, sizeof library);
    hash = weft_hash(hash, weft_env.tf32, strlen(weft_env.tf32));
    return weft_hash(hash, name, strlen(name));
}

bool weft_library_is_own(const uint64_t words[WEFT_MEMO_WORDS]) {
    uint64_t all = 0;
    for (int i = 0; i < WEFT_MEMO_WORDS; i++)
        all |= words[i];
    return all == 0;
}

static bool fits_own(const struct weft_product *p) {
    return !p->scaling && strcmp(weft_env.products, "cublaslt") != 0 &&
           weft_matrix_alignment(&p->c) >= 16 &&
           weft_plan_fits(weft_device.gpu->capability, &p->a, &p->b, &p->c);
}

static bool is_kept(struct plan *plan, uint64_t key, const struct weft_product *p) {
    struct weft_lt_heuristic *found = &plan->chosen, checked;
    if (!weft_memo_find(key, found->algorithm))
        return false;
    if (weft_library_is_own(found->algorithm))
        return plan->own = fits_own(p);
    return weft_cublaslt.cublasLtMatmulAlgoCheck(kept.handle, plan->desc, plan->b, plan->a, plan->c,
                                                 plan->c, found->algorithm, &checked) == 0 &&
           checked.workspace_bytes <= WEFT_LIBRARY_ROOM_BYTES;
}

static int own_enqueue(const struct weft_product *p, weft_cu_stream stream) {
    unsigned width = weft_plan_width(p->c.rows, p->c.cols, p->b.transposed, weft_device.gpu->sms);
    return weft_hopper_enqueue(&p->a, &p->b, &p->c, width, stream);
}

/* The product of a trial: into memory of its own, because the program may still use c. */
struct candidates {
    const struct plan *plan;
    const struct weft_lt_heuristic *found;
    int count; /* of found; the candidate after these is Weft's kernel */
    struct weft_product product;
    char *room;
};

static int candidate_enqueue(const void *context, int way, weft_cu_stream stream) {
    const struct candidates *all = context;
    return way == all->count
               ? own_enqueue(&all->product, stream)
               : plan_enqueue(all->plan, &all->found[way], &all->product, all->room, stream);
}

/* Returns the number of the fastest candidate; -1 if they cannot be timed. */
static int time_candidates(const struct plan *plan, const struct weft_lt_heuristic *found,
                           int count, const struct weft_product *p) {
    struct candidates all = {plan, found, count, *p, NULL};
    struct weft_gpu_memory memory;
    size_t bytes = WEFT_LIBRARY_ROOM_BYTES + weft_matrix_span(&p->c);
    int ways = count + fits_own(p);
    if (ways == 1)
        return 0;
    if (weft_gpu_memory_alloc(&memory, weft_device.gpu, bytes) != 0)
        return -1;
    all.room = (char *)memory.at;
    all.product.c.data = all.room + WEFT_LIBRARY_ROOM_BYTES;
    int fastest = weft_trial_fastest(candidate_enqueue, &all, ways);
    weft_gpu_memory_free(&memory);
    return fastest;
}

static void keep(const struct plan *plan, uint64_t key) {
    static const uint64_t own[WEFT_MEMO_WORDS];
    const struct shape *s = &plan->shape;
    char remark[128];
    snprintf(remark, sizeof remark, "%llu x %llu x %llu %s, b by %s", (unsigned long long)s->m,
             (unsigned long long)s->n, (unsigned long long)s->k,
             weft_element_name((weft_dtype)s->type_a), weft_memo_order(s->transposed_b));
    weft_memo_keep(key, plan->own ? own : plan->chosen.algorithm, remark);
}

/* Times the algorithms that are recommended, and Weft's kernel if it fits. A single candidate is
 * taken and kept without a trial. If several cannot be timed, the first is taken, and not kept. */
static int algorithm_time(struct plan *plan, uint64_t key, const struct weft_product *p) {
    struct weft_lt_heuristic found[ALGORITHMS];
    int count = 0, error = algorithms_find(plan, ALGORITHMS, found, &count);
    if (error)
        return error;
    int fastest = time_candidates(plan, found, count, p);
    plan->own = fastest == count;
    plan->chosen = found[fastest < 0 || plan->own ? 0 : fastest];
    if (fastest >= 0)
        keep(plan, key);
    return 0;
}

static int algorithm_choose(struct plan *plan, const struct weft_product *p) {
    int count;
    if (weft_env.deterministic[0] != '1') {
        uint64_t key =
            weft_library_machine(weft_hash(WEFT_HASH_BASIS, &plan->shape, sizeof plan->shape));
        if (is_kept(plan, key, p))
            return 0;
        if (kept.trials++ < TRIALS_MAX)
            return algorithm_time(plan, key, p);
    }
    return algorithms_find(plan, 1, &plan->chosen, &count);
}

/* --- Plans, found and made -------------------------------------------------------------------- */

static void plan_clear(struct plan *plan) {
    weft_lt_layout layouts[] = {plan->a, plan->b, plan->c};
    for (int i = 0; i < 3; i++)
        if (layouts[i])
            weft_cublaslt.cublasLtMatrixLayoutDestroy(layouts[i]);
    if (plan->desc)
        weft_cublaslt.cublasLtMatmulDescDestroy(plan->desc);
    *plan = (struct plan){.desc = NULL};
}

static int plan_make(struct plan *plan, const struct shape *shape, const struct weft_product *p) {
    plan_clear(plan);
    plan->shape = *shape;
    int error = desc_make(plan);
    error = error ? error : layouts_make(plan);
    error = error ? error : algorithm_choose(plan, p);
    if (error)
        plan_clear(plan);
    return error;
}

static int plan_find(struct plan **plan, const struct shape *shape, const struct weft_product *p) {
    int error = 0;
    *plan = &kept.plans[weft_hash(WEFT_HASH_BASIS, shape, sizeof *shape) % PLANS];
    if (!kept.handle)
        error = weft_cublaslt_check(weft_cublaslt.cublasLtCreate(&kept.handle), "cublasLtCreate");
    if (error == 0 && memcmp(&(*plan)->shape, shape, sizeof *shape) != 0)
        error = plan_make(*plan, shape, p);
    return error;
}

/* --- The call --------------------------------------------------------------------------------- */

static int zeros_enqueue(const weft_matrix *c, weft_cu_stream stream) {
    size_t element = weft_element_bytes(c->dtype);
    return weft_cuda_check(weft_cuda.cuMemsetD2D8Async((weft_cu_address)c->data, c->ld * element, 0,
                                                       c->cols * element, c->rows, stream),
                           "cuMemsetD2D8Async");
}

int weft_library_multiply(const struct weft_product *p, char *room, weft_cu_stream stream) {
    struct plan *plan;
    if (p->a.cols == 0)
        return zeros_enqueue(&p->c, stream);
    struct shape shape = shape_of(p);
    pthread_mutex_lock(&kept.lock);
    int error = plan_find(&plan, &shape, p);
    if (error == 0)
        error =
            plan->own ? own_enqueue(p, stream) : plan_enqueue(plan, &plan->chosen, p, room, stream);
    pthread_mutex_unlock(&kept.lock);
    return error;
}
