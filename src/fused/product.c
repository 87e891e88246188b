/* SPDX-License-Identifier: BSD-3-Clause */
/* 8-bit factors and scales. cuBLASLt multiplies 8-bit factors if they suit it, and applies one
 * scale for each factor. Other factors are widened to bf16, which has all their values. Scales of
 * rows or columns and biases are applied to a product in F32. */
#include "fused/product.h"
#include <errno.h>
#include <string.h>
#include "base/env.h"
#include "base/size.h"
#include "transport/gpu_kernel.h"
#include "device/device.h"
#include "fused/cublaslt.h"
#include "fused/scale.h"

enum { THREADS = 512, ALIGNMENT = 256, CAPABILITY_MIN = 89 };

static size_t aligned(size_t bytes) {
    return weft_round_up(bytes, ALIGNMENT);
}

/* Returns whether cuBLASLt multiplies these 8-bit factors. If it does, it also multiplies rows of
 * a, and copies of a without gaps. */
static bool factors_suit(const struct weft_product *p) {
    bool both_e5m2 = p->a.dtype == WEFT_F8E5M2 && p->b.dtype == WEFT_F8E5M2;
    size_t whole = p->a.cols | p->c.cols * weft_element_bytes(p->c.dtype);
    return weft_device.gpu->capability >= CAPABILITY_MIN && p->a.cols > 0 && !p->a.transposed &&
           p->b.transposed && !both_e5m2 && whole % 16 == 0 && weft_matrix_alignment(&p->a) >= 16 &&
           weft_matrix_alignment(&p->b) >= 16 && weft_matrix_alignment(&p->c) >= 16;
}

static bool is_aligned(const void *p) {
    return (uintptr_t)p % WEFT_PRODUCT_SCALE_ALIGNMENT == 0;
}

/* Returns whether cuBLASLt also scales the product. */
static bool scales_suit(const struct weft_scaling *s) {
    return s->rows.rows == 1 && s->cols.cols == 1 && s->bias.cols == 0 &&
           is_aligned(s->rows.data) && is_aligned(s->cols.data);
}

/* The parts of the room, after the library's: of a product in F32, and of widened factors. */
struct room_parts {
    size_t product, a, b, end;
};

static struct room_parts parts_of(const struct weft_product *p) {
    struct room_parts parts = {.product = 0};
    bool suits = factors_suit(p), unscaled = !suits || !scales_suit(p->scaling);
    parts.a = unscaled ? aligned(p->c.rows * p->c.cols * sizeof(float)) : 0;
    parts.b = parts.a + (suits ? 0 : aligned(p->a.rows * p->a.cols * sizeof(uint16_t)));
    parts.end = parts.b + (suits ? 0 : aligned(p->b.rows * p->b.cols * sizeof(uint16_t)));
    return parts;
}

size_t weft_product_room(const struct weft_product *largest) {
    return WEFT_LIBRARY_ROOM_BYTES + (largest->scaling ? parts_of(largest).end : 0);
}

static int launch(enum weft_gpu_kernel kernel, size_t nelems, void *task, weft_cu_stream stream) {
    size_t blocks = weft_steps_up(nelems, THREADS), most = 4 * (size_t)weft_device.gpu->sms;
    void *arguments[] = {task, NULL};
    return nelems == 0 ? 0
                       : weft_gpu_launch(kernel, (unsigned)(blocks < most ? blocks : most), THREADS,
                                         stream, arguments);
}

/* Converts *m to bf16 at `dest`, and stores the new matrix in *m. */
static int widen(weft_matrix *m, char *dest, weft_cu_stream stream) {
    size_t lines = m->transposed ? m->cols : m->rows, nelems = m->transposed ? m->rows : m->cols;
    struct weft_widen_task task = {(uint16_t *)dest, m->data, lines, nelems, m->ld, (int)m->dtype};
    m->dtype = WEFT_BF16;
    *m = weft_matrix_dense(m, dest);
    return launch(WEFT_KERNEL_weftk_widen, lines * nelems, &task, stream);
}

/* Multiplies without scales into `product`, of F32. */
static int multiply(const struct weft_product *p, const weft_matrix *product, char *room,
                    weft_cu_stream stream) {
    struct room_parts parts = parts_of(p);
    struct weft_product plain = {p->a, p->b, *product, NULL};
    char *free_room = room + WEFT_LIBRARY_ROOM_BYTES;
    int error = 0;
    if (!factors_suit(p)) {
        error = widen(&plain.a, free_room + parts.a, stream);
        error = error ? error : widen(&plain.b, free_room + parts.b, stream);
    }
    return error ? error : weft_library_multiply(&plain, room, stream);
}

static int scale(const struct weft_product *p, const weft_matrix *product, weft_cu_stream stream) {
    const struct weft_scaling *s = p->scaling;
    struct weft_scale_task task = {.dest = p->c.data,
                                   .source = product->data,
                                   .nrows = p->c.rows,
                                   .ncols = p->c.cols,
                                   .ld = p->c.ld,
                                   .rows = s->rows.data,
                                   .cols = s->cols.data,
                                   .bias = s->bias.cols > 0 ? s->bias.data : NULL,
                                   .row_step = s->rows.rows == 1 ? 0 : s->rows.ld,
                                   .col_step = s->cols.cols == 1 ? 0 : 1,
                                   .type = (int)p->c.dtype,
                                   .bias_type = (int)s->bias.dtype};
    return launch(WEFT_KERNEL_weftk_scale, task.nrows * task.ncols, &task, stream);
}

static int multiply_scaled(const struct weft_product *p, char *room, weft_cu_stream stream) {
    if (factors_suit(p) && scales_suit(p->scaling))
        return weft_library_multiply(p, room, stream);
    weft_matrix product = {
        room + WEFT_LIBRARY_ROOM_BYTES, p->c.rows, p->c.cols, p->c.cols, WEFT_F32, false};
    int error = multiply(p, &product, room, stream);
    return error ? error : scale(p, &product, stream);
}

int weft_product_enqueue(const struct weft_product *p, char *room, weft_cu_stream stream) {
    if (p->c.rows == 0 || p->c.cols == 0)
        return 0;
    return p->scaling ? multiply_scaled(p, room, stream) : weft_library_multiply(p, room, stream);
}

static bool is_one_of(const char *value, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(value, words[i]) == 0)
            return true;
    return false;
}

int weft_product_begin(void) {
    static const char *const ways[] = {"auto", "engines", "cublaslt", "own"};
    if (!is_one_of(weft_env.products, ways, sizeof ways / sizeof *ways))
        return weft_fail_bare(-EINVAL,
                              "WEFT_PRODUCTS is '%s': set it to auto, engines, cublaslt or own",
                              weft_env.products);
    return weft_cublaslt_load();
}
