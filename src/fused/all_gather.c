/* SPDX-License-Identifier: BSD-3-Clause */
/* All-gather + product: this member's rows are multiplied while its shard is pushed, then the other
 * members' rows. A member's half receives the shard of member i in slot i, without gaps between its
 * rows, so the slots of row-major shards are one matrix; and after the n slots, in the same way,
 * the scales of the shards' rows.
 *
 * If A has few rows it is gathered first, by a kernel, and multiplied as a whole. So is every A
 * that passes through the host, between far members or GPUs that do not reach each other. If a
 * trial finds it faster, a kernel for Hopper gathers and multiplies (fused/choice.h). */
#include "base/size.h"
#include "coll/on_stream.h"
#include "fused/choice.h"
#include "fused/exchange.h"
#include "fused/fused.h"
#include "fused/hopper.h"
#include "fused/plan.h"
#include "fused/product.h"

struct gather {
    const struct weft_fused_gather *call;
    struct weft_fused f;
    size_t bytes, scale_bytes; /* of a shard, and of the scales of its rows */
    size_t scale_step;         /* bytes from one member's scales to the next one's */
    weft_matrix own,
        scales;        /* the shard and its scales, where the GPU reaches them, without gaps */
    size_t multiplied; /* the b that the kernel which gathers has multiplied; nb: there is none */
};

static int members(const struct gather *g) {
    return g->f.on->team->npes;
}

static int me(const struct gather *g) {
    return g->f.on->team->my_pe;
}

/* Rounds up to the alignment of the scales, which follow the shards. */
static size_t aligned(size_t bytes) {
    return weft_round_up(bytes, WEFT_PRODUCT_SCALE_ALIGNMENT);
}

/* A shard that has one scale is a factor by itself, so the product asks for its alignment. */
static size_t scale_step_of(const struct gather *g) {
    bool single = g->call->scales && g->call->scales->a->rows == 1;
    return single ? aligned(g->scale_bytes) : g->scale_bytes;
}

/* --- This member's shard ---------------------------------------------------------------------- */

/* Returns the rows of a matrix as they lie in memory. */
static struct weft_fused_rows rows_of(const weft_matrix *m) {
    return (struct weft_fused_rows){m->data, m->ld * weft_element_bytes(m->dtype)};
}

/* Stores in *taken the matrix, or a copy of it at `room` if it has gaps, if the GPU does not reach
 * it, or if `copies` is set. */
static int take(const struct gather *g, weft_matrix *taken, const weft_matrix *m, char *room,
                bool copies) {
    size_t nrows = m->transposed ? m->cols : m->rows, width = m->transposed ? m->rows : m->cols;
    *taken = *m;
    if (nrows * width == 0 || (!copies && weft_matrix_is_dense(m) && weft_fused_reaches(m)))
        return 0;
    *taken = weft_matrix_dense(m, room);
    return weft_fused_copy_rows(rows_of(taken), rows_of(m), width * weft_element_bytes(m->dtype),
                                nrows, g->f.on->stream);
}

static int take_own(struct gather *g) {
    const struct weft_scales *scales = g->call->scales;
    /* A gather through the host sends scale_step bytes of each member, so they must all exist. */
    bool padded = weft_on_stream_is_apart(g->f.on) && g->scale_step != g->scale_bytes;
    int error = take(g, &g->own, g->call->shard, g->f.own, false);
    return error || !scales ? error
                            : take(g, &g->scales, scales->a, g->f.own + aligned(g->bytes), padded);
}

/* Returns the place of a member's scales in a half. */
static size_t scales_at(const struct gather *g, int member) {
    return aligned((size_t)members(g) * g->bytes) + (size_t)member * g->scale_step;
}

static int push_to(const struct gather *g, int member) {
    int error = 0;
    if (g->call->scales)
        error = weft_fused_push(&g->f, member, scales_at(g, me(g)), g->scales.data, g->scale_bytes);
    return error ? error
                 : weft_fused_push(&g->f, member, (size_t)me(g) * g->bytes, g->own.data, g->bytes);
}

