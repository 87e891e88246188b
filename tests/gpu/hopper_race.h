/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of the kernels for Hopper that exchange matrices: calls without waiting, in graphs and
 * between them, with one member that is late; and the order of a test's cases. */
#ifndef TESTS_GPU_HOPPER_RACE_H
#define TESTS_GPU_HOPPER_RACE_H

#include <unistd.h>
#include "gpu/graph.h"
#include "gpu/matrices.h"

/* The number of calls is odd: the first call of a graph that is launched again has the half of its
 * last one. */
enum { TURNS = 5 };

/* Nobody waits for a stream before the end: inputs and results of a turn are copied in the order of
 * the stream. */
static struct race {
    int slow;
    bool scatters;
    weft_matrix in, b, out, inputs[TURNS], results[TURNS];
} race;

/* Returns a matrix of BF16: the first `count` elements of each line, which is a row or a transposed
 * matrix's column, have the value, the others are 0. */
static inline weft_matrix race_matrix(size_t rows, size_t cols, bool transposed, size_t count,
                                      double value) {
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

static inline void race_copy(const weft_matrix *to, const weft_matrix *from) {
    gpu_enter();
    GPU(cuMemcpyAsync((weft_cu_address)to->data, (weft_cu_address)from->data,
                      from->rows * from->cols * 2, gpu_stream));
    gpu_leave();
}

static int race_call(void); /* the test's */

/* Makes the slow member late by up to 400 us. */
enum { LATE_US = 400 };
static inline void race_sleep(void *unused) {
    static uint64_t drawn; /* in the order of the stream */
    (void)unused;
    drawn = mix(drawn + 1);
    usleep((unsigned)(drawn % LATE_US));
}
static inline void race_delay(void) {
    if (group.me != race.slow)
        return;
    gpu_enter();
    GPU(cuLaunchHostFunc(gpu_stream, race_sleep, NULL));
    gpu_leave();
}

static inline void race_enqueue(void) {
    for (int turn = 0; turn < TURNS; turn++) {
        race_copy(&race.in, &race.inputs[turn]);
        race_delay();
        done(race_call(), "a call of the race");
        race_copy(&race.results[turn], &race.out);
    }
}

/* Runs the race that is drawn, and compares all elements of its results with wanted(turn, row). */
static inline void race_run(double (*wanted)(int turn, size_t row)) {
    weft_cu_graph_exec graph = graph_capture(gpu_stream, race_enqueue);
    size_t rows = race.out.rows, cols = race.out.cols;
    uint16_t *found = malloc(rows * cols * 2);
    graph_replay(graph, gpu_stream);
    race_enqueue();
    graph_replay(graph, gpu_stream);
    gpu_drain(gpu_stream);
    for (int turn = 0; turn < TURNS; turn++) {
        gpu_copy(found, race.results[turn].data, rows * cols * 2);
        for (size_t i = 0; i < rows * cols; i++) {
            double value = element_get(WEFT_BF16, &found[i]), right = wanted(turn, i / cols);
            EXPECT(value == right, "member %d slow, turn %d: element %zu is %g, not %g", race.slow,
                   turn, i, value, right);
        }
    }
    free(found);
    graph_drop(graph);
}

/* Returns how often to run `races` races, each of which makes TURNS calls three times: on GPUs so
 * often that there are 10,000 calls. */
static inline int race_rounds(int races) {
    return gpu_rounds_together(10000 / (3 * TURNS * races) + 1, 1);
}

/* A pretended GPU has so few multiprocessors that clusters compute several tiles; the GPUs of PEs
 * with odd numbers have more, for which other tiles would suit. */
static inline int hopper_cases(void (*one_of_each)(void), void (*races)(void),
                               void (*graphs)(void)) {
    const char *pe = getenv("WEFT_PE");
    setenv("WEFT_FAKE_SMS", pe && atoi(pe) % 2 ? "8" : "4", 1);
    setenv("WEFT_PRODUCTS", "own", 1);
    matrices_start();
    with_group(SHMEM_TEAM_WORLD, "of all PEs", one_of_each);
    with_group(gpu_list_team(), "of a list of PEs", one_of_each);
    with_group(SHMEM_TEAM_WORLD, "members of unlike speed", races);
    with_group(SHMEM_TEAM_WORLD, "graphs, launched again and between calls of the host", graphs);
    return gpu_finish();
}

#endif
