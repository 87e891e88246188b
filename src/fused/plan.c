/* SPDX-License-Identifier: BSD-3-Clause */
/* The estimate: clusters compute their tiles in rounds, and a round takes as long as its tiles are
 * wide, and a little longer if they are narrow, because narrow tiles load more for each product. On
 * an H200 (bf16, graphs of products, the GPU hot) it takes the width that was fastest for 17 of 20
 * shapes of layers, and one that was at most 1.5 % slower for the others. */
#include "fused/plan.h"
#include "base/size.h"
#include "coll/elements.h"
#include "fused/hopper_task.h"

/* Returns whether coordinates in the matrix are numbers of 31 bits, with room for a tile. */
static bool is_small(const weft_matrix *m) {
    const size_t most = (size_t)1 << 30;
    return m->rows <= most && m->cols <= most && m->ld <= most;
}

bool weft_plan_fits(int capability, const weft_matrix *a, const weft_matrix *b,
                    const weft_matrix *c) {
    bool types = (c->dtype == WEFT_BF16 || c->dtype == WEFT_F16) && a->dtype == c->dtype &&
                 b->dtype == c->dtype;
    return capability == 90 && types && !a->transposed && b->transposed && a->cols > 0 &&
           c->rows > 0 && c->cols > 0 && weft_matrix_alignment(a) >= 16 &&
           weft_matrix_alignment(b) >= 16 && is_small(a) && is_small(b) && is_small(c);
}

bool weft_plan_gathers(int capability, const weft_matrix *shard, int n) {
    return capability == 90 && (shard->dtype == WEFT_BF16 || shard->dtype == WEFT_F16) &&
           !shard->transposed && shard->rows > 0 && shard->cols > 0 && shard->cols % 8 == 0 &&
           n >= 2 && n <= WEFT_HOPPER_MEMBERS && shard->rows <= ((size_t)1 << 30) / (size_t)n &&
           shard->cols <= (size_t)1 << 30;
}

bool weft_plan_reduces(int capability, size_t rows, size_t cols, weft_dtype dtype, int n) {
    const size_t most = (size_t)1 << 30;
    return capability == 90 && (dtype == WEFT_BF16 || dtype == WEFT_F16) && n >= 2 &&
           n <= WEFT_HOPPER_MEMBERS && rows <= most && cols <= most && rows > 0 && cols > 0 &&
           rows % ((size_t)n * WEFT_HOPPER_STORE_ROWS) == 0 && cols % 8 == 0;
}

unsigned weft_plan_width(size_t rows, size_t cols, int sms) {
    static const unsigned widths[] = {256, 208, 168}, percents[] = {100, 101, 103};
    size_t clusters = (size_t)sms / WEFT_HOPPER_CLUSTER, least = SIZE_MAX;
    unsigned best = widths[0];
    for (int i = 0; i < 3; i++) {
        size_t tiles = weft_steps_up(rows, WEFT_HOPPER_TILE_ROWS) * weft_steps_up(cols, widths[i]);
        size_t time = weft_steps_up(tiles, clusters) * widths[i] * percents[i];
        if (time < least) {
            least = time;
            best = widths[i];
        }
    }
    return best;
}