static int push_own(const struct gather *g) {
    int error = 0;
    for (int distance = 1; distance < members(g) && error == 0; distance++)
        error = push_to(g, weft_fused_member(&g->f, distance));
    return error;
}

/* --- Products --------------------------------------------------------------------------------- */

/* Returns the scaling of a product with b[j]; `rows` are the scales of its rows of A. */
static struct weft_scaling scaling_of(const struct weft_scales *scales, const weft_matrix *rows,
                                      size_t j) {
    struct weft_scaling scaling = {.rows = *rows, .cols = scales->b[j]};
    if (scales->bias)
        scaling.bias = scales->bias[j];
    return scaling;
}

/* Multiplies rows of A, which begin with those of `member`; `scales` are the rows'. */
static int multiply(const struct gather *g, const weft_matrix *a, const weft_matrix *scales,
                    int member) {
    const struct weft_fused_gather *call = g->call;
    size_t first = (size_t)member * call->shard->rows;
    int error = 0;
    for (size_t j = 0; j < call->nb && error == 0; j++) {
        struct weft_scaling scaling;
        if (j == g->multiplied)
            continue;
        struct weft_product p = {*a, call->b[j], weft_matrix_rows(&call->c[j], first, a->rows),
                                 NULL};
        if (call->scales) {
            scaling = scaling_of(call->scales, scales, j);
            p.scaling = &scaling;
        }
        error = weft_product_enqueue(&p, g->f.room, g->f.on->stream);
    }
    return error;
}

static int multiply_own(const struct gather *g) {
    return multiply(g, &g->own, &g->scales, me(g));
}

/* Returns a matrix like `own`, of `count` members, as it lies in the half from `at` on. */
static weft_matrix gathered(const struct gather *g, const weft_matrix *own, size_t at, int count) {
    weft_matrix all = weft_matrix_dense(own, weft_fused_at(&g->f, me(g), at));
    all.rows *= (size_t)count;
    return all;
}

static weft_matrix gathered_shards(const struct gather *g, int member, int count) {
    return gathered(g, &g->own, (size_t)member * g->bytes, count);
}

/* Returns whether the shards of several members are one factor: a product has one scale for all
 * rows of a, or one for each. */
static bool is_one_factor(const struct gather *g) {
    return !g->own.transposed && (!g->call->scales || g->scales.rows > 1);
}

static int multiply_gathered(const struct gather *g, int from, int to) {
    int step = is_one_factor(g) ? to - from : 1, error = 0;
    for (int member = from; member < to && error == 0; member += step) {
        weft_matrix a = gathered_shards(g, member, step), scales = {NULL};
        if (g->call->scales)
            scales = gathered(g, &g->scales, scales_at(g, member), step);
        error = multiply(g, &a, &scales, member);
    }
    return error;
}

/* --- A ---------------------------------------------------------------------------------------- */

static int copy_full(const struct gather *g, const weft_matrix *a, int member,
                     weft_cu_stream stream) {
    weft_matrix to = weft_matrix_rows(g->call->full, (size_t)member * g->own.rows, a->rows);
    size_t bytes = a->cols * weft_element_bytes(a->dtype);
    return weft_fused_copy_rows(rows_of(&to), rows_of(a), bytes, a->rows, stream);
}

static int copy_gathered(const struct gather *g, int from, int to) {
    weft_matrix a = gathered_shards(g, from, to - from);
    return from == to ? 0 : copy_full(g, &a, from, g->f.beside);
}

/* Multiplies all of A, which lies in the half, and copies it to a_full. */
static int multiply_all(const struct gather *g) {
    int error = multiply_gathered(g, 0, members(g));
    if (error || !g->call->full)
        return error;
    weft_matrix a = gathered_shards(g, 0, members(g));
    return copy_full(g, &a, 0, g->f.on->stream);
}

/* --- Gathering first -------------------------------------------------------------------------- */

/* A tile of a product has 128 rows or more: a product of 128 x 8192 x 8192 that was cut in two took
 * 1.9 times as long (H200). */
