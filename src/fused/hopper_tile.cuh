/* SPDX-License-Identifier: BSD-3-Clause */
/* A block's part of the tiles: loading, multiplying and storing.
 *
 * Between the warpgroup that loads and those that multiply is a ring of stages in shared memory,
 * one for each step of K. A stage has two mbarriers: `full` counts the bytes that arrive, of A and
 * of both blocks' parts of B; at `empty` each warpgroup of both blocks arrives when it has
 * multiplied, because both blocks write to the stages of both. The n-th use of a stage waits for
 * the n-th phase of an mbarrier, so a place in the ring is a stage and a parity.
 *
 * Sums leave through panels of shared memory, in bulk, while the next tile is multiplied. */
#ifndef WEFT_FUSED_HOPPER_TILE_CUH
#define WEFT_FUSED_HOPPER_TILE_CUH

#include "fused/hopper_mma.cuh"
#include "fused/hopper_task.h"

enum { GROUP_THREADS = 128, GROUPS = 2 }; /* of a warpgroup; warpgroups that multiply */

enum order { TRANSPOSED, ROW_MAJOR }; /* of B */

/* A block's shared memory, and its place in the grid. */
struct hopper_block {
    char *stages, *panels;
    uint64_t *full, *empty; /* of each stage */
    uint64_t *turns;        /* NULL in a kernel that exchanges nothing */
    uint32_t rank;          /* in the cluster */
    uint32_t cluster, clusters;
};

/* The number of turns whose tiles a block has at a time. Its threads are at most six tiles behind
 * the thread that loads: a tile for each stage, a tile that the multiplying threads store, and a
 * tile that the movers push. */
enum { TURNS = 8 };

/* A place in the ring of stages. */
struct place {
    uint32_t stage, parity;
};

WEFT_DEVICE void place_advance(struct place *place) {
    if (++place->stage < WEFT_HOPPER_STAGES)
        return;
    place->stage = 0;
    place->parity ^= 1;
}

WEFT_DEVICE void await(uint64_t *mbarrier, uint32_t parity) {
    while (!weft_mbarrier_test(mbarrier, parity))
        weft_spin_yield();
}

template <int WIDTH> WEFT_DEVICE struct hopper_block block_of(bool takes_tiles) {
    struct hopper_block block;
    block.stages = weft_shared_dynamic();
    block.panels = block.stages + WEFT_HOPPER_STAGES * weft_hopper_stage_bytes(WIDTH);
    block.full = (uint64_t *)(block.stages + weft_hopper_tile_bytes(WIDTH));
    block.empty = block.full + WEFT_HOPPER_STAGES;
    block.turns = takes_tiles ? block.empty + WEFT_HOPPER_STAGES : NULL;
    block.rank = weft_cluster_rank();
    block.cluster = weft_block_index() / WEFT_HOPPER_CLUSTER;
    block.clusters = weft_block_count() / WEFT_HOPPER_CLUSTER;
    return block;
}

WEFT_DEVICE void block_begin(const struct hopper_block &block) {
    if (weft_block_thread() == 0) {
        for (int i = 0; i < WEFT_HOPPER_STAGES; i++) {
            weft_mbarrier_init(block.full + i, 1);
            weft_mbarrier_init(block.empty + i, GROUPS * WEFT_HOPPER_CLUSTER);
        }
        weft_mbarrier_fence_init();
        for (int i = 0; i < TURNS && block.turns; i++)
            block.turns[i] = 0;
    }
    weft_cluster_sync();
}

/* --- Turns ------------------------------------------------------------------------------------ */

/* Without an exchange, cluster i of n computes the tiles i, i + n, ... With an exchange, the
 * clusters take tiles from a counter (hopper_exchange.cuh). Thread 0 of block 0 then gives the tile
 * of each turn to both blocks: a word with the number of the turn, from 1 on, in its upper half and
 * the tile in its lower half. */

/* Gives both blocks the tile of a turn. Called by the thread that loads, in block 0. */
WEFT_DEVICE void turn_give(const struct hopper_block &block, uint32_t turn, uint32_t tile) {
    uint64_t word = (uint64_t)(turn + 1) << 32 | tile;
    for (uint32_t rank = 0; rank < WEFT_HOPPER_CLUSTER; rank++)
        weft_shared_store_at(block.turns + turn % TURNS, rank, word);
}

