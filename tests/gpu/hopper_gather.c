/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: weft_all_gather_matmul by the kernels for Hopper that gather and multiply: odd
 * numbers of rows, several b of which one is for the kernel, or none, A itself, results against
 * double, nothing written beside them; graphs that are launched again with other data, between
 * calls of the host; calls without waiting, with one member that is late. PEs: 2 3 4 */
#include "gpu/gather.h"
#include "gpu/hopper_race.h"

/* More than a kernel for few rows takes. */
enum { ROWS_MIN = 129, ROWS_MOST = 300 };

/* Columns, of which one is checked in each row of a product. */
enum { CHECKED_EVERY = 31 };

/* Rows of b, or its columns, begin at multiples of 16 bytes if the kernel is to take it. */
static struct placed draw_b(uint64_t seed, size_t cols, bool transposed) {
    size_t width = transposed ? g.k : cols, ld = (width + 7) / 8 * 8 + (random_below(4) == 0);
    weft_matrix shape = {NULL, g.k, cols, ld, g.dtype, transposed};
    struct tensor image = tensor_of(PRIVATE, shape);
    tensor_fill(&image, seed);
    suits = true;
    struct placed b = place(random_below(2) ? OWN : SYMMETRIC, image);
    suits = false;
    return b;
}

static void draw(uint64_t key) {
    draw_alike(key);
    g.dtype = random_below(2) ? WEFT_BF16 : WEFT_F16;
    g.rows = ROWS_MIN + random_below(ROWS_MOST - ROWS_MIN);
    g.k = 8 * (1 + random_below(20));
    g.copies = random_below(2);
    g.nb = g.copies ? random_below(NB_MAX) : 1 + random_below(2);
    bool transposed = random_below(2); /* the first b, on all members */
    draw_alone(key);
    weft_matrix shape = {NULL, g.rows, g.k, g.k + random_below(2) * 3, g.dtype, false};
    struct tensor shard = tensor_of(PRIVATE, shape);
    tensor_fill(&shard, seed_of(key, group.me, 0));
    g.shard = place(OWN, shard);
    for (size_t j = 0; j < g.nb; j++) {
        size_t n = 1 + random_below(300);
        g.b[j] = draw_b(seed_of(key, group.me, 1 + j), n, j == 0 ? transposed : random_below(2));
        g.c[j] = result(g.rows * (size_t)group.n, n, g.dtype);
    }
    if (g.copies)
        g.full = result(g.rows * (size_t)group.n, g.k, g.dtype);
}

static void enqueue_thrice(void) {
    gather_enqueue();
    gather_enqueue();
    gather_enqueue();
}

static void one_of_each(void) {
    for (int i = 0; i < gpu_rounds_together(100, 6); i++) {
        uint64_t key = 10 + (uint64_t)i;
        draw(key);
        gather_enqueue();
        gather_check(key, CHECKED_EVERY);
        gather_free();
    }
}

/* A graph of an odd number of calls: when it is launched again, its first call has the half of its
 * last one. */
static void graphs(void) {
    for (uint64_t key = 900; key < 902; key++) {
        draw(key);
        weft_cu_graph_exec graph = graph_capture(gpu_stream, enqueue_thrice);
        for (uint64_t turn = 0; turn < 3; turn++) {
            gather_write(key + 100 * turn);
            if (turn == 1)
                gather_enqueue();
            graph_replay(graph, gpu_stream);
            gather_check(key + 100 * turn, CHECKED_EVERY);
        }
        graph_drop(graph);
        gather_free();
    }
}

/* --- Members of unlike speed ------------------------------------------------------------------ */

/* The slow member multiplies a wider b, so the others are a call ahead of it. All elements of
 * member m's shard of turn t are (t + 1) * (m + 1). */
enum { RACE_ROWS = 130, RACE_K = 8, WIDE = 504, NARROW = 8 };

static int race_call(void) {
    return weft_all_gather_matmul(group.team, &race.in, &race.b, 1, &race.out, NULL, stream());
}

static void race_draw(int slow, bool transposed) {
    draw_alike(20);
    size_t all = RACE_ROWS * (size_t)group.n, cols = group.me == slow ? WIDE : NARROW;
    race = (struct race){.slow = slow};
    race.in = race_matrix(RACE_ROWS, RACE_K, false, 0, 0);
    race.b = race_matrix(RACE_K, cols, transposed, transposed ? RACE_K : cols, 1);
    race.out = race_matrix(all, cols, false, 0, 0);
    for (int turn = 0; turn < TURNS; turn++) {
        double value = (turn + 1) * (group.me + 1);
        race.inputs[turn] = race_matrix(RACE_ROWS, RACE_K, false, RACE_K, value);
        race.results[turn] = race_matrix(all, cols, false, 0, 0);
    }
}

static double product_wanted(int turn, size_t row) {
    return (turn + 1) * (double)(row / RACE_ROWS + 1) * RACE_K;
}

static void races(void) {
    for (int i = 0; i < race_rounds(group.n) * group.n; i++) {
        race_draw(i % group.n, (i + i / group.n) % 2);
        race_run(product_wanted);
    }
}

int main(void) {
    return hopper_cases(one_of_each, races, graphs);
}
