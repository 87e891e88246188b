/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: weft_matmul_reduce_scatter and weft_matmul_all_reduce by the kernels for Hopper that
 * multiply and add: several tiles, factors and results that the kernel does not take on some of the
 * members, results against double, the same bits on all members, nothing written beside them;
 * graphs that are launched again with other data, between calls of the host; calls without waiting,
 * with one member that is late. PEs: 2 3 4 */
#include "gpu/hopper_race.h"
#include "gpu/reduction.h"

enum { BOX_ROWS = 64, BOXES = 3 };

/* Columns, of which one is checked in each row of a result. */
enum { CHECKED_EVERY = 7 };

/* b is transposed on all members or on none; the alignment is a member's own. */
static struct placed draw_factor(size_t rows, size_t cols, bool transposed, uint64_t seed) {
    size_t width = transposed ? rows : cols, ld = width + random_below(4) / 3;
    weft_matrix shape = {NULL, rows, cols, ld, r.dtype, transposed};
    struct tensor image = tensor_of(PRIVATE, shape);
    tensor_fill(&image, seed);
    suits = random_below(4) > 0;
    struct placed factor = place(random_below(2) ? OWN : SYMMETRIC, image);
    suits = false;
    return factor;
}

static void draw(uint64_t key, bool scatters) {
    draw_alike(key);
    size_t rows = BOX_ROWS * (1 + random_below(BOXES)), all = rows * (size_t)group.n;
    r.dtype = random_below(2) ? WEFT_BF16 : WEFT_F16;
    r.op = WEFT_SUM;
    r.roundings = 2; /* the others' parts first, then the own one */
    r.scatters = scatters;
    r.m = all;
    r.n = 8 * (1 + random_below(40));
    bool transposed = random_below(2); /* b */
    for (int member = 0; member < group.n; member++)
        r.depths[member] = 8 * random_below(12);
    draw_alone(key);
    r.a = draw_factor(r.m, r.depths[group.me], false, seed_of(key, group.me, 0));
    r.b = draw_factor(r.depths[group.me], r.n, transposed, seed_of(key, group.me, 1));
    suits = random_below(4) > 0;
    r.c = result(scatters ? rows : all, r.n, r.dtype);
    suits = false;
}

static void enqueue_thrice(void) {
    reduce_enqueue();
    reduce_enqueue();
    reduce_enqueue();
}

static void one_of_each(void) {
    for (int i = 0; i < gpu_rounds_together(100, 3); i++)
        for (int scatters = 0; scatters < 2; scatters++) {
            uint64_t key = 10 + 2 * (uint64_t)i + (uint64_t)scatters;
            draw(key, scatters);
            reduce_enqueue();
            reduce_check(key, CHECKED_EVERY);
            if (!scatters)
                same_bits();
            reduce_free();
        }
}

/* A graph of an odd number of calls: when it is launched again, its first call has the half of its
 * last one. */
static void graphs(void) {
    for (uint64_t key = 900; key < 902; key++) {
        draw(key, key % 2);
        weft_cu_graph_exec graph = graph_capture(gpu_stream, enqueue_thrice);
        for (uint64_t turn = 0; turn < 3; turn++) {
            write_again(&r.a, seed_of(key + 100 * turn, group.me, 0));
            write_again(&r.b, seed_of(key + 100 * turn, group.me, 1));
            if (turn == 1)
                reduce_enqueue();
            graph_replay(graph, gpu_stream);
            reduce_check(key + 100 * turn, CHECKED_EVERY);
        }
        graph_drop(graph);
        reduce_free();
    }
}

/* --- Members of unlike speed ------------------------------------------------------------------ */

/* The slow member multiplies deeper matrices, so the others are a call ahead of it. All elements of
 * member m's product in turn t are (t + 1) * (m + 1) * SHALLOW. */
enum { SHALLOW = 8, DEEP = 256, RACE_COLS = 48 };

static int race_call(void) {
    return (race.scatters ? weft_matmul_reduce_scatter : weft_matmul_all_reduce)(
        group.team, &race.in, &race.b, WEFT_SUM, &race.out, stream());
}

static void race_draw(int slow, bool scatters) {
    draw_alike(20);
    size_t all = BOX_ROWS * (size_t)group.n, rows = scatters ? BOX_ROWS : all;
    size_t k = group.me == slow ? DEEP : SHALLOW;
    race = (struct race){.slow = slow, .scatters = scatters};
    race.in = race_matrix(all, k, false, k, 0);
    race.b = race_matrix(k, RACE_COLS, true, SHALLOW, 1);
    race.out = race_matrix(rows, RACE_COLS, false, 0, 0);
    for (int turn = 0; turn < TURNS; turn++) {
        race.inputs[turn] = race_matrix(all, k, false, k, (turn + 1) * (group.me + 1));
        race.results[turn] = race_matrix(rows, RACE_COLS, false, 0, 0);
    }
}

static double sum_wanted(int turn, size_t row) {
    (void)row;
    return (turn + 1) * group.n * (group.n + 1) / 2.0 * SHALLOW;
}

static void races(void) {
    for (int i = 0; i < race_rounds(2 * group.n) * 2 * group.n; i++) {
        race_draw(i / 2 % group.n, i % 2);
        race_run(sum_wanted);
    }
}

/* The algorithm keeps small sums from being made by a kernel of their own. */
int main(void) {
    setenv("SHMEMX_ALGORITHM", "meet", 1);
    return hopper_cases(one_of_each, races, graphs);
}
