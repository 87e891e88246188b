/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: weft_all_reduce_rms_norm on streams has the bits of the host's (tests/ops/norm.c):
 * by one kernel, and after an all-reduce; rows of whole and of broken units, aligned and not; all
 * types, with and without bias, residual, weight and 8-bit results, in place; teams of all PEs, of
 * every second, of a list and of one; in a graph that is replayed with other numbers; wrong
 * arguments. PEs: 1 2 3 4 5, also staged Far: cyclic:2 seed=7,reorder=16 */
#include <errno.h>
#include "gpu/both.h"
#include "gpu/graph.h"
#include "coll/narrow.h"

enum { ROOM = 8 << 20, GROUP = 16 };

struct layer {
    shmem_team_t team;
    weft_norm host, device;
    struct both source, bias, residual, weight, residual_out, out, quantized, scales;
};

/* Fills an array with numbers of -2 to 2. */
static void fill(const struct both *to, weft_dtype dtype, uint64_t key) {
    size_t element = weft_dtype_bytes(dtype);
    for (size_t i = 0; i < to->bytes / element; i++) {
        float x = (float)gpu_draw(key + i, 4001) / 1000 - 2;
        uint16_t half = dtype == WEFT_BF16 ? weft_bf16_of_float(x) : weft_f16_of_float(x);
        memcpy((char *)to->host + i * element, dtype == WEFT_F32 ? (void *)&x : &half, element);
    }
    both_write(to);
}

static struct layer layer_new(shmem_team_t team, weft_dtype dtype, size_t rows, size_t cols,
                              uint64_t key) {
    struct layer l = {.team = team};
    size_t element = weft_dtype_bytes(dtype), odd = gpu_draw(key, 3) ? 0 : element;
    size_t group = cols % GROUP == 0 && gpu_draw(key + 1, 2) ? GROUP : 0, row = cols * element;
    used = 0;
    l.source = both_new(rows * row, odd);
    l.bias = both_new(row, odd);
    l.residual = both_new(rows * row, odd);
    l.weight = both_new(row, odd);
    l.residual_out = both_new(rows * row, odd);
    l.out = both_new(rows * row, odd);
    l.quantized = both_new(rows * cols, 0);
    l.scales = both_new((group ? rows * cols / group : 1) * sizeof(float), 0);
    *(float *)l.scales.host = 0.01f;
    both_write(&l.scales);
    bool bias = gpu_draw(key + 2, 2), residual = gpu_draw(key + 3, 2),
         weight = gpu_draw(key + 4, 2);
    bool narrow = gpu_draw(key + 5, 2), in_place = residual && gpu_draw(key + 6, 2);
    weft_norm norm = {.rows = rows, .cols = cols, .dtype = dtype, .epsilon = 1e-6f, .group = group};
    l.host = l.device = norm;
#define SET(field, from, passed) \
    l.host.field = (passed) ? (from).host : NULL, l.device.field = (passed) ? (from).device : NULL
    SET(bias, l.bias, bias);
    SET(residual, l.residual, residual);
    SET(weight, l.weight, weight);
    SET(residual_out, in_place ? l.residual : l.residual_out, true);
    SET(out, l.out, true);
    SET(quantized, l.quantized, narrow);
    SET(scales, l.scales, narrow);
#undef SET
    return l;
}

static void draw_numbers(const struct layer *l, uint64_t key) {
    weft_dtype dtype = l->host.dtype;
    fill(&l->source, dtype, key + 100000 * (uint64_t)(shmem_my_pe() + 1));
    fill(&l->bias, dtype, key + 1);
    fill(&l->residual, dtype, key + 2);
    fill(&l->weight, dtype, key + 3);
}

static int norm(const struct layer *l, bool on_host) {
    return on_host ? weft_all_reduce_rms_norm(l->team, l->source.host, &l->host, WEFT_STREAM_HOST)
                   : weft_all_reduce_rms_norm(l->team, l->source.device, &l->device,
                                              (weft_stream)gpu_stream);
}

static void expect_same(const struct layer *l) {
    const struct both *const written[] = {&l->residual, &l->residual_out, &l->out, &l->quantized,
                                          &l->scales};
    static const char *const names[] = {"residual", "residual_out", "out", "quantized", "scales"};
    for (size_t i = 0; i < 5; i++)
        gpu_expect(written[i]->device, written[i]->host, written[i]->bytes, "%s, %zu x %zu",
                   names[i], l->host.rows, l->host.cols);
}

