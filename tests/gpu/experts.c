/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: weft_moe_dispatch and weft_moe_combine on streams have the bits that the host's
 * threads compute (tests/ops/experts.c): random routes, one busy expert, unused slots, members
 * without tokens; all types of sums and narrow and wide rows, aligned and not; teams of all PEs, of
 * every second, and of one; in a graph that is replayed with new tokens and routes; wrong
 * arguments. PEs: 1 2 3 4 */
#include <errno.h>
#include "gpu/both.h"
#include "gpu/graph.h"

enum { TOKENS_MAX = 21, COLS_MAX = 70, TOP_K_MAX = 9, EACH_MAX = 5, ROOM = 12 << 20 };
enum routing { RANDOM, ONE_EXPERT, UNUSED_SLOTS, ROUTINGS };

struct layer {
    shmem_team_t team;
    weft_moe moe;
    weft_moe_shape shape;
    weft_dtype dtype;
    size_t each, ntokens, elem_bytes;
    struct both tokens, experts, weights, scales;                /* sent */
    struct both data, sources, offsets, row_weights, row_scales; /* received */
    struct both sums, back;                                      /* combined */
    weft_moe_rows host_rows, device_rows;
};

/* --- Layers ------------------------------------------------------------------------------------
 */

static struct layer layer_new(shmem_team_t team, weft_dtype dtype, uint64_t key) {
    struct layer l = {.team = team, .dtype = dtype, .elem_bytes = weft_dtype_bytes(dtype)};
    size_t npes = (size_t)shmem_team_n_pes(team), odd = gpu_draw(key, 3) ? 0 : l.elem_bytes;
    used = 0;
    l.each = 1 + gpu_draw(key + 1, EACH_MAX);
    l.shape = (weft_moe_shape){.experts = l.each * npes,
                               .top_k = 1 + gpu_draw(key + 2, TOP_K_MAX),
                               .cols = 1 + gpu_draw(key + 3, COLS_MAX),
                               .scale_cols = gpu_draw(key + 4, 3),
                               .tokens_max = 1 + gpu_draw(key + 5, TOKENS_MAX),
                               .dtype = dtype};
    if (gpu_draw(key + 6, 2))
        l.shape.cols = (l.shape.cols + 15) / 16 * 16;
    l.shape.rows_max = npes * l.shape.tokens_max * l.shape.top_k;
    size_t slots = l.shape.tokens_max * l.shape.top_k, row = l.shape.cols * l.elem_bytes;
    size_t rows = l.shape.rows_max, word = sizeof(int32_t);
    l.tokens = both_new(l.shape.tokens_max * row, odd);
    l.experts = both_new(slots * word, 0);
    l.weights = both_new(slots * word, 0);
    l.scales = both_new(l.shape.tokens_max * l.shape.scale_cols * word, 0);
    l.data = both_new(rows * row, odd);
    l.sources = both_new(rows * word, 0);
    l.offsets = both_new((l.each + 1) * word, 0);
    l.row_weights = both_new(rows * word, 0);
    l.row_scales = both_new(rows * l.shape.scale_cols * word, 0);
    l.sums = both_new(l.shape.tokens_max * row, odd);
    l.back = both_new(slots * word, 0);
    l.host_rows = (weft_moe_rows){l.data.host, l.row_scales.host, l.row_weights.host,
                                  l.sources.host, l.offsets.host};
    l.device_rows = (weft_moe_rows){l.data.device, l.row_scales.device, l.row_weights.device,
                                    l.sources.device, l.offsets.device};
    expect_done(weft_moe_create(team, &l.shape, &l.moe), "create");
    return l;
}

/* Fills an array with finite numbers of the layer's type. */
static void fill(const struct layer *l, void *to, size_t nelems, uint64_t key) {
    gpu_fill(to, nelems * l->elem_bytes, key);
    for (size_t i = 0; i < nelems; i++)
        if (l->dtype == WEFT_BF16 || l->dtype == WEFT_F16)
            ((uint16_t *)to)[i] &= 0xbbff; /* below 2 */
        else if (l->dtype == WEFT_F32)
            ((uint32_t *)to)[i] = (((uint32_t *)to)[i] & 0x87ffffff) | 0x38000000;
        else if (l->dtype == WEFT_F64)
            ((uint64_t *)to)[i] = (((uint64_t *)to)[i] & 0x80ffffffffffffff) | 0x3f00000000000000;
}

