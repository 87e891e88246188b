/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: products by the kernels for Hopper: all types and widths of tiles, transposed and
 * row-major b, sizes that are no multiples of a tile, more steps than fit in shared memory, more
 * tiles than clusters, leading dimensions that bulk stores take or not, captured and not; results
 * against double, and nothing written beside them; which products they take, and the widths that
 * are chosen. PEs: 1 2 */
#include "gpu/graph.h"
#include "gpu/inside.h"
#include "gpu/own_memory.h"
#include "ops/tensor.h"
#include "fused/hopper.h"
#include "fused/hopper_task.h"
#include "fused/plan.h"

enum { A_BYTES = 1 << 20, B_BYTES = 1 << 20, C_BYTES = 2 << 20, ELEMENTS = 1 << 19 };

static struct matrix {
    unsigned char *at; /* on the GPU */
    uint16_t host[ELEMENTS];
    float values[ELEMENTS];
} a, b, c;

/* A product: the leading dimensions in elements, and the elements before C. */
static struct shape {
    size_t rows, cols, k, lda, ldb, ldc, shift;
    weft_dtype dtype;
    unsigned width;
    bool transposed; /* b */
} s;

static size_t extent(size_t rows, size_t cols, size_t ld) {
    return (rows - 1) * ld + cols;
}

/* Fills a matrix, and the elements between its rows with NaN, which a product must not read. */
static void fill(struct matrix *m, size_t rows, size_t cols, size_t ld) {
    for (size_t i = 0; i < extent(rows, cols, ld); i++) {
        double value = (double)random_below(1 << 11) / (1 << 10) - 1;
        element_set(s.dtype, &m->host[i], round_to(s.dtype, value));
        if (i % ld >= cols)
            m->host[i] = 0x7fff;
        m->values[i] = (float)element_get(s.dtype, &m->host[i]);
    }
    gpu_write(m->at, m->host, extent(rows, cols, ld) * 2);
}

static void poison(void) {
    memset(c.host, GPU_POISON, sizeof c.host);
    gpu_write(c.at, c.host, C_BYTES / 2);
}

static weft_matrix matrix(struct matrix *m, size_t rows, size_t cols, size_t ld, bool transposed) {
    return (weft_matrix){m->at, rows, cols, ld, s.dtype, transposed};
}

static int enqueue(void) {
    weft_matrix left = matrix(&a, s.rows, s.k, s.lda, false);
    weft_matrix right = matrix(&b, s.k, s.cols, s.ldb, s.transposed);
    weft_matrix result = matrix(&c, s.rows, s.cols, s.ldc, false);
    result.data = c.at + s.shift * 2;
    EXPECT(weft_plan_fits(90, &left, &right, &result), "%zu x %zu x %zu does not fit", s.rows,
           s.cols, s.k);
    return weft_hopper_enqueue(&left, &right, &result, s.width, gpu_stream);
}

static void check_element(size_t row, size_t col, double found) {
    const float *x = &a.values[row * s.lda], *y = &b.values[s.transposed ? col * s.ldb : col];
    double sum = 0, size = 0;
    for (size_t k = 0; k < s.k; k++) {
        double term = (double)x[k] * y[s.transposed ? k : k * s.ldb];
        sum += term;
        size += fabs(term);
    }
    double bound = size * ((double)s.k * 0x1p-24 + 1.01 * dtype_epsilon(s.dtype)) + 0x1p-24;
    EXPECT(fabs(found - sum) <= bound,
           "%s, %zu x %zu x %zu, %s b, width %u: (%zu, %zu) is %g, not %g", dtype_names[s.dtype],
           s.rows, s.cols, s.k, s.transposed ? "transposed" : "row-major", s.width, row, col, found,
           sum);
}

static void check(void) {
    uint16_t untouched;
    size_t last = s.shift + extent(s.rows, s.cols, s.ldc) + 64;
    memset(&untouched, GPU_POISON, sizeof untouched);
    gpu_drain(gpu_stream);
    gpu_copy(c.host, c.at, last * 2);
    for (size_t i = 0; i < last; i++) {
        size_t at = i - s.shift, row = at / s.ldc, col = at % s.ldc;
        if (i >= s.shift && row < s.rows && col < s.cols)
            check_element(row, col, element_get(s.dtype, &c.host[i]));
        else
            EXPECT(c.host[i] == untouched, "written beside C, at element %zu", i);
    }
}

static size_t up_to_8(size_t n) {
    return (n + 7) / 8 * 8;
}

static void draw(size_t rows, size_t cols, size_t k, bool aligned) {
    s.rows = rows;
    s.cols = cols;
    s.k = k;
    s.lda = up_to_8(k) + 8 * random_below(3);
    s.ldb = up_to_8(s.transposed ? k : cols) + 8 * random_below(3);
    s.ldc = aligned ? up_to_8(cols) + 8 * random_below(3) : cols + random_below(3);
    s.shift = 64 + (aligned ? 0 : random_below(8));
    fill(&a, rows, k, s.lda);
    fill(&b, s.transposed ? cols : k, s.transposed ? k : cols, s.ldb);
    poison();
}

static void run_one(void) {
    INSIDE(enqueue());
    check();
}

static void each(void (*run)(void)) {
    static const struct {
        unsigned width;
        bool transposed;
    } kernels[] = {{256, true}, {208, true}, {168, true}, {256, false}, {192, false}};
    static const weft_dtype dtypes[] = {WEFT_BF16, WEFT_F16};
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 2; j++) {
            s.width = kernels[i].width;
            s.transposed = kernels[i].transposed;
            s.dtype = dtypes[j];
            run();
        }
}