enum { FEW_ROWS = 256 };

/* A half that does not meet has no reader left (device/half.h). */
static int gather_part(const struct gather *g, const weft_matrix *own, size_t at, size_t bytes,
                       bool *done) {
    struct weft_array dests = g->f.half.all;
    dests.first += at;
    *done = bytes == 0;
    return bytes == 0
               ? 0
               : weft_on_stream_gather(g->f.on, &dests, own->data, bytes, !g->f.half.meets, done);
}

static bool has_few_rows(const struct gather *g) {
    return (size_t)members(g) * g->call->shard->rows <= FEW_ROWS;
}

/* Sets *done to whether it has multiplied all of A. */
static int multiply_whole(struct gather *g, bool *done) {
    bool few = has_few_rows(g) && is_one_factor(g);
    *done = false;
    if (!few && !weft_on_stream_is_apart(g->f.on))
        return 0;
    int error = gather_part(g, &g->own, 0, g->bytes, done);
    if (!error && *done && g->call->scales)
        error = gather_part(g, &g->scales, scales_at(g, 0), g->scale_step, done);
    return error || !*done ? error : multiply_all(g);
}

/* --- In one kernel ---------------------------------------------------------------------------- */

/* Copies this member's shard to aligned memory unless it begins at a multiple of 16 bytes. */
static int align_own(struct gather *g) {
    if ((uintptr_t)g->own.data % 16 == 0)
        return 0;
    const void *from = g->own.data;
    g->own.data = g->f.own;
    return weft_gpu_copy(g->own.data, from, g->bytes, WEFT_FROM_HOST, g->f.on->stream);
}

/* Returns the first b with which the kernel can multiply the shard, which is dense, or nb. */
static size_t multiplied_by_kernel(const struct gather *g) {
    int capability = weft_device.gpu->capability;
    weft_matrix shard = *g->call->shard;
    shard.ld = shard.cols;
    shard.data = NULL; /* an address that is not aligned is copied */
    size_t j = 0;
    while (j < g->call->nb && !weft_plan_fits(capability, &shard, &g->call->b[j], &g->call->c[j]))
        j++;
    return j;
}

static int gather_by_kernel(struct gather *g) {
    const struct weft_fused_gather *call = g->call;
    struct weft_hopper_team team = {me(g), members(g), &g->f.half};
    size_t j = g->multiplied;
    const weft_matrix *b = j < call->nb ? &call->b[j] : NULL, *c = b ? &call->c[j] : NULL;
    unsigned width = weft_plan_width(b ? c->rows : 1, b ? c->cols : 1, !b || b->transposed,
                                     weft_device.gpu->sms);
    int error = weft_fused_begin_writes(&g->f);
    return error ? error
                 : weft_hopper_enqueue_gathered(&team, &g->own, b, c, width, g->f.on->stream);
}

/* Multiplies the other b, and copies A to a_full, after the kernel has gathered the others' shards.
 */
static int finish_gathered(struct gather *g) {
    bool more = g->call->nb > (g->multiplied < g->call->nb);
    if (!more && !g->call->full)
        return 0;
    char *slot = weft_fused_at(&g->f, me(g), (size_t)me(g) * g->bytes);
    int error = weft_gpu_copy(slot, g->own.data, g->bytes, WEFT_FROM_HOST, g->f.on->stream);
    return error ? error : multiply_all(g);
}

static int multiply_by_kernel(struct gather *g) {
    int error = align_own(g);
    g->multiplied = multiplied_by_kernel(g);
    error = error ? error : gather_by_kernel(g);
    return error ? error : finish_gathered(g);
}

/* --- The call --------------------------------------------------------------------------------- */

static int exchange(struct gather *g) {
    int error = weft_fused_fork(&g->f);
    error = error ? error : push_own(g);
    error = error ? error : multiply_own(g);
    error = error ? error : weft_fused_meet(&g->f);
    return weft_fused_join(&g->f, error);
}

