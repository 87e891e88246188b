/* SPDX-License-Identifier: BSD-3-Clause */
/* The data that the host passes to the kernels of hopper.cu, the geometry of their tiles, and the
 * order in which tiles are computed.
 *
 * Two blocks form a cluster, which computes a tile of 256 rows and WIDTH columns of C: block 0 the
 * upper 128 rows, block 1 the lower 128. In each step a block loads 128 x 64 elements of A for
 * itself, and about a half of the WIDTH x 64 elements of B for both blocks:
 *
 *           B, block 0's part | block 1's part
 *     A, block 0's ---- 128 x WIDTH of C
 *     A, block 1's ---- 128 x WIDTH of C
 *
 * The diagram shows a transposed B. If B is row-major, block 0 loads the upper 32 rows of each step
 * for both blocks, and block 1 the lower 32. */
#ifndef WEFT_FUSED_HOPPER_TASK_H
#define WEFT_FUSED_HOPPER_TASK_H

#include <stdbool.h>
#include "weft/addr.h"
#include "base/cuda.h"

enum {
    WEFT_HOPPER_ROWS = 128,  /* of a block's part of a tile */
    WEFT_HOPPER_DEPTH = 64,  /* elements of K in a step: 128 bytes, which is what TMA swizzles */
    WEFT_HOPPER_STAGES = 4,  /* steps that are in shared memory at a time */
    WEFT_HOPPER_CLUSTER = 2, /* blocks */
    WEFT_HOPPER_TILE_ROWS = WEFT_HOPPER_CLUSTER * WEFT_HOPPER_ROWS,
    WEFT_HOPPER_THREADS = 3 * 128, /* one warpgroup loads, two multiply */
    WEFT_HOPPER_STORE_ROWS = 64,   /* of C, which a warpgroup computes and stores */
    WEFT_HOPPER_TILE_PARTS = WEFT_HOPPER_TILE_ROWS / WEFT_HOPPER_STORE_ROWS,
    WEFT_HOPPER_GROUP = 8, /* rows of tiles that are computed together, so that L2 has their A */
    WEFT_HOPPER_BOX_COLS = 64, /* of a row-major B: 128 bytes */
    WEFT_HOPPER_BOX_DEPTH = WEFT_HOPPER_DEPTH / WEFT_HOPPER_CLUSTER, /* that a block loads of it */
};

/* --- Geometry --------------------------------------------------------------------------------- */

/* Returns the number of columns of a transposed B that block 0 loads; block 1 loads the other
 * columns. The number is a multiple of 8, because the swizzle repeats after 8 rows of 128 bytes. */
WEFT_ADDR uint32_t weft_hopper_lower(uint32_t width) {
    return (width / 8 + 1) / 2 * 8;
}

/* Returns the columns of C in one store: 64, swizzled, if the width is a multiple of 64, otherwise
 * the whole width. */
WEFT_ADDR uint32_t weft_hopper_panel(uint32_t width) {
    return width % 64 ? width : 64;
}

/* Returns the number of panels in shared memory at a time, for each warpgroup: two if a tile has an
 * even number, otherwise all, because the first panel of a tile must not take the place of the last
 * panel of the previous tile, whose store is the newest. */
WEFT_ADDR uint32_t weft_hopper_buffers(uint32_t width) {
    uint32_t count = width / weft_hopper_panel(width);
    return count % 2 ? count : 2;
}

WEFT_ADDR uint32_t weft_hopper_panel_bytes(uint32_t width) {
    return WEFT_HOPPER_STORE_ROWS * weft_hopper_panel(width) * 2;
}

WEFT_ADDR uint32_t weft_hopper_stage_bytes(uint32_t width) {
    return (WEFT_HOPPER_ROWS + width) * WEFT_HOPPER_DEPTH * 2;
}

/* Returns the bytes of shared memory before the mbarriers. Each stage has two mbarriers. */
WEFT_ADDR uint32_t weft_hopper_tile_bytes(uint32_t width) {
    return WEFT_HOPPER_STAGES * weft_hopper_stage_bytes(width) +
           2 * weft_hopper_buffers(width) * weft_hopper_panel_bytes(width);
}

/* Returns the bytes of shared memory of a block, which begins at any address. */
WEFT_ADDR uint32_t weft_hopper_shared_bytes(uint32_t width) {
    enum { ALIGNMENT = 1024, MBARRIERS = 256 };
    return weft_hopper_tile_bytes(width) + ALIGNMENT + MBARRIERS;
}

/* --- The order of tiles ----------------------------------------------------------------------- */

/* The tiles of C: `rows` x `cols` of them for each member's rows, those of member `first` before
 * the others. A product that exchanges nothing has one member. */
struct weft_hopper_tiles {
    uint32_t rows, cols;
    uint32_t members, first;
};
struct weft_hopper_tile {
    uint32_t member, row, col;
};

WEFT_ADDR uint32_t weft_hopper_tile_count(const struct weft_hopper_tiles *all) {
    return all->rows * all->cols * all->members;
}

/* Returns the number of tiles of one member's rows. */
WEFT_ADDR uint32_t weft_hopper_tiles_of_member(const struct weft_hopper_tiles *all) {
    return all->rows * all->cols;
}

/* Returns the tile that is number t: member after member, and column by column within a group of
 * rows. */
