/* SPDX-License-Identifier: BSD-3-Clause */
/* Heat in a square plate: a grid of PEs, each with a block of the plate and a frame around it that
 * its neighbours fill. Edges are sent with signals, PEs only wait for their neighbours, and there
 * is no barrier between the steps.
 *
 *        column team            A PE's block in its frame, of the same shape on every PE:
 *        |                      row 0 and rows + 1, column 0 and cols + 1 are the neighbours'
 *     +--+--+--+                edges or the rim of the plate.
 *     |  |  |  | -- row team
 *     +--+--+--+
 *
 *   oshrun -n 4 build/examples/heat */
#include <shmem.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 150, STEPS = 300 };
enum side { ABOVE, BELOW, LEFT, RIGHT, SIDES };

/* One axis of the grid of PEs, and this PE's piece of the plate along it. */
struct axis {
    shmem_team_t team;
    int my_pe, npes;
    int first, cells;
};

static struct axis vertical, horizontal;
static int width;                /* of a frame's row, the same on every PE */
static double *plates[2];        /* symmetric: the temperatures of even and odd steps */
static uint64_t arrivals[SIDES]; /* the last step whose edge has arrived from that side */

static int first_of(int piece, int pieces) {
    return piece * SIDE / pieces;
}

static struct axis make_axis(shmem_team_t team) {
    struct axis axis = {
        .team = team, .my_pe = shmem_team_my_pe(team), .npes = shmem_team_n_pes(team)};
    axis.first = first_of(axis.my_pe, axis.npes);
    axis.cells = first_of(axis.my_pe + 1, axis.npes) - axis.first;
    return axis;
}

/* Returns the number in the job of the PE that is `distance` further along the axis, or -1 beyond
 * the plate's rim. */
static int neighbour(const struct axis *axis, int distance) {
    return shmem_team_translate_pe(axis->team, axis->my_pe + distance, SHMEM_TEAM_WORLD);
}

static int cells_of_neighbour(const struct axis *axis, int distance) {
    int piece = axis->my_pe + distance;
    return first_of(piece + 1, axis->npes) - first_of(piece, axis->npes);
}

static double *cell(double *plate, int row, int col) {
    return plate + row * width + col;
}

/* The rim is hot above, cold elsewhere; cell (row, col) counts from the rim of the whole plate. */
static double at_first(int row, int col) {
    return row == 0 ? 100.0 : (double)((row * 7 + col * 3) % 10);
}

static void fill(double *plate) {
    for (int row = 0; row < vertical.cells + 2; row++)
        for (int col = 0; col < horizontal.cells + 2; col++)
            *cell(plate, row, col) = at_first(vertical.first + row, horizontal.first + col);
}

/* Sends the outermost cells to the neighbours' frames. A PE sends the edges of step s after it has
 * received the edges of step s - 1, which the neighbour sent after it had finished step s - 2: so
 * no PE overwrites a frame of this plate that is still read. */
static void send_edges(double *plate, uint64_t step) {
    int rows = vertical.cells, cols = horizontal.cells;
    int above = neighbour(&vertical, -1), below = neighbour(&vertical, 1);
    int left = neighbour(&horizontal, -1), right = neighbour(&horizontal, 1);
    if (above >= 0) {
        int last = cells_of_neighbour(&vertical, -1) + 1;
        shmem_put_signal(cell(plate, last, 1), cell(plate, 1, 1), (size_t)cols, &arrivals[BELOW],
                         step, SHMEM_SIGNAL_SET, above);
    }
    if (below >= 0)
        shmem_put_signal(cell(plate, 0, 1), cell(plate, rows, 1), (size_t)cols, &arrivals[ABOVE],
                         step, SHMEM_SIGNAL_SET, below);
    if (left >= 0) {
        int last = cells_of_neighbour(&horizontal, -1) + 1;
        shmem_iput(cell(plate, 1, last), cell(plate, 1, 1), width, width, (size_t)rows, left);
    }
    if (right >= 0)
        shmem_iput(cell(plate, 1, 0), cell(plate, 1, cols), width, width, (size_t)rows, right);
    shmem_fence(); /* a column before its signal */
    if (left >= 0)
        shmem_signal_set(&arrivals[RIGHT], step, left);
    if (right >= 0)
        shmem_signal_set(&arrivals[LEFT], step, right);
}

