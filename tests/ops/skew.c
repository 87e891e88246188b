/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: PEs that arrive at very different times. Consecutive calls on the same buffers,
 * inputs that are overwritten as soon as a call returns, no synchronisation by the caller; the same
 * bits in every run; a shard large enough that its owner multiplies it while the others are
 * missing. Factors are transposed or not. */
#include <time.h>
#include "ops/tensor.h"

static int me, npes;

static void delay(uint64_t microseconds) {
    struct timespec time = {.tv_nsec = (long)microseconds * 1000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

/* Usually no delay, sometimes long enough for the others to run ahead into the next call. */
static void random_delay(void) {
    size_t pick = random_below(8);
    if (pick < 3)
        delay(pick == 0 ? random_below(2000) : random_below(100));
}

/* Small integers, so that sums and products are exact in any order. */
static float number(int call, int pe, size_t i) {
    return (float)(mix((uint64_t)call * 4096 + (uint64_t)pe * 64 + i) % 7) - 3;
}

static void fill(float *x, size_t nelems, int call, int pe) {
    for (size_t i = 0; i < nelems; i++)
        x[i] = number(call, pe, i);
}

/* The orientation is a new one. */
static void fill_factor(weft_matrix *m, int call, int pe) {
    m->transposed = random_below(2);
    m->ld = m->transposed ? m->rows : m->cols;
    for (size_t i = 0; i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++)
            ((float *)m->data)[m->transposed ? j * m->ld + i : i * m->ld + j] =
                number(call, pe, i * m->cols + j);
}

enum { CALLS = 100, NELEMS = 600, SIDE = 12 };

static void all_reduce_in_a_row(float *x) {
    tap_case("100 all-reduces in place with delays");
    for (int call = 0; call < CALLS; call++) {
        size_t nelems = call % 3 == 0 ? 4 : call % 3 == 1 ? NELEMS : NELEMS * 8;
        fill(x, nelems, call, me);
        random_delay();
        int error =
            weft_all_reduce(SHMEM_TEAM_WORLD, x, x, nelems, WEFT_F32, WEFT_SUM, WEFT_STREAM_HOST);
        EXPECT(error == 0, "%s", weft_last_error());
        for (size_t i = 0; i < nelems; i += 1 + nelems / 97) {
            float sum = 0;
            for (int pe = 0; pe < npes; pe++)
                sum += number(call, pe, i);
            EXPECT(x[i] == sum, "call %d, %zu elements: [%zu] is %g, not %g", call, nelems, i,
                   (double)x[i], (double)sum);
        }
    }
}

static void gathers_in_a_row(float *x, float *y) {
    tap_case("100 all-gathers and reduce-scatters with delays");
    for (int call = 0; call < CALLS; call++) {
        size_t nelems = call % 2 ? 3 : NELEMS, all = nelems * (size_t)npes;
        fill(x, nelems, call, me);
        random_delay();
        weft_all_gather(SHMEM_TEAM_WORLD, y, x, nelems, WEFT_F32, WEFT_STREAM_HOST);
        memset(x, 0xff, nelems * sizeof *x);
        random_delay();
        weft_reduce_scatter(SHMEM_TEAM_WORLD, x, y, nelems, WEFT_F32, WEFT_SUM, WEFT_STREAM_HOST);
        memset(y, 0xff, all * sizeof *y);
        for (size_t i = 0; i < nelems; i++)
            EXPECT(x[i] == (float)npes * number(call, me, i), "call %d, [%zu] is %g", call, i,
                   (double)x[i]);
    }
}

/* Returns the elements that PE `from` sends to PE `to` in a call: fewer to itself, and none in
 * every fourth call. */
static size_t share(int call, int from, int to) {
    return call % 4 == 3 ? 0 : from == to ? 2 : call % 3 == 0 ? 1 : NELEMS / 2;
}

static void all_to_allv(int call, float *x, float *y) {
    size_t to[16], from[16], sent = 0, got = 0;
    for (int pe = 0; pe < npes; pe++) {
        to[pe] = share(call, pe, me);
        from[pe] = share(call, me, pe);
        fill(x + sent, from[pe], call * 16 + pe, me);
        sent += from[pe];
    }
    int error = weft_all_to_allv(SHMEM_TEAM_WORLD, y, to, NULL, x, from, NULL, 1, WEFT_F32,
                                 WEFT_STREAM_HOST);
    EXPECT(error == 0, "%s", weft_last_error());
    memset(x, 0xff, sent * sizeof *x);
    for (int pe = 0; pe < npes; pe++)
        for (size_t i = 0; i < to[pe]; i++, got++)
            EXPECT(y[got] == number(call * 16 + me, pe, i), "call %d, PE %d: [%zu] is %g", call, pe,
                   i, (double)y[got]);
}

static void broadcast(int call, float *x, float *y) {
    size_t nelems = call % 2 ? 3 : NELEMS;
    int root = call % npes;
    fill(x, nelems, call, me);
    int error = weft_broadcast(SHMEM_TEAM_WORLD, y, x, nelems, WEFT_F32, root, WEFT_STREAM_HOST);
    EXPECT(error == 0, "%s", weft_last_error());
    memset(x, 0xff, nelems * sizeof *x);
    for (size_t i = 0; i < nelems; i++)
        EXPECT(y[i] == number(call, root, i), "call %d: [%zu] is %g", call, i, (double)y[i]);
}

/* Calls with long lists, of which every second is wrong in its last entry. A member that has found
 * the wrong entry must not write its next list while another member still reads. */
static void wrong_calls(float *x, float *y) {
    enum { PARTS = 100 };
    static size_t to[16 * PARTS], from[16 * PARTS];
    tap_case("200 right and wrong all-to-alls in turn");
    for (int call = 0; call < 2 * CALLS; call++) {
        bool wrong = call % 2 == 0;
        to[npes * PARTS - 1] = wrong && me == npes - 1;
        int error = weft_all_to_allv(SHMEM_TEAM_WORLD, y, to, NULL, x, from, NULL, PARTS, WEFT_F32,
                                     WEFT_STREAM_HOST);
        EXPECT(wrong == (error != 0), "call %d: %d", call, error);
        EXPECT(!wrong || strstr(weft_last_error(), "dest_nelems"), "%s", weft_last_error());
    }
}

static void moves_in_a_row(float *x, float *y) {
    tap_case("300 broadcasts and all-to-alls with delays");
    for (int call = 0; call < 3 * CALLS; call++) {
        random_delay();
        if (call % 3 == 0)
            broadcast(call, x, y);
        else
            all_to_allv(call, x, y);
    }
}

/* Returns row r of A, from the PE that owns its shard, times column j of B on PE `reader`. */
static float product(int call, int owner, int reader, size_t row, size_t col) {
    float sum = 0;
    for (size_t k = 0; k < SIDE; k++)
        sum += number(call, owner, row * SIDE + k) * number(-call, reader, k * SIDE + col);
    return sum;
}

static void all_gather_matmuls_in_a_row(float *x, float *y) {
    tap_case("100 all-gathers into a matmul with delays");
    float b[SIDE * SIDE];
    size_t rows = SIDE * (size_t)npes;
    weft_matrix a = {x, SIDE, SIDE, SIDE, WEFT_F32, false},
                bm = {b, SIDE, SIDE, SIDE, WEFT_F32, false},
                c = {y, rows, SIDE, SIDE, WEFT_F32, false};
    for (int call = 0; call < CALLS; call++) {
        fill_factor(&a, call, me);
        fill_factor(&bm, -call, me);
        random_delay();
        int error =
            weft_all_gather_matmul(SHMEM_TEAM_WORLD, &a, &bm, 1, &c, NULL, WEFT_STREAM_HOST);
        EXPECT(error == 0, "%s", weft_last_error());
        memset(x, 0xff, SIDE * SIDE * sizeof *x);
        for (size_t i = 0; i < rows * SIDE; i++) {
            float want = product(call, (int)(i / SIDE / SIDE), me, i / SIDE % SIDE, i % SIDE);
            EXPECT(y[i] == want, "call %d: [%zu] is %g, not %g", call, i, (double)y[i],
                   (double)want);
        }
    }
}

static float sum_of_products(int call, size_t row, size_t col) {
    float sum = 0;
    for (int pe = 0; pe < npes; pe++)
        sum += product(call, pe, pe, row, col);
    return sum;
}

static void matmul_reductions_in_a_row(float *x, float *y) {
    tap_case("100 matmuls into reduce-scatter and all-reduce with delays");
    float b[SIDE * SIDE];
    size_t rows = 4 * (size_t)npes;
    weft_matrix a = {x, rows, SIDE, SIDE, WEFT_F32, false},
                bm = {b, SIDE, SIDE, SIDE, WEFT_F32, false},
                shard = {y, 4, SIDE, SIDE, WEFT_F32, false},
                c = {y, rows, SIDE, SIDE, WEFT_F32, false};
    for (int call = 0; call < CALLS; call++) {
        fill_factor(&a, call, me);
        fill_factor(&bm, -call, me);
        random_delay();
        bool all = call % 2;
        int error =
            all ? weft_matmul_all_reduce(SHMEM_TEAM_WORLD, &a, &bm, WEFT_SUM, &c, WEFT_STREAM_HOST)
                : weft_matmul_reduce_scatter(SHMEM_TEAM_WORLD, &a, &bm, WEFT_SUM, &shard,
                                             WEFT_STREAM_HOST);
        EXPECT(error == 0, "%s", weft_last_error());
        memset(x, 0xff, rows * SIDE * sizeof *x);
        size_t first = all ? 0 : 4 * (size_t)me;
        for (size_t i = 0; i < (all ? rows : 4) * SIDE; i++) {
            float want = sum_of_products(call, first + i / SIDE, i % SIDE);
            EXPECT(y[i] == want, "call %d: [%zu] is %g, not %g", call, i, (double)y[i],
                   (double)want);
        }
    }
}

static void same_bits_in_every_run(void) {
    tap_case("the same bits in every run");
    enum { ROWS = 96, COLS = 80, DEPTH = 50 };
    tensors_reset();
    struct tensor a = tensor_factor(PRIVATE, ROWS, DEPTH, WEFT_F32);
    struct tensor b = tensor_factor(PRIVATE, DEPTH, COLS, WEFT_F32);
    struct tensor c = tensor_new(PRIVATE, ROWS, COLS, COLS, WEFT_F32);
    uint64_t product_hash = 0, vector_hash = 0;
    for (int run = 0; run < 6; run++) {
        tensor_fill(&a, (uint64_t)me * 2);
        tensor_fill(&b, (uint64_t)me * 2 + 1);
        random_delay();
        weft_matmul_all_reduce(SHMEM_TEAM_WORLD, &a.m, &b.m, WEFT_AVG, &c.m, WEFT_STREAM_HOST);
        uint64_t product = tensor_hash(&c);
        tensor_fill(&c, (uint64_t)me);
        random_delay();
        weft_all_reduce(SHMEM_TEAM_WORLD, c.m.data, c.m.data, ROWS * COLS, WEFT_F32, WEFT_SUM,
                        WEFT_STREAM_HOST);
        uint64_t vector = tensor_hash(&c);
        EXPECT(run == 0 || (product == product_hash && vector == vector_hash), "run %d", run);
        product_hash = product;
        vector_hash = vector;
    }
    tensor_free(&a);
    tensor_free(&b);
    tensor_free(&c);
}

/* Returns the number in e4m3. */
static uint8_t eight_bits(float x) {
    static const uint8_t magnitudes[] = {0, 0x38, 0x40, 0x44};
    return magnitudes[(int)fabsf(x)] | (x < 0 ? 0x80 : 0);
}

/* 640 x 256 x 1600 with 8-bit factors and so wide a b that A is gathered first: the early product
 * is used all the same. */
static void early_scaled_product(enum memory memory) {
    enum { ROWS = 640, DEPTH = 256, COLS = 1600 };
    tensors_reset();
    struct tensor a = tensor_factor(memory, ROWS, DEPTH, WEFT_F8E4M3);
    struct tensor b = tensor_factor(PRIVATE, DEPTH, COLS, WEFT_F8E4M3);
    struct tensor c = tensor_new(PRIVATE, ROWS * (size_t)npes, COLS, COLS + 3, WEFT_F32);
    for (size_t i = 0; i < ROWS * DEPTH; i++)
        *(uint8_t *)tensor_at(&a, i / DEPTH, i % DEPTH) = eight_bits(number(1, me, i));
    for (size_t i = 0; i < DEPTH * COLS; i++)
        *(uint8_t *)tensor_at(&b, i / COLS, i % COLS) = eight_bits(number(2, me, i));
    float row_scales[ROWS], half = 0.5f;
    for (size_t i = 0; i < ROWS; i++)
        row_scales[i] = ldexpf(1, me + (int)(i % 3));
    weft_matrix a_scale = {row_scales, ROWS, 1, 1, WEFT_F32, false},
                b_scale = {&half, 1, 1, 1, WEFT_F32, false};
    shmem_barrier_all();
    if (me == npes - 1)
        delay(3000 + random_below(20000));
    int error = weft_all_gather_scaled_matmul(SHMEM_TEAM_WORLD, &a.m, &a_scale, &b.m, &b_scale, 1,
                                              NULL, &c.m, NULL, WEFT_STREAM_HOST);
    EXPECT(error == 0, "%s", weft_last_error());
    for (int probe = 0; probe < 2000; probe++) {
        size_t i = random_below(c.m.rows), j = random_below(COLS);
        float want = 0;
        for (size_t k = 0; k < DEPTH; k++)
            want += number(1, (int)(i / ROWS), i % ROWS * DEPTH + k) * number(2, me, k * COLS + j);
        want *= ldexpf(0.5f, (int)(i / ROWS) + (int)(i % ROWS % 3));
        EXPECT(tensor_get(&c, i, j) == (double)want, "c(%zu, %zu) is %g, not %g", i, j,
               tensor_get(&c, i, j), (double)want);
    }
    EXPECT(tensor_guarded(&c), "wrote outside of c");
    tensor_free(&a);
    tensor_free(&b);
    tensor_free(&c);
}

/* 640 x 256 x 640: about two milliseconds of work, in which the last PE is still missing. */
static void early_product(enum memory memory) {
    enum { ROWS = 640, DEPTH = 256, COLS = 640 };
    tensors_reset();
    struct tensor a = tensor_factor(memory, ROWS, DEPTH, WEFT_F32);
    struct tensor b = tensor_factor(PRIVATE, DEPTH, COLS, WEFT_F32);
    struct tensor c = tensor_new(PRIVATE, ROWS * (size_t)npes, COLS, COLS + 3, WEFT_F32);
    for (size_t i = 0; i < ROWS * DEPTH; i++)
        *(float *)tensor_at(&a, i / DEPTH, i % DEPTH) = number(1, me, i);
    for (size_t i = 0; i < DEPTH * COLS; i++)
        *(float *)tensor_at(&b, i / COLS, i % COLS) = number(2, me, i);
    shmem_barrier_all();
    if (me == npes - 1)
        delay(3000 + random_below(20000));
    int error =
        weft_all_gather_matmul(SHMEM_TEAM_WORLD, &a.m, &b.m, 1, &c.m, NULL, WEFT_STREAM_HOST);
    EXPECT(error == 0, "%s", weft_last_error());
    for (int probe = 0; probe < 2000; probe++) {
        size_t i = random_below(c.m.rows), j = random_below(COLS);
        float want = 0;
        for (size_t k = 0; k < DEPTH; k++)
            want += number(1, (int)(i / ROWS), i % ROWS * DEPTH + k) * number(2, me, k * COLS + j);
        EXPECT(tensor_get(&c, i, j) == (double)want, "c(%zu, %zu) is %g, not %g", i, j,
               tensor_get(&c, i, j), (double)want);
    }
    EXPECT(tensor_guarded(&c), "wrote outside of c");
    tensor_free(&a);
    tensor_free(&b);
    tensor_free(&c);
}

int main(void) {
    tensors_open(false);
    me = shmem_my_pe();
    npes = shmem_n_pes();
    random_state = (uint64_t)me + 5;
    float *x = shmem_malloc(NELEMS * 8 * sizeof *x), *y = malloc(NELEMS * 8 * 16 * sizeof *y);
    all_reduce_in_a_row(x);
    gathers_in_a_row(x, y);
    moves_in_a_row(x, y);
    wrong_calls(x, y);
    all_gather_matmuls_in_a_row(x, y);
    matmul_reductions_in_a_row(x, y);
    same_bits_in_every_run();
    tap_case("the own shard is multiplied while a peer is missing");
    for (int run = 0; run < 4; run++)
        early_product(run % 2 ? HEAP : PRIVATE);
    tap_case("the same with scales");
    for (int run = 0; run < 4; run++)
        early_scaled_product(run % 2 ? HEAP : PRIVATE);
    free(y);
    shmem_free(x);
    shmem_free(heap_arena);
    return tap_finish();
}