static int multiply_others(struct gather *g) {
    bool copies = g->call->full != NULL;
    int error = copies ? weft_fused_fork(&g->f) : 0;
    if (copies && !error) {
        error = copy_gathered(g, 0, me(g));
        error = error ? error : copy_full(g, &g->own, me(g), g->f.beside);
        error = error ? error : copy_gathered(g, me(g) + 1, members(g));
    }
    error = error ? error : multiply_gathered(g, me(g) + 1, members(g));
    error = error ? error : multiply_gathered(g, 0, me(g));
    return copies ? weft_fused_join(&g->f, error) : error;
}

/* Returns the room that the largest product needs. */
static size_t room_bytes(const struct weft_fused_gather *call, size_t rows) {
    struct weft_scaling scaling;
    size_t most = 0;
    for (size_t j = 0; j < call->nb; j++) {
        struct weft_product largest = {*call->shard, call->b[j], call->c[j], NULL};
        if (call->scales) {
            scaling = scaling_of(call->scales, call->scales->a, j);
            largest.scaling = &scaling;
        }
        largest.a.rows = rows;
        size_t bytes = weft_product_room(&largest);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Returns whether members send each other anything; the same on all members. */
static bool exchanges(const struct gather *g) {
    return members(g) > 1 && g->bytes + g->scale_bytes > 0;
}

static int gather_open(struct gather *g) {
    size_t n = (size_t)members(g), rows = g->call->shard->rows;
    size_t half = aligned(n * g->bytes) + n * g->scale_step;
    struct weft_fused_sizes sizes = {.half = exchanges(g) ? half : 0,
                                     .room = room_bytes(g->call, n * rows),
                                     .own = aligned(g->bytes) + g->scale_step};
    return weft_fused_open(&g->f, g->f.on, &sizes);
}

static int gather_by_engines(struct gather *g) {
    int error = exchanges(g) ? exchange(g) : multiply_own(g);
    return error ? error : multiply_others(g);
}

/* Does the whole call; `gather` has the call and its sizes. */
static int gather_in(const void *gather, int way, weft_cu_stream stream) {
    struct gather g = *(const struct gather *)gather;
    bool done = false;
    int error = gather_open(&g);
    (void)stream;
    error = error ? error : take_own(&g);
    if (!error && exchanges(&g))
        error = multiply_whole(&g, &done);
    if (error || done)
        return error;
    return way == WEFT_BY_KERNEL ? multiply_by_kernel(&g) : gather_by_engines(&g);
}

/* Returns whether the kernel gathers shards like this member's: the same on all members. */
static bool suits_kernel(const struct gather *g) {
    return exchanges(g) && !g->call->scales && !has_few_rows(g) &&
           weft_plan_gathers(g->call->shard, members(g));
}

static int choose(enum weft_fused_way *way, const struct gather *g) {
    const struct weft_fused_gather *call = g->call;
    return weft_fused_choose(
        way, &(struct weft_fused_choice){.on = g->f.on,
                                         .operation = "all-gather",
                                         .rows = call->shard->rows,
                                         .cols = call->shard->cols,
                                         .dtype = call->shard->dtype,
                                         .transposed = call->nb > 0 && call->b[0].transposed,
                                         .fits = multiplied_by_kernel(g) < call->nb,
                                         .rule = WEFT_BY_ENGINES,
                                         .enqueue = gather_in,
                                         .context = g});
}

int weft_fused_all_gather(const struct weft_on_stream *on, const struct weft_fused_gather *call) {
    const weft_matrix *shard = call->shard;
    struct gather g = {.call = call, .f.on = on, .multiplied = call->nb};
    enum weft_fused_way way = WEFT_BY_ENGINES;
    if (shard->rows == 0)
        return 0;
    g.bytes = shard->rows * shard->cols * weft_element_bytes(shard->dtype);
    g.scale_bytes = call->scales ? call->scales->a->rows * sizeof(float) : 0;
    g.scale_step = scale_step_of(&g);
    int error = suits_kernel(&g) ? choose(&way, &g) : 0;
    return error ? error : gather_in(&g, way, on->stream);
}