/* Returns the tile of a turn; a number that is not a tile ends the turns. */
WEFT_DEVICE uint32_t turn_tile(const struct hopper_block &block, uint32_t turn) {
    if (!block.turns)
        return block.cluster + turn * block.clusters;
    const uint64_t *word = block.turns + turn % TURNS;
    uint64_t found = weft_shared_load(word);
    while (found >> 32 != turn + 1) {
        weft_spin_yield();
        found = weft_shared_load(word);
    }
    return (uint32_t)found;
}

/* Returns whether the loading thread has given a turn, in a kernel whose clusters take tiles. The
 * turn is less than TURNS before the newest one. */
WEFT_DEVICE bool turn_is_given(const struct hopper_block &block, uint32_t turn) {
    return weft_shared_load(block.turns + turn % TURNS) >> 32 == turn + 1;
}

/* Returns the tile of a turn to all lanes of a warp. */
WEFT_DEVICE uint32_t turn_tile_of_warp(const struct hopper_block &block, uint32_t turn) {
    return weft_warp_broadcast_u32(turn_tile(block, turn), 0);
}

/* --- Loading ---------------------------------------------------------------------------------- */

/* Returns the first row of the block's part of a tile, among those of its member. */
WEFT_DEVICE uint32_t tile_row(const struct hopper_block &block, struct weft_hopper_tile tile) {
    return (tile.row * WEFT_HOPPER_CLUSTER + block.rank) * WEFT_HOPPER_ROWS;
}

/* Loads this block's part of a step of B for both blocks: half of the rows of a row-major B, or
 * some columns of a transposed B. The step begins at row k and `column`, and in shared memory at
 * `to`. */
template <int WIDTH, enum order ORDER>
WEFT_DEVICE void load_step_of_b(const struct weft_hopper_task *task,
                                const struct hopper_block &block, uint32_t column, uint32_t k,
                                char *to, uint64_t *full) {
    if constexpr (ORDER == ROW_MAJOR) {
        uint32_t row = block.rank * WEFT_HOPPER_BOX_DEPTH;
        WEFT_UNROLL
        for (uint32_t i = 0; i < WIDTH / WEFT_HOPPER_BOX_COLS; i++)
            weft_box_load_both(to + (i * WEFT_HOPPER_DEPTH + row) * 128, &task->b,
                               column + i * WEFT_HOPPER_BOX_COLS, k + row, full);
    } else {
        const uint32_t lower = weft_hopper_lower(WIDTH), first = block.rank * lower;
        const struct weft_cu_tensor_map *b =
            block.rank && lower != WIDTH - lower ? &task->b_rest : &task->b;
        weft_box_load_both(to + first * 128, b, k, column + first, full);
    }
}

/* Loads the steps of a tile: the rows of A, which lie in `map` from row y on, and this block's part
 * of B. */
template <int WIDTH, enum order ORDER>
WEFT_DEVICE void load_tile(const struct weft_hopper_task *task, const struct hopper_block &block,
                           struct weft_hopper_tile tile, const struct weft_cu_tensor_map *map,
                           uint32_t y, struct place *place) {
    const uint32_t bytes = weft_hopper_stage_bytes(WIDTH);
    const uint32_t a_bytes = WEFT_HOPPER_ROWS * WEFT_HOPPER_DEPTH * 2;
    for (uint32_t step = 0; step < task->steps; step++) {
        uint64_t *full = block.full + place->stage;
        char *stage = block.stages + place->stage * bytes;
        await(block.empty + place->stage, place->parity);
        weft_mbarrier_expect(full, bytes);
        weft_box_load(stage, map, step * WEFT_HOPPER_DEPTH, y, full);
        load_step_of_b<WIDTH, ORDER>(task, block, tile.col * WIDTH, step * WEFT_HOPPER_DEPTH,
                                     stage + a_bytes, full);
        place_advance(place);
    }
}

/* The stages are empty at first: a wait for the phase before the first phase returns. */
WEFT_DEVICE struct place first_empty(void) {
    return {0, 1};
}

/* Loads a tile. All rows of A are in the map task->a. */
template <int WIDTH, enum order ORDER>
WEFT_DEVICE void load_whole(const struct weft_hopper_task *task, const struct hopper_block &block,
                            uint32_t t, struct place *place) {
    struct weft_hopper_tile tile = weft_hopper_tile_at(&task->tiles, t);
    load_tile<WIDTH, ORDER>(task, block, tile, &task->a,
                            tile.member * task->rows + tile_row(block, tile), place);
}