static int32_t draw_expert(const struct layer *l, enum routing routing, uint64_t key) {
    if (routing == ONE_EXPERT)
        return (int32_t)gpu_draw(l->shape.top_k + l->each, l->shape.experts);
    if (routing == UNUSED_SLOTS && gpu_draw(key + 1, 3) == 0)
        return -1;
    return (int32_t)gpu_draw(key, l->shape.experts);
}

/* Draws this member's tokens, the same in both memories. `ntokens`: how many. */
static void draw_tokens(struct layer *l, size_t ntokens, uint64_t key) {
    uint64_t mine = key + 1000 * (uint64_t)shmem_my_pe();
    enum routing routing = (enum routing)gpu_draw(key, ROUTINGS);
    l->ntokens = ntokens;
    fill(l, l->tokens.host, ntokens * l->shape.cols, mine);
    gpu_fill(l->scales.host, l->scales.bytes, mine + 1);
    for (size_t i = 0; i < ntokens * l->shape.top_k; i++) {
        ((int32_t *)l->experts.host)[i] = draw_expert(l, routing, mine + 2 + 2 * i);
        ((float *)l->weights.host)[i] = (float)gpu_draw(mine + i, 1000) / 512;
    }
    const struct both *const sent[] = {&l->tokens, &l->scales, &l->experts, &l->weights};
    for (size_t i = 0; i < 4; i++)
        gpu_write(sent[i]->device, sent[i]->host, sent[i]->bytes);
}

static int dispatch(const struct layer *l, bool on_host) {
    return on_host ? weft_moe_dispatch(l->moe, l->dtype, l->tokens.host, l->scales.host,
                                       l->experts.host, l->weights.host, l->ntokens, &l->host_rows,
                                       WEFT_STREAM_HOST)
                   : weft_moe_dispatch(l->moe, l->dtype, l->tokens.device, l->scales.device,
                                       l->experts.device, l->weights.device, l->ntokens,
                                       &l->device_rows, (weft_stream)gpu_stream);
}

/* The rows' weights are their factors as well. */
static int combine(const struct layer *l, bool on_host) {
    return on_host ? weft_moe_combine(l->moe, l->dtype, &l->host_rows, l->row_weights.host,
                                      l->experts.host, l->ntokens, l->sums.host, l->back.host,
                                      WEFT_STREAM_HOST)
                   : weft_moe_combine(l->moe, l->dtype, &l->device_rows, l->row_weights.device,
                                      l->experts.device, l->ntokens, l->sums.device, l->back.device,
                                      (weft_stream)gpu_stream);
}

static void expect_dispatched(const struct layer *l) {
    both_expect(&l->offsets, "offsets");
    both_expect(&l->sources, "sources");
    both_expect(&l->row_weights, "weights of rows");
    both_expect(&l->row_scales, "scales of rows");
    both_expect(&l->data, "rows");
}

static void expect_combined(const struct layer *l) {
    both_expect(&l->sums, "sums");
    both_expect(&l->back, "weights of slots");
}

/* --- Tests -------------------------------------------------------------------------------------
 */

static void forth_and_back(shmem_team_t team, weft_dtype dtype, uint64_t key) {
    if (team == SHMEM_TEAM_INVALID)
        return;
    struct layer l = layer_new(team, dtype, key);
    uint64_t mine = key + 7 * (uint64_t)shmem_my_pe();
    draw_tokens(&l, gpu_draw(mine, 4) ? gpu_draw(mine + 1, l.shape.tokens_max + 1) : 0, key);
    expect_done(dispatch(&l, true), "dispatch of the host");
    expect_done(dispatch(&l, false), "dispatch");
    gpu_drain(gpu_stream);
    expect_dispatched(&l);
    if (dtype <= WEFT_F16) {
        expect_done(combine(&l, true), "combine of the host");
        expect_done(combine(&l, false), "combine");
        gpu_drain(gpu_stream);
        expect_combined(&l);
    }
    expect_done(weft_moe_destroy(l.moe), "destroy");
}

static struct layer captured;

static void capture_both(void) {
    expect_done(dispatch(&captured, false), "captured dispatch");
    expect_done(combine(&captured, false), "captured combine");
}

