/* SPDX-License-Identifier: BSD-3-Clause */
/* Heat in a plate whose rows are distributed over the PEs. One kernel does all steps: in each step
 * the blocks that have computed a PE's first or last row put it into the neighbour's frame with a
 * signal, and only the blocks that need a frame wait for it.
 *
 *        row 0             frame: the last row of the PE above, or the plate's rim
 *        rows 1 .. ROWS    this PE's
 *        row ROWS + 1      frame: the first row of the PE below, or the rim */
#include "example.h"

enum { ROWS = 61, COLS = 190, STEPS = 100, BLOCKS = 8, THREADS = 128 };
enum { ABOVE, BELOW, SIDES };

static __host__ __device__ float relax(const float *at) {
    return 0.25f * ((at[-COLS] + at[COLS]) + (at[-1] + at[1]));
}

/* `t` is the handle of all PEs, `self` of a team with this PE only. plates[0] and plates[1] are
 * read and written alternately; arrived[side] is the last step whose row has arrived from that
 * side. */
__global__ void halo(const __grid_constant__ weft_device_team t,
                     const __grid_constant__ weft_device_team self, float *even, float *odd,
                     uint64_t *arrived) {
    for (int step = 1; step <= STEPS; step++) {
        const float *from = step % 2 ? even : odd;
        float *to = step % 2 ? odd : even;
        uint64_t before = (uint64_t)step - 1;
        for (int row = 1 + (int)blockIdx.x; row <= ROWS; row += (int)gridDim.x) {
            if (row == 1 && t.me > 0 && !weft_wait_ge_b(&t, &arrived[ABOVE], before))
                return;
            if (row == ROWS && t.me < t.n - 1 && !weft_wait_ge_b(&t, &arrived[BELOW], before))
                return;
            for (int col = 1 + (int)threadIdx.x; col < COLS - 1; col += (int)blockDim.x)
                to[row * COLS + col] = relax(&from[row * COLS + col]);
            __syncthreads();
            if (row == 1 && t.me > 0)
                weft_put_signal_b(&t, &to[(ROWS + 1) * COLS], &to[1 * COLS], COLS * sizeof *to,
                                  &arrived[BELOW], (uint64_t)step, WEFT_SIGNAL_SET, t.me - 1);
            if (row == ROWS && t.me < t.n - 1)
                weft_put_signal_b(&t, &to[0], &to[ROWS * COLS], COLS * sizeof *to, &arrived[ABOVE],
                                  (uint64_t)step, WEFT_SIGNAL_SET, t.me + 1);
        }
        if (!weft_barrier_grid(&self)) /* the next step reads the rows of this PE's other blocks */
            return;
    }
}

static float at_first(uint64_t seed, int row, int col) {
    return 50 * example_float(seed, (uint64_t)row * COLS + (uint64_t)col);
}

/* Computes the whole plate on the host, for comparison: the same sums in the same order. */
static float *heat_alone(uint64_t seed, int rows) {
    size_t cells = (size_t)(rows + 2) * COLS;
    float *plates = (float *)malloc(2 * cells * sizeof *plates);
    for (size_t i = 0; i < 2 * cells; i++)
        plates[i] = at_first(seed, (int)(i % cells / COLS), (int)(i % COLS));
    for (int step = 0; step < STEPS; step++)
        for (int row = 1; row <= rows; row++)
            for (int col = 1; col < COLS - 1; col++)
                plates[(step + 1) % 2 * cells + (size_t)(row * COLS + col)] =
                    relax(&plates[step % 2 * cells + (size_t)(row * COLS + col)]);
    return plates; /* STEPS is even: the result comes first */
}

int main(void) {
    example_begin();
    int me = shmem_my_pe(), n = shmem_n_pes();
    uint64_t seed = example_seed();
    enum { CELLS = (ROWS + 2) * COLS };
    float *even = example_malloc<float>(CELLS), *odd = example_malloc<float>(CELLS);
    uint64_t *arrived = example_malloc<uint64_t>(SIDES);
    shmem_team_t alone;
    weft_device_team team, self;
    WEFT(shmemx_team_create(&me, 1, 0, &alone));
    WEFT(shmemx_device_team(SHMEM_TEAM_WORLD, 1, 0, &team));
    WEFT(shmemx_device_team(alone, 1, 0, &self));

    static float host[CELLS];
    for (int i = 0; i < CELLS; i++)
        host[i] = at_first(seed, me * ROWS + i / COLS, i % COLS);
    CUDA(cudaMemcpy(even, host, sizeof host, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(odd, host, sizeof host, cudaMemcpyHostToDevice));
    shmem_barrier_all(); /* no PE puts a row into a plate that is still being filled */
    halo<<<BLOCKS, THREADS>>>(team, self, even, odd, arrived);
    CUDA(cudaMemcpy(host, even, sizeof host, cudaMemcpyDeviceToHost));

    float *whole = heat_alone(seed, n * ROWS);
    long wrong = 0;
    for (int row = 1; row <= ROWS; row++)
        for (int col = 0; col < COLS; col++)
            wrong += host[row * COLS + col] != whole[(me * ROWS + row) * COLS + col];
    free(whole);
    WEFT(shmemx_device_team_free(&self));
    return example_end("halo: 100 steps of a stencil in one kernel", wrong, &team);
}