static void await_edges(uint64_t step) {
    int away[SIDES]; /* non-zero if there is no neighbour */
    away[ABOVE] = neighbour(&vertical, -1) < 0;
    away[BELOW] = neighbour(&vertical, 1) < 0;
    away[LEFT] = neighbour(&horizontal, -1) < 0;
    away[RIGHT] = neighbour(&horizontal, 1) < 0;
    shmem_wait_until_all(arrivals, SIDES, away, SHMEM_CMP_GE, step);
}

static void relax(const double *from, double *to, int rows, int cols, int row_cells) {
    for (int row = 1; row <= rows; row++)
        for (int col = 1; col <= cols; col++) {
            const double *here = from + row * row_cells + col;
            to[row * row_cells + col] =
                0.25 * (here[-row_cells] + here[row_cells] + here[-1] + here[1]);
        }
}

/* Computes the whole plate on one PE, for comparison: the same sums in the same order. */
static double *heat_alone(void) {
    enum { FRAME = SIDE + 2 };
    double *two = malloc(2 * sizeof *two * FRAME * FRAME);
    for (int i = 0; two && i < 2 * FRAME * FRAME; i++)
        two[i] = at_first(i % (FRAME * FRAME) / FRAME, i % FRAME);
    for (int step = 0; two && step < STEPS; step++)
        relax(two + step % 2 * FRAME * FRAME, two + (step + 1) % 2 * FRAME * FRAME, SIDE, SIDE,
              FRAME);
    return two; /* STEPS is even: the result is in the first half */
}

/* Returns the number of cells in this PE's block that differ from the result of a single PE. */
static long compare(double *plate) {
    double *alone = heat_alone();
    long wrong = alone ? 0 : 1;
    for (int row = 1; alone && row <= vertical.cells; row++)
        for (int col = 1; col <= horizontal.cells; col++)
            wrong += *cell(plate, row, col) !=
                     alone[(vertical.first + row) * (SIDE + 2) + horizontal.first + col];
    free(alone);
    return wrong;
}

/* The most even grid: the largest divisor up to the square root. */
static int grid_columns(int npes) {
    int columns = 1;
    for (int divisor = 1; divisor * divisor <= npes; divisor++)
        if (npes % divisor == 0)
            columns = divisor;
    return columns;
}

int main(void) {
    static long wrong, all_wrong;
    shmem_team_t row_team, column_team;
    shmem_init();
    int npes = shmem_n_pes(), columns = grid_columns(npes), rows = npes / columns;
    shmem_team_split_2d(SHMEM_TEAM_WORLD, columns, NULL, 0, &row_team, NULL, 0, &column_team);
    horizontal = make_axis(row_team);
    vertical = make_axis(column_team);
    width = SIDE / columns + 3; /* the widest piece, and its frame */
    for (int i = 0; i < 2; i++) {
        plates[i] = shmem_malloc(sizeof(double) * (size_t)width * (size_t)(SIDE / rows + 3));
        fill(plates[i]);
    }
    shmem_barrier_all();
    for (uint64_t step = 1; step <= STEPS; step++) {
        double *from = plates[(step + 1) % 2], *to = plates[step % 2];
        send_edges(from, step);
        await_edges(step);
        relax(from, to, vertical.cells, horizontal.cells, width);
    }
    wrong = compare(plates[STEPS % 2]);
    shmem_sum_reduce(SHMEM_TEAM_WORLD, &all_wrong, &wrong, 1);
    if (shmem_my_pe() == 0)
        printf("%d steps on a grid of %d x %d PEs: %s\n", STEPS, rows, columns,
               all_wrong ? "WRONG" : "the same as on one");
    shmem_finalize();
    return all_wrong ? 1 : 0;
}