/* Loads this block's part of each tile of the cluster. Called by one thread. */
template <int WIDTH, enum order ORDER>
WEFT_DEVICE void load(const struct weft_hopper_task *task, const struct hopper_block &block) {
    struct place place = first_empty();
    uint32_t count = weft_hopper_tile_count(&task->tiles), turn = 0, t;
    while ((t = turn_tile(block, turn++)) < count)
        load_whole<WIDTH, ORDER>(task, block, t, &place);
}

/* --- Multiplying ------------------------------------------------------------------------------ */

/* Lets both blocks load to the stage again. */
WEFT_DEVICE void release(const struct hopper_block &block, uint32_t stage, uint32_t thread) {
    if (thread < WEFT_HOPPER_CLUSTER)
        weft_mbarrier_arrive_at(block.empty + stage, thread);
}

/* Adds the products of a step; with `begins` they are the first products of the sums. Each product
 * is of 16 elements of K, which are 32 bytes along a row, or 16 rows of 128 bytes. */
template <class ELEMENT, enum order ORDER, int COUNT>
WEFT_DEVICE void multiply_step(float (&sums)[COUNT], char *a, char *b, bool begins) {
    enum { PIECES = WEFT_HOPPER_DEPTH / 16, ALONG = 32 / 16, DOWN = 16 * 128 / 16 };
    uint64_t rows = weft_wgmma_matrix(a);
    uint64_t cols = ORDER == ROW_MAJOR ? weft_wgmma_boxes(b) : weft_wgmma_matrix(b);
    WEFT_UNROLL
    for (int i = 0; i < PIECES; i++)
        if constexpr (ORDER == ROW_MAJOR)
            weft_wgmma_add_row_major(ELEMENT(), sums, rows + ALONG * i, cols + DOWN * i,
                                     i || !begins);
        else
            weft_wgmma_add(ELEMENT(), sums, rows + ALONG * i, cols + ALONG * i, i || !begins);
}

/* Computes the sums of a warpgroup's 64 rows of a tile. The products of a step are under way while
 * those of the next one begin. */
template <int WIDTH, class ELEMENT, enum order ORDER>
WEFT_DEVICE void multiply_tile(float (&sums)[WIDTH / 2], const struct weft_hopper_task *task,
                               const struct hopper_block &block, uint32_t group,
                               struct place *place) {
    uint32_t thread = weft_block_thread() % GROUP_THREADS, before = 0;
    for (uint32_t step = 0; step < task->steps; step++) {
        char *stage = block.stages + place->stage * weft_hopper_stage_bytes(WIDTH);
        char *a = stage + group * WEFT_HOPPER_STORE_ROWS * 128;
        char *b = stage + WEFT_HOPPER_ROWS * 128;
        await(block.full + place->stage, place->parity);
        weft_wgmma_fence();
        multiply_step<ELEMENT, ORDER>(sums, a, b, step == 0);
        weft_wgmma_commit();
        if (step > 0) {
            weft_wgmma_wait<1>();
            release(block, before, thread);
        }
        before = place->stage;
        place_advance(place);
    }
    weft_wgmma_wait<0>();
    release(block, before, thread);
    weft_wgmma_take(sums);
}

/* --- Storing ---------------------------------------------------------------------------------- */

/* Returns the address of 8 elements in a panel: the 16 bytes with number `unit` of a row. Rows of
 * 128 bytes are swizzled, so that 8 rows of a unit are in different banks. */
template <int WIDTH> WEFT_DEVICE char *panel_unit(char *panel, uint32_t row, uint32_t unit) {
    if (WIDTH % 64 == 0)
        return panel + row * 128 + ((unit ^ (row & 7)) << 4);
    return panel + row * (WIDTH * 2) + unit * 16;
}

/* Writes the sums of panel `number` to shared memory, rounded. */
template <int WIDTH, class ELEMENT>
WEFT_DEVICE void panel_write(const float (&sums)[WIDTH / 2], int number, char *panel) {
    const int units = (int)weft_hopper_panel(WIDTH) / 8;
    uint32_t lane = weft_lane();
    uint32_t row = weft_block_thread() % GROUP_THREADS / 32 * 16 + (lane & 15);
    WEFT_UNROLL
    for (int j = 0; j < units; j += 2) {
        const float *of = sums + 4 * (number * units + j);
        uint32_t a = weft_pack(ELEMENT(), of[0], of[1]), b = weft_pack(ELEMENT(), of[2], of[3]);
        if (j + 1 == units) {
            weft_stmatrix_2(panel_unit<WIDTH>(panel, row, (uint32_t)j), a, b);
            continue;
        }
        weft_stmatrix_4(panel_unit<WIDTH>(panel, row, (uint32_t)j + (lane >> 4)), a, b,
                        weft_pack(ELEMENT(), of[4], of[5]), weft_pack(ELEMENT(), of[6], of[7]));
    }
}