WEFT_ADDR struct weft_hopper_tile weft_hopper_tile_at(const struct weft_hopper_tiles *all,
                                                      uint32_t t) {
    uint32_t of_member = all->rows * all->cols, distance = t / of_member;
    uint32_t within = t - distance * of_member;
    uint32_t first = within / (WEFT_HOPPER_GROUP * all->cols) * WEFT_HOPPER_GROUP;
    uint32_t in_group = within - first * all->cols, left = all->rows - first;
    uint32_t height = WEFT_HOPPER_GROUP;
    if (height > left)
        height = left;
    struct weft_hopper_tile tile = {(all->first + distance) % all->members,
                                    first + in_group % height, in_group / height};
    return tile;
}

/* --- Exchange --------------------------------------------------------------------------------- */

enum {
    WEFT_HOPPER_MEMBERS = 8, /* at most, of a kernel that exchanges data */
    WEFT_HOPPER_CHUNKS = 64, /* that are counted for each member */
    WEFT_HOPPER_SHARES = 1 << 16,
    WEFT_HOPPER_UNIT = 16, /* bytes */
};

/* The kinds of data that members send each other. */
enum weft_hopper_kind {
    WEFT_HOPPER_SHARDS, /* of A */
    WEFT_HOPPER_PARTS,  /* of a sum: one member's product */
    WEFT_HOPPER_SUMS,
    WEFT_HOPPER_KINDS,
};

/* Data of one kind, in chunks. All warps that send a part of a chunk add their shares to its count,
 * which grows by WEFT_HOPPER_SHARES in each call, whatever their number. */
struct weft_hopper_counts {
    uint64_t epoch; /* calls that have ended */
    uint64_t pad[7];
    uint64_t arrived[WEFT_HOPPER_MEMBERS][WEFT_HOPPER_CHUNKS];
};

/* Words in each member's GPU memory, zero at the start. The first four are this member's own, and
 * count in the call under way. */
struct weft_hopper_words {
    uint64_t ended;     /* blocks */
    uint64_t tiles;     /* that clusters have taken */
    uint64_t pieces;    /* that warps have taken, of the shards to push or of the sum */
    uint64_t collected; /* strips of the others' sums that warps have taken */
    uint64_t pad[4];
    struct weft_hopper_counts of[WEFT_HOPPER_KINDS];
};

/* The memory through which the members exchange data. */
struct weft_hopper_exchange {
    uint32_t me;
    struct weft_array slots, words;
};

/* Returns share i of n; n is less than WEFT_HOPPER_SHARES, so that 32 bits are enough. */
WEFT_ADDR uint32_t weft_hopper_share(uint32_t i, uint32_t n) {
    return WEFT_HOPPER_SHARES * (i + 1) / n - WEFT_HOPPER_SHARES * i / n;
}

/* --- Gathering -------------------------------------------------------------------------------- */

enum {
    WEFT_HOPPER_SHARD_CHUNKS = 4,
    WEFT_HOPPER_PUSHERS = 2,      /* warps of a block that push a shard */
    WEFT_HOPPER_PUSHED_UNITS = 64 /* that a warp pushes at a time */
};

/* This member's shard, a dense matrix of `units`. A member's slot m receives the shard of member m.
 */
struct weft_hopper_gather {
    const char *shard;
    uint64_t units, row_units;
};

WEFT_ADDR uint64_t weft_hopper_chunk_units(const struct weft_hopper_gather *gather) {
    return (gather->units + WEFT_HOPPER_SHARD_CHUNKS - 1) / WEFT_HOPPER_SHARD_CHUNKS;
}

/* --- Reducing --------------------------------------------------------------------------------- */

/* Each member adds the parts of its rows. Its slot m receives the part of member m, a dense matrix;
 * if all members need the sum, slot n + m receives the sum of the rows of member m of n. */
struct weft_hopper_reduce {
    char *product;   /* this member's product, a dense matrix of the rows of all members */
    bool multiplied; /* it is there already */
    bool for_all;    /* all members need the sum; C has all rows, otherwise this member's */
};

/* Returns the number of tiles in a chunk. */
WEFT_ADDR uint32_t weft_hopper_chunk_tiles(const struct weft_hopper_tiles *all) {
    return (weft_hopper_tiles_of_member(all) + WEFT_HOPPER_CHUNKS - 1) / WEFT_HOPPER_CHUNKS;
}

/* --- The argument of the kernels -------------------------------------------------------------- */

/* Maps of matrices: A, or this member's rows of A; the exchanged matrix, which is the slots of a
 * gather or this member's product of a reduction; B; and C. If B is transposed, block 0 loads by
 * the map b, and block 1 by b_rest if its boxes have another width; a row-major B has one map. */
struct weft_hopper_task {
    struct weft_cu_tensor_map a, exchanged, b, b_rest, c;
    struct weft_hopper_tiles tiles;
    uint32_t steps;      /* of K */
    uint32_t rows, cols; /* of C; the rows of one member */
    uint16_t *result;    /* C, with ldc elements in a row */
    uint64_t ldc;
    bool boxes; /* the map describes C */
    struct weft_hopper_exchange exchange;
    struct weft_hopper_gather gather;
    struct weft_hopper_reduce reduce;
};

#endif
