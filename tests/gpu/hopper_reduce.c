/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: weft_matmul_reduce_scatter and weft_matmul_all_reduce by the kernels for Hopper that
 * multiply and add: several tiles, factors and results that the kernel does not take on some of the
 * members, results against double, the same bits on all members, nothing written beside them;
 * graphs that are launched again with other data, between calls of the host; calls without waiting,
 * with one member that is late. PEs: 2 3 4 */
#include "gpu/graph.h"
#include "gpu/reduction.h"

enum { BOX_ROWS = 64, BOXES = 3 };

/* The rows of each of `b`'s columns are contiguous on all members; the alignment is a member's own.
 */
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
    r.scatters = scatters;
    r.m = all;
    r.n = 8 * (1 + random_below(40));
    for (int member = 0; member < group.n; member++)
        r.depths[member] = 8 * random_below(12);
    draw_alone(key);
    r.a = draw_factor(r.m, r.depths[group.me], false, seed_of(key, group.me, 0));
    r.b = draw_factor(r.depths[group.me], r.n, true, seed_of(key, group.me, 1));
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
            reduce_check(key);
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
            reduce_check(key + 100 * turn);
        }
        graph_drop(graph);
        reduce_free();
    }
}

/* --- Members of unlike speed ------------------------------------------------------------------ */

/* The slow member multiplies deeper matrices, so the others are a call ahead of it. Nobody waits
 * for a stream before the end. All elements of member m's product in turn t are (t + 1) * (m + 1) *
 * SHALLOW. */
enum { TURNS = 5, SHALLOW = 8, DEEP = 256, RACE_COLS = 48 };

static struct race {
    int slow;
    bool scatters;
    weft_matrix in, b, out, inputs[TURNS], results[TURNS];
} race;

/* `count` rows of the matrix, or columns of a transposed one, have the value, the others are 0. */
static weft_matrix on_gpu(size_t rows, size_t cols, bool transposed, size_t count, double value) {
    size_t ld = transposed ? rows : cols;
    weft_matrix shape = {NULL, rows, cols, ld, WEFT_BF16, transposed};
    struct tensor image = tensor_of(PRIVATE, shape);
    for (size_t i = 0; i < rows * cols; i++)
        element_set(WEFT_BF16, (uint16_t *)image.m.data + i, i % ld < count ? value : 0);
    suits = true;
    struct placed p = place(OWN, image);
    suits = false;
    tensor_free(&p.image);
    return p.m;
}

static void copy_in_order(const weft_matrix *to, const weft_matrix *from) {
    gpu_enter();
    GPU(cuMemcpyAsync((weft_cu_address)to->data, (weft_cu_address)from->data,
                      from->rows * from->cols * 2, gpu_stream));
    gpu_leave();
}

static int race_call(void) {
    return (race.scatters ? weft_matmul_reduce_scatter : weft_matmul_all_reduce)(
        group.team, &race.in, &race.b, WEFT_SUM, &race.out, stream());
}

static void race_enqueue(void) {
    for (int turn = 0; turn < TURNS; turn++) {
        copy_in_order(&race.in, &race.inputs[turn]);
        done(race_call(), "a call of the race");
        copy_in_order(&race.results[turn], &race.out);
    }
}

static void race_draw(int slow, bool scatters) {
    draw_alike(20);
    size_t all = BOX_ROWS * (size_t)group.n, rows = scatters ? BOX_ROWS : all;
    size_t k = group.me == slow ? DEEP : SHALLOW;
    race = (struct race){.slow = slow, .scatters = scatters};
    race.in = on_gpu(all, k, false, k, 0);
    race.b = on_gpu(k, RACE_COLS, true, SHALLOW, 1);
    race.out = on_gpu(rows, RACE_COLS, false, 0, 0);
    for (int turn = 0; turn < TURNS; turn++) {
        race.inputs[turn] = on_gpu(all, k, false, k, (turn + 1) * (group.me + 1));
        race.results[turn] = on_gpu(rows, RACE_COLS, false, 0, 0);
    }
}

static void race_check(int turn) {
    static uint16_t found[4 * BOX_ROWS * RACE_COLS];
    const weft_matrix *result = &race.results[turn];
    double wanted = (turn + 1) * group.n * (group.n + 1) / 2.0 * SHALLOW;
    gpu_copy(found, result->data, result->rows * result->cols * 2);
    for (size_t i = 0; i < result->rows * result->cols; i++) {
        double value = element_get(WEFT_BF16, &found[i]);
        EXPECT(value == wanted, "member %d slow, turn %d: element %zu is %g, not %g", race.slow,
               turn, i, value, wanted);
    }
}

static void races(void) {
    for (int i = 0; i < 2 * group.n; i++) {
        race_draw(i / 2, i % 2);
        weft_cu_graph_exec graph = graph_capture(gpu_stream, race_enqueue);
        graph_replay(graph, gpu_stream);
        race_enqueue();
        graph_replay(graph, gpu_stream);
        gpu_drain(gpu_stream);
        for (int turn = 0; turn < TURNS; turn++)
            race_check(turn);
        graph_drop(graph);
    }
}

/* A pretended GPU has so few multiprocessors that clusters compute several tiles. The algorithm
 * keeps small sums from being made by a kernel of their own. */
int main(void) {
    setenv("WEFT_FAKE_SMS", "4", 1);
    setenv("WEFT_PRODUCTS", "own", 1);
    setenv("SHMEMX_ALGORITHM", "meet", 1);
    matrices_start();
    with_group(SHMEM_TEAM_WORLD, "of all PEs", one_of_each);
    with_group(gpu_list_team(), "of a list of PEs", one_of_each);
    with_group(SHMEM_TEAM_WORLD, "members of unlike speed", races);
    with_group(SHMEM_TEAM_WORLD, "graphs, launched again and between calls of the host", graphs);
    return gpu_finish();
}