/* Copies the part of a panel that is inside C. The panel's first element belongs to row y of the
 * member and column x. Called by all threads of the warpgroup. */
template <int WIDTH>
WEFT_DEVICE void panel_copy(const struct weft_hopper_task *task, char *panel, uint32_t member,
                            uint32_t x, uint32_t y) {
    const uint32_t cols = weft_hopper_panel(WIDTH), all = WEFT_HOPPER_STORE_ROWS * cols;
    uint16_t *result = task->result + ((size_t)member * task->rows + y) * task->ldc + x;
    WEFT_ROLLED
    for (uint32_t i = weft_block_thread() % GROUP_THREADS; i < all; i += GROUP_THREADS) {
        uint32_t row = i / cols, col = i % cols;
        const char *from = panel_unit<WIDTH>(panel, row, col / 8) + col % 8 * 2;
        if (y + row < task->rows && x + col < task->cols)
            weft_st_weak(result + row * task->ldc + col, *(const uint16_t *)from);
    }
}

/* Returns the place of a panel of a warpgroup in shared memory. */
template <int WIDTH>
WEFT_DEVICE char *panel_at(const struct hopper_block &block, uint32_t group, uint32_t number) {
    const uint32_t buffers = weft_hopper_buffers(WIDTH);
    return block.panels + (group * buffers + number % buffers) * weft_hopper_panel_bytes(WIDTH);
}

/* Waits until the next panel's memory has been read. Called by the thread that stores panels. */
template <int WIDTH> WEFT_DEVICE void panel_await(void) {
    if (weft_hopper_buffers(WIDTH) == 1)
        weft_bulk_wait_read();
    else
        weft_bulk_wait_read_but_one();
}

/* Returns the first row of a warpgroup's part of a tile, among those of its member. */
WEFT_DEVICE uint32_t group_row(const struct hopper_block &block, struct weft_hopper_tile tile,
                               uint32_t group) {
    return tile_row(block, tile) + group * WEFT_HOPPER_STORE_ROWS;
}

/* Stores the sums of a warpgroup, panel by panel: by boxes if C has a map and the rows of a box are
 * of one member, otherwise by all threads. The warpgroup's first thread waits until the store from
 * a panel has read it; then the panel's memory is written again. */
template <int WIDTH, class ELEMENT>
WEFT_DEVICE void store_tile(const float (&sums)[WIDTH / 2], const struct weft_hopper_task *task,
                            const struct hopper_block &block, struct weft_hopper_tile tile,
                            uint32_t group) {
    const uint32_t cols = weft_hopper_panel(WIDTH), barrier = 1 + group;
    bool first = weft_block_thread() % GROUP_THREADS == 0;
    uint32_t y = group_row(block, tile, group);
    bool boxes =
        task->boxes && (task->tiles.members == 1 || y + WEFT_HOPPER_STORE_ROWS <= task->rows);
    WEFT_UNROLL
    for (int number = 0; number < (int)(WIDTH / cols); number++) {
        char *panel = panel_at<WIDTH>(block, group, (uint32_t)number);
        uint32_t x = tile.col * WIDTH + (uint32_t)number * cols;
        if (first)
            panel_await<WIDTH>();
        weft_named_sync(barrier, GROUP_THREADS);
        panel_write<WIDTH, ELEMENT>(sums, number, panel);
        weft_fence_async_shared();
        weft_named_sync(barrier, GROUP_THREADS);
        if (!boxes) {
            panel_copy<WIDTH>(task, panel, tile.member, x, y);
        } else if (first) {
            weft_box_store(&task->c, panel, x, tile.member * task->rows + y);
            weft_bulk_commit();
        }
    }
}

template <int WIDTH, class ELEMENT, enum order ORDER>
WEFT_DEVICE void multiply(const struct weft_hopper_task *task, const struct hopper_block &block,
                          uint32_t group) {
    struct place place = {0, 0};
    float sums[WIDTH / 2];
    uint32_t count = weft_hopper_tile_count(&task->tiles), turn = 0, t;
    while ((t = turn_tile_of_warp(block, turn++)) < count) {
        multiply_tile<WIDTH, ELEMENT, ORDER>(sums, task, block, group, &place);
        store_tile<WIDTH, ELEMENT>(sums, task, block, weft_hopper_tile_at(&task->tiles, t), group);
    }
    if (weft_block_thread() % GROUP_THREADS == 0)
        weft_bulk_wait();
}

#endif
