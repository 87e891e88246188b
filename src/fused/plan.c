/* SPDX-License-Identifier: BSD-3-Clause */
/* The estimate: clusters compute their tiles in rounds, and a round takes as long as its tiles are
 * wide, and a little longer if they are narrow, because narrow tiles load more for each product. On
 * an H200 (bf16, graphs of products, the GPU hot) it takes the width that was fastest for 17 of 20
 * shapes of layers, and a width that was at most 1.5 % slower for the other three. These shapes had
 * a transposed b; for a row-major b the two widths have not been compared. */
#include "fused/plan.h"
#include "base/size.h"
#include "transport/gpu_tile.h"
#include "coll/elements.h"
#include "fused/hopper_task.h"

/* Coordinates in a matrix are numbers of 31 bits, with room for a tile. */
static const size_t SIDE_MAX = (size_t)1 << 30;

static bool is_small(const weft_matrix *m) {
    return m->rows <= SIDE_MAX && m->cols <= SIDE_MAX && m->ld <= SIDE_MAX;
}

static bool is_multiplied(weft_dtype dtype) {
    return dtype == WEFT_BF16 || dtype == WEFT_F16;
}

static bool is_team(int n) {
    return n >= 2 && n <= WEFT_HOPPER_MEMBERS;
}

bool weft_plan_runs(int capability) {
    return capability == 90;
}

bool weft_plan_fits(int capability, const weft_matrix *a, const weft_matrix *b,
                    const weft_matrix *c) {
    bool types = is_multiplied(c->dtype) && a->dtype == c->dtype && b->dtype == c->dtype;
    return weft_plan_runs(capability) && types && !a->transposed && a->cols > 0 && c->rows > 0 &&
           c->cols > 0 && weft_matrix_alignment(a) >= 16 && weft_matrix_alignment(b) >= 16 &&
           is_small(a) && is_small(b) && is_small(c);
}

bool weft_plan_gathers(const weft_matrix *shard, int n) {
    return is_multiplied(shard->dtype) && is_team(n) && !shard->transposed && shard->rows > 0 &&
           shard->cols > 0 && shard->cols % 8 == 0 && shard->rows <= SIDE_MAX / (size_t)n &&
           shard->cols <= SIDE_MAX;
}

bool weft_plan_reduces(size_t rows, size_t cols, weft_dtype dtype, int n) {
    return is_multiplied(dtype) && is_team(n) && rows <= SIDE_MAX && cols <= SIDE_MAX && rows > 0 &&
           cols > 0 && rows % ((size_t)n * WEFT_HOPPER_STORE_ROWS) == 0 && cols % 8 == 0;
}

unsigned weft_plan_width(size_t rows, size_t cols, bool transposed, int sms) {
#define KIND(X, name, suffix, width, transposed, percent) {width, percent, transposed},
    static const struct {
        unsigned width, percent;
        bool transposed;
    } kinds[] = {WEFT_GPU_TILES(KIND, , )};
#undef KIND
    size_t clusters = (size_t)sms / WEFT_HOPPER_CLUSTER, least = SIZE_MAX;
    unsigned best = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        unsigned width = kinds[i].width;
        size_t tiles = weft_steps_up(rows, WEFT_HOPPER_TILE_ROWS) * weft_steps_up(cols, width);
        size_t time = weft_steps_up(tiles, clusters) * width * kinds[i].percent;
        if (kinds[i].transposed == transposed && time < least) {
            least = time;
            best = width;
        }
    }
    return best;
}