static void graph(void) {
    tap_case("a graph, replayed with new tokens and routes");
    struct layer *l = &captured;
    uint64_t key = 700000;
    *l = layer_new(SHMEM_TEAM_WORLD, WEFT_BF16, key);
    l->ntokens = l->shape.tokens_max;
    weft_cu_graph_exec exec = graph_capture(gpu_stream, capture_both);
    for (int round = 0; round < gpu_rounds_together(300, 6); round++) {
        const struct both *const received[] = {&l->data, &l->sources, &l->row_weights,
                                               &l->row_scales};
        draw_tokens(l, l->shape.tokens_max, key + 100 * (uint64_t)round);
        for (size_t i = 0; i < 4; i++) {
            memset(received[i]->host, GPU_POISON, received[i]->bytes);
            gpu_poison(received[i]->device, received[i]->bytes);
        }
        expect_done(dispatch(l, true), "dispatch of the host");
        expect_done(combine(l, true), "combine of the host");
        graph_replay(exec, gpu_stream);
        gpu_drain(gpu_stream);
        expect_dispatched(l);
        expect_combined(l);
    }
    graph_drop(exec);
    expect_done(weft_moe_destroy(l->moe), "destroy");
}

/* Without weights and scales their arrays stay as they are; a member without rows has no data. */
static void without(void) {
    tap_case("without weights and scales, and without rows");
    struct layer l = layer_new(SHMEM_TEAM_WORLD, WEFT_F32, 750000);
    draw_tokens(&l, l.shape.tokens_max, 750000);
    int error = weft_moe_dispatch(l.moe, WEFT_F32, l.tokens.device, NULL, l.experts.device, NULL,
                                  l.ntokens, &l.device_rows, (weft_stream)gpu_stream);
    expect_done(error, "dispatch");
    gpu_drain(gpu_stream);
    both_expect(&l.row_weights, "weights that nobody sends");
    both_expect(&l.row_scales, "scales that nobody sends");
    l.ntokens = 0;
    expect_done(dispatch(&l, false), "dispatch of nothing");
    l.device_rows.data = l.device_rows.sources = NULL;
    error = weft_moe_combine(l.moe, WEFT_F32, &l.device_rows, NULL, NULL, 0, NULL, NULL,
                             (weft_stream)gpu_stream);
    expect_done(error, "combine of nothing");
    gpu_drain(gpu_stream);
    expect_done(weft_moe_destroy(l.moe), "destroy");
}

/* On PE 0 only: the others notice nothing. */
static void wrong_arguments(void) {
    tap_case("a wrong argument is an error of its member, and the next call works");
    struct layer l = layer_new(SHMEM_TEAM_WORLD, WEFT_BF16, 800000), wrong = l;
    draw_tokens(&l, l.shape.tokens_max, 800000);
    if (shmem_my_pe() == 0) {
        wrong = l;
        wrong.moe = NULL;
        expect_error(dispatch(&wrong, false), -EINVAL, "moe is NULL");
        wrong = l;
        wrong.dtype = WEFT_F32;
        expect_error(dispatch(&wrong, false), -EINVAL, "wider than the shape's");
        wrong.dtype = WEFT_U8;
        expect_error(combine(&wrong, false), -EINVAL, "WEFT_U8, which this call does not add");
        wrong = l;
        wrong.ntokens = l.shape.tokens_max + 1;
        expect_error(dispatch(&wrong, false), -EINVAL, "the shape's tokens_max is");
        wrong = l;
        wrong.experts.device = NULL;
        expect_error(combine(&wrong, false), -EINVAL, "experts is NULL");
        wrong = l;
        wrong.device_rows.sources = NULL;
        expect_error(dispatch(&wrong, false), -EINVAL, "rows->sources is NULL");
    }
    expect_done(dispatch(&l, true), "dispatch of the host");
    expect_done(dispatch(&l, false), "dispatch");
    gpu_drain(gpu_stream);
    expect_dispatched(&l);
    expect_done(weft_moe_destroy(l.moe), "destroy");
}

int main(void) {
    static const weft_dtype dtypes[] = {WEFT_F32, WEFT_F64, WEFT_BF16, WEFT_F16, WEFT_F8E4M3};
    static const char *const names[] = {"f32", "f64", "bf16", "f16", "f8e4m3"};
    shmem_init();
    gpu_start();
    both_open(ROOM);
    shmem_team_t half, alone = SHMEM_TEAM_INVALID;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (shmem_n_pes() + 1) / 2, NULL, 0, &half);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &alone);
    uint64_t key = 1;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        tap_case(names[i]);
        for (int round = 0; round < gpu_rounds_together(20, 3); round++, key += 20000) {
            forth_and_back(SHMEM_TEAM_WORLD, dtypes[i], key);
            forth_and_back(half, dtypes[i], key + 1);
            forth_and_back(alone, dtypes[i], key + 2);
        }
    }
    graph();
    without();
    wrong_arguments();
    both_close();
    return gpu_finish();
}