/* --- Tests -------------------------------------------------------------------------------------
 */

static void norm_once(shmem_team_t team, weft_dtype dtype, size_t rows, size_t cols, uint64_t key) {
    if (team == SHMEM_TEAM_INVALID)
        return;
    struct layer l = layer_new(team, dtype, rows, cols, key);
    draw_numbers(&l, key);
    shmem_team_sync(team); /* all have written their arrays, to which others may write */
    expect_done(norm(&l, true), "on the host");
    expect_done(norm(&l, false), "on the stream");
    gpu_drain(gpu_stream);
    expect_same(&l);
    shmem_team_sync(team);
}

static void shapes(weft_dtype dtype, int rounds, uint64_t key) {
    shmem_team_t half, alone = SHMEM_TEAM_INVALID, list = gpu_list_team();
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (shmem_n_pes() + 1) / 2, NULL, 0, &half);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &alone);
    shmem_team_t teams[] = {SHMEM_TEAM_WORLD, half, alone, list};
    for (int round = 0; round < rounds; round++, key += 1000)
        for (size_t i = 0; i < 4; i++) {
            size_t rows = 1 + gpu_draw(key, 80), cols = 1 + gpu_draw(key + 1, 70);
            if (gpu_draw(key + 2, 3))
                cols = (cols + 15) / 16 * 16; /* whole units */
            norm_once(teams[i], dtype, rows, cols, key);
        }
}

/* Rows of several units of a thread, and more bytes than one kernel takes. */
static void large(void) {
    tap_case("long rows, and many of them");
    norm_once(SHMEM_TEAM_WORLD, WEFT_BF16, 2, 8192, 900000);
    norm_once(SHMEM_TEAM_WORLD, WEFT_F32, 3, 4096, 901000);
    norm_once(SHMEM_TEAM_WORLD, WEFT_BF16, gpu_is_pretended() ? 300 : 600, 1024, 902000);
}

static struct layer captured;

static void capture(void) {
    expect_done(norm(&captured, false), "captured");
}

static void graph(void) {
    tap_case("a graph, replayed with other numbers");
    captured = layer_new(SHMEM_TEAM_WORLD, WEFT_BF16, 5, 64, 800000);
    captured.host.residual_out = captured.residual_out.host;
    captured.device.residual_out = captured.residual_out.device;
    weft_cu_graph_exec exec = graph_capture(gpu_stream, capture);
    for (int round = 0; round < gpu_rounds_together(3000, 12); round++) {
        draw_numbers(&captured, 810000 + 10 * (uint64_t)round);
        expect_done(norm(&captured, true), "on the host");
        graph_replay(exec, gpu_stream);
        gpu_drain(gpu_stream);
        expect_same(&captured);
    }
    graph_drop(exec);
}

/* On PE 0 only: the others notice nothing. */
static void wrong_arguments(void) {
    tap_case("a wrong argument is an error of its member, and the next call works");
    struct layer l = layer_new(SHMEM_TEAM_WORLD, WEFT_F16, 3, 32, 850000), wrong = l;
    if (shmem_my_pe() == 0) {
        wrong.device.out = NULL;
        int rc = norm(&wrong, false);
        EXPECT(rc == -EINVAL && strstr(weft_last_error(), "norm->out is NULL"), "%d: %s", rc,
               weft_last_error());
        wrong = l;
        wrong.device.dtype = WEFT_F64;
        rc = norm(&wrong, false);
        EXPECT(rc == -EINVAL && strstr(weft_last_error(), "norm->dtype is WEFT_F64"), "%d: %s", rc,
               weft_last_error());
    }
    norm_once(SHMEM_TEAM_WORLD, WEFT_F16, 3, 32, 860000);
}

int main(void) {
    static const weft_dtype dtypes[] = {WEFT_F32, WEFT_BF16, WEFT_F16};
    static const char *const names[] = {"f32", "bf16", "f16"};
    shmem_init();
    gpu_start();
    both_open(ROOM);
    for (size_t i = 0; i < 3; i++) {
        tap_case(names[i]);
        shapes(dtypes[i], gpu_rounds_together(60, 3), 1 + 100000 * i);
    }
    large();
    graph();
    wrong_arguments();
    both_close();
    return gpu_finish();
}