static void small(void) {
    for (int i = 0; i < gpu_rounds(20, 2); i++) {
        draw(1 + random_below(40), 1 + random_below(40), 1 + random_below(80), i % 2);
        run_one();
    }
}

/* Tiles at all edges; one C by bulk stores, one by plain ones. */
static void large(void) {
    for (int i = 0; i < gpu_rounds(10, 2); i++) {
        size_t cols = s.width + 1 + random_below(s.width);
        draw(257 + random_below(140), cols, 257 + random_below(200), i % 2 == 0);
        run_one();
    }
}

/* Exactly a tile, and a step. */
static void whole(void) {
    draw(256, s.width, 64, true);
    run_one();
}

/* A graph finds its maps when it is launched again. */
static void enqueue_captured(void) {
    INSIDE(enqueue());
}

static void graphs(void) {
    draw(100, 100, 100, true);
    weft_cu_graph_exec graph = graph_capture(gpu_stream, enqueue_captured);
    for (int turn = 0; turn < 2; turn++) {
        fill(&a, s.rows, s.k, s.lda);
        poison();
        graph_replay(graph, gpu_stream);
        check();
    }
    graph_drop(graph);
}

static void with_each(const char *name, void (*run)(void)) {
    tap_case(name);
    each(run);
}

/* --- Plans ------------------------------------------------------------------------------------ */

static void expect_fits(const char *what, bool wanted, int capability, weft_matrix x, weft_matrix y,
                        weft_matrix z) {
    EXPECT(weft_plan_fits(capability, &x, &y, &z) == wanted, "%s", what);
}

static void fits(void) {
    tap_case("which products the kernels take");
    s.dtype = WEFT_BF16;
    weft_matrix x = matrix(&a, 10, 20, 24, false), y = matrix(&b, 20, 30, 24, true);
    weft_matrix z = matrix(&c, 10, 30, 30, false), other;
    expect_fits("all that is needed", true, 90, x, y, z);
    expect_fits("another GPU", false, 80, x, y, z);
    expect_fits("a later GPU", false, 100, x, y, z);
    expect_fits("a row-major b", true, 90, x,
                (other = y, other.transposed = false, other.ld = 32, other), z);
    expect_fits("a row-major b whose rows are not aligned", false, 90, x,
                (other = y, other.transposed = false, other.ld = 30, other), z);
    expect_fits("a transposed a", false, 90, (other = x, other.transposed = true, other), y, z);
    expect_fits("rows that are not aligned", false, 90, (other = x, other.ld = 21, other), y, z);
    expect_fits("a matrix that is not", false, 90, x,
                (other = y, other.data = (char *)other.data + 2, other), z);
    expect_fits("another type", false, 90, x, y, (other = z, other.dtype = WEFT_F32, other));
    expect_fits("nothing to add", false, 90, (other = x, other.cols = 0, other), y, z);
    expect_fits("no columns", false, 90, x, y, (other = z, other.cols = 0, other));
}

static void widths(void) {
    static const struct {
        size_t rows, cols;
        unsigned transposed, row_major;
    } shapes[] = {{4096, 4096, 256, 256}, {4096, 6656, 208, 192}, {4096, 7168, 256, 256},
                  {4096, 1536, 208, 192}, {1024, 5120, 168, 192}, {1024, 18432, 168, 192},
                  {2048, 5120, 168, 256}, {512, 8192, 256, 256},  {1, 1, 168, 192},
                  {256, 256, 168, 192}};
    tap_case("a width is chosen: for a transposed b the one that was fastest on an H200");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int transposed = 0; transposed < 2; transposed++) {
            unsigned width = weft_plan_width(shapes[i].rows, shapes[i].cols, transposed, 132);
            unsigned wanted = transposed ? shapes[i].transposed : shapes[i].row_major;
            EXPECT(width == wanted, "%zu x %zu: %u, not %u", shapes[i].rows, shapes[i].cols, width,
                   wanted);
        }
}

/* All tiles once, in groups of rows. */
static void tiles(void) {
    tap_case("each tile is computed once");
    for (uint32_t rows = 1; rows <= 20; rows++)
        for (uint32_t cols = 1; cols <= 9; cols++) {
            struct weft_hopper_tiles all = {rows, cols, 3, 2};
            unsigned char seen[3][20][9] = {{{0}}};
            for (uint32_t t = 0; t < weft_hopper_tile_count(&all); t++) {
                struct weft_hopper_tile tile = weft_hopper_tile_at(&all, t);
                EXPECT(tile.member == (2 + t / (rows * cols)) % 3 && tile.row < rows &&
                           tile.col < cols && !seen[tile.member][tile.row][tile.col]++,
                       "%u x %u tiles: number %u is (%u, %u)", rows, cols, t, tile.row, tile.col);
            }
        }
}

/* A pretended GPU has so few multiprocessors that clusters compute several tiles. */
int main(void) {
    setenv("WEFT_FAKE_SMS", "4", 1);
    shmem_init();
    inside_start();
    fits();
    widths();
    tiles();
    if (weft_device.gpu->capability != 90)
        gpu_miss("the GPU is no Hopper");
    a.at = own_memory(A_BYTES);
    b.at = own_memory(B_BYTES);
    c.at = own_memory(C_BYTES);
    random_state = mix(gpu_seed);
    with_each("small products", small);
    with_each("a whole tile", whole);
    with_each("products of several tiles", large);
    with_each("products in graphs", graphs);
    return gpu_finish();
}
