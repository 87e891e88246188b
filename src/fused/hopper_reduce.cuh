/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction in the kernel of a product. The rows of the other members are multiplied first. Two
 * warps of each block are the movers; each stores to memory what one warpgroup has left in panels:
 *
 *   others' rows   panel -> own product -> the owner's slot
 *   own rows       the others' parts in the slots -> C, while the product runs; then C += panel
 *                  for all members: C -> the others' slots; there: slot -> C, by a third warp
 *
 * A store into another GPU straight from a panel would make the warpgroup wait for the link: all
 * blocks end their tiles at about the same time. So movers push from memory while the next tile
 * is multiplied. (2 H200s, 4096 x 4096 x 4096: 1.21 of the product's time, 1.07 from memory.)
 *
 * The rows of a member are a multiple of those of a box, and rows of C a multiple of a unit. */
#ifndef WEFT_FUSED_HOPPER_REDUCE_CUH
#define WEFT_FUSED_HOPPER_REDUCE_CUH

#include "fused/hopper_exchange.cuh"

enum {
    MOVER = 1,                  /* the first of two warps, one for each warpgroup that multiplies */
    COLLECTOR = MOVER + GROUPS, /* the warp that copies the others' sums */
    PANEL_FREE = 3, /* named barriers of warpgroup 0 and its mover; + 1: of warpgroup 1 */
    PANEL_FULL = 5,
    PANEL_THREADS = GROUP_THREADS + WEFT_WARP_LANES,
    UNIT_ELEMENTS = WEFT_HOPPER_UNIT / 2,
    FOLDED = 2, /* rows that are folded at a time */
    STRIPS = 4, /* of a part that is collected: strip s has the rows s, s + STRIPS, ... */
};

/* Loads that a thread has under way while it copies. If movers push as fast as they can, stores
 * wait for the link, and loads of factors wait for the stores: with four loads under way, a tile
 * took 72,400 cycles beside the pushes of the tile before it, and with two 68,400, as without
 * pushes (2 H200s). */
enum { FLIGHT = 4, FLIGHT_BESIDE_PRODUCT = 2 };

/* A part of a tile: the rows of one warpgroup, as far as they are inside C. Parts outside are
 * counted, too, so that a chunk has the same shares for all members. */
struct tile_part {
    uint32_t member, y;    /* its first row, among those of the member */
    uint32_t x, units;     /* of each row */
    uint32_t chunk, share; /* of the chunk */
};

/* Returns part p of the tile that is number t; without units if the rows are outside. */
template <int WIDTH>
WEFT_DEVICE struct tile_part part_of(const struct weft_hopper_task *task, uint32_t t, uint32_t p) {
    struct weft_hopper_tile tile = weft_hopper_tile_at(&task->tiles, t);
    uint32_t of_member = weft_hopper_tiles_of_member(&task->tiles), number = t % of_member;
    uint32_t of_chunk = weft_hopper_chunk_tiles(&task->tiles), chunk = number / of_chunk;
    uint32_t first = chunk * of_chunk, count = of_member - first;
    struct tile_part part = {tile.member,
                             tile.row * WEFT_HOPPER_TILE_ROWS + p * WEFT_HOPPER_STORE_ROWS,
                             tile.col * WIDTH,
                             0,
                             chunk,
                             0};
    uint32_t left = (task->cols - part.x) / UNIT_ELEMENTS;
    count = count < of_chunk ? count : of_chunk;
    part.share = weft_hopper_share((number - first) * WEFT_HOPPER_TILE_PARTS + p,
                                   count * WEFT_HOPPER_TILE_PARTS);
    if (part.y < task->rows)
        part.units = left < WIDTH / UNIT_ELEMENTS ? left : WIDTH / UNIT_ELEMENTS;
    return part;
}

WEFT_DEVICE bool is_own(const struct weft_hopper_task *task, const struct tile_part &part) {
    return part.member == task->exchange.me;
}

/* --- Places of a part ------------------------------------------------------------------------- */

/* Units of WEFT_HOPPER_STORE_ROWS rows, `step` bytes apart. */
struct rows {
    char *at;
    uint32_t step;
};

/* Returns the part in a dense matrix, in which the member's rows are those of slot `slot`. */
WEFT_DEVICE struct rows rows_of(const struct weft_hopper_task *task, char *matrix, uint32_t slot,
                                const struct tile_part &part) {
    uint32_t step = task->cols * 2;
    return {matrix + ((uint64_t)slot * task->rows + part.y) * step + part.x * 2, step};
}

/* Returns the part in a slot of a member. */
WEFT_DEVICE struct rows rows_in_slot(const struct weft_hopper_task *task, uint32_t member,
                                     uint32_t slot, const struct tile_part &part) {
    return rows_of(task, weft_array_at(&task->exchange.slots, (int)member), slot, part);
}

/* Returns the first row of C that belongs to the member. */
WEFT_DEVICE uint32_t row_of_c(const struct weft_hopper_task *task, uint32_t member) {
    return task->reduce.for_all ? member * task->rows : 0;
}

WEFT_DEVICE struct rows rows_in_c(const struct weft_hopper_task *task,
                                  const struct tile_part &part) {
    uint64_t row = row_of_c(task, part.member) + part.y;
    return {(char *)(task->result + row * task->ldc + part.x), (uint32_t)task->ldc * 2};
}

/* --- Copies and folds: a warp for each row ---------------------------------------------------- */

/* Returns this lane's unit of a row, and of every `step`-th row after it. */
WEFT_DEVICE struct rows units_from(struct rows rows, uint32_t row, uint32_t step) {
    return {rows.at + (uint64_t)row * rows.step + weft_lane() * WEFT_HOPPER_UNIT, rows.step * step};
}

/* Loads the next units. A load of what the asynchronous proxy or another GPU has stored must not
 * find it in the cache of the multiprocessor. */
template <int COUNT>
WEFT_DEVICE void units_load(struct weft_quad (&found)[COUNT], struct rows &from) {
    WEFT_UNROLL
    for (int k = 0; k < COUNT; k++) {
        found[k] = weft_ld_relaxed_sys((const struct weft_quad *)from.at);
        from.at += from.step;
    }
}

/* Stores the next units. */
template <int COUNT>
WEFT_DEVICE void units_store(const struct weft_quad (&values)[COUNT], struct rows &to) {
    WEFT_UNROLL
    for (int k = 0; k < COUNT; k++) {
        weft_st_weak((struct weft_quad *)to.at, values[k]);
        to.at += to.step;
    }
}

/* Copies the rows `warp`, `warp` + `warps`, ..., with COUNT loads under way. */
template <int COUNT>
WEFT_DEVICE void rows_copy(struct rows to, struct rows from, uint32_t units, uint32_t warp,
                           uint32_t warps) {
    if (weft_lane() >= units)
        return;
    to = units_from(to, warp, warps);
    from = units_from(from, warp, warps);
    WEFT_ROLLED
    for (uint32_t row = warp; row < WEFT_HOPPER_STORE_ROWS; row += COUNT * warps) {
        struct weft_quad found[COUNT];
        units_load(found, from);
        units_store(found, to);
    }
}

/* The elements of a unit. */
template <class ELEMENT> union elements {
    struct weft_quad quad;
    ELEMENT of[UNIT_ELEMENTS];
};

/* Adds units of FOLDED rows. */
template <class ELEMENT>
WEFT_DEVICE void units_add(float (&sums)[FOLDED][UNIT_ELEMENTS], struct rows from) {
    struct weft_quad found[FOLDED];
    units_load(found, from);
    WEFT_UNROLL
    for (int i = 0; i < FOLDED * UNIT_ELEMENTS; i++) {
        union elements<ELEMENT> unit = {
            found[i / UNIT_ELEMENTS]
        };
        sums[i / UNIT_ELEMENTS][i % UNIT_ELEMENTS] += widen(unit.of[i % UNIT_ELEMENTS]);
    }
}

template <class ELEMENT>
WEFT_DEVICE void units_round(const float (&sums)[FOLDED][UNIT_ELEMENTS], struct rows to) {
    struct weft_quad rounded[FOLDED];
    WEFT_UNROLL
    for (int row = 0; row < FOLDED; row++) {
        union elements<ELEMENT> unit;
        WEFT_UNROLL
        for (int k = 0; k < UNIT_ELEMENTS; k++)
            narrow(&unit.of[k], sums[row][k]);
        rounded[row] = unit.quad;
    }
    units_store(rounded, to);
}

/* Stores to C the rounded sum of the members' parts: of the other members, which are in this
 * member's slots, and with_own also of this member, which is in its product. */
template <class ELEMENT>
WEFT_DEVICE void rows_fold(const struct weft_hopper_task *task, const struct tile_part &part,
                           bool with_own) {
    uint32_t me = task->exchange.me;
    if (weft_lane() >= part.units)
        return;
    WEFT_ROLLED
    for (uint32_t row = 0; row < WEFT_HOPPER_STORE_ROWS; row += FOLDED) {
        float sums[FOLDED][UNIT_ELEMENTS] = {};
        WEFT_ROLLED
        for (uint32_t member = 0; member < task->tiles.members; member++)
            if (member != me)
                units_add<ELEMENT>(sums, units_from(rows_in_slot(task, me, member, part), row, 1));
            else if (with_own)
                units_add<ELEMENT>(
                    sums, units_from(rows_of(task, task->reduce.product, me, part), row, 1));
        units_round<ELEMENT>(sums, units_from(rows_in_c(task, part), row, 1));
    }
}

/* --- Multiplying ------------------------------------------------------------------------------ */

WEFT_DEVICE bool has_panels(const struct weft_hopper_task *task, const struct tile_part &part) {
    return part.units > 0 && !task->reduce.multiplied;
}

/* Leaves the sums of a warpgroup to its mover, panel by panel. */
template <int WIDTH, class ELEMENT>
WEFT_DEVICE void hand_tile(const float (&sums)[WIDTH / 2], const struct hopper_block &block,
                           uint32_t group) {
    WEFT_UNROLL
    for (int number = 0; number < WIDTH / (int)weft_hopper_panel(WIDTH); number++) {
        weft_named_sync(PANEL_FREE + group, PANEL_THREADS);
        panel_write<WIDTH, ELEMENT>(sums, number, panel_at<WIDTH>(block, group, (uint32_t)number));
        weft_fence_async_shared();
        weft_named_arrive(PANEL_FULL + group, PANEL_THREADS);
    }
}

/* Returns the part of a tile that a warpgroup multiplies. */
template <int WIDTH>
WEFT_DEVICE struct tile_part part_of_group(const struct weft_hopper_task *task,
                                           const struct hopper_block &block, uint32_t t,
                                           uint32_t group) {
    return part_of<WIDTH>(task, t, block.rank * GROUPS + group);
}

/* Returns the part to which a strip of the others' sums belongs. Consecutive parts are of different
 * members, because all members send at the same time. */
template <int WIDTH>
WEFT_DEVICE struct tile_part part_of_sums(const struct weft_hopper_task *task, uint32_t strip) {
    uint32_t of_member = weft_hopper_tiles_of_member(&task->tiles);
    uint32_t others = task->tiles.members - 1;
    uint32_t number = strip / STRIPS / others, distance = strip / STRIPS % others;
    return part_of<WIDTH>(task, distance * of_member + number / WEFT_HOPPER_TILE_PARTS,
                          number % WEFT_HOPPER_TILE_PARTS);
}

/* Copies a strip of the others' sums to C when it has arrived. */
template <int WIDTH>
WEFT_DEVICE void strip_collect(const struct hopper_call &call, uint32_t strip) {
    const struct weft_hopper_task *task = call.task;
    struct tile_part part = part_of_sums<WIDTH>(task, strip);
    if (part.units == 0)
        return;
    if (weft_lane() == 0)
        await_chunk(call, WEFT_HOPPER_SUMS, part.member, part.chunk);
    weft_warp_sync();
    rows_copy<FLIGHT>(
        rows_in_c(task, part),
        rows_in_slot(task, task->exchange.me, task->tiles.members + part.member, part), part.units,
        strip % STRIPS, STRIPS);
}

/* Copies strips of the others' sums to C as they arrive. One warp of a block does so while the
 * product runs, and the multiplying warps do so afterwards. */
template <int WIDTH> WEFT_DEVICE void collect_sums(const struct hopper_call &call) {
    const struct weft_hopper_tiles *tiles = &call.task->tiles;
    uint32_t count =
        (tiles->members - 1) * weft_hopper_tiles_of_member(tiles) * WEFT_HOPPER_TILE_PARTS * STRIPS;
    take_pieces(&own_words(call.task)->collected, count,
                [&](uint32_t strip) { strip_collect<WIDTH>(call, strip); });
}

template <int WIDTH, class ELEMENT, enum order ORDER>
WEFT_DEVICE void multiply_for_mover(const struct hopper_call &call,
                                    const struct hopper_block &block, uint32_t group) {
    const struct weft_hopper_task *task = call.task;
    struct place place = {0, 0};
    float sums[WIDTH / 2];
    uint32_t count = weft_hopper_tile_count(&task->tiles), turn = 0, t;
    while (!task->reduce.multiplied && (t = turn_tile_of_warp(block, turn++)) < count) {
        multiply_tile<WIDTH, ELEMENT, ORDER>(sums, task, block, group, &place);
        if (part_of_group<WIDTH>(task, block, t, group).units > 0)
            hand_tile<WIDTH, ELEMENT>(sums, block, group);
        else
            weft_named_sync(PANEL_FREE + group, PANEL_THREADS);
    }
    if (task->reduce.for_all)
        collect_sums<WIDTH>(call);
}

/* --- Storing: called by all lanes of a warp -------------------------------------------------- */

/* A warp that moves the parts of a warpgroup. */
struct mover {
    const struct hopper_call &call;
    const struct hopper_block &block;
    uint32_t group, turn; /* the turn after that of the part */
};

/* Returns whether this warp should push as fast as it can: the product has ended, or the loads are
 * two tiles ahead of this part, so the multiplying warps will soon wait for this warp. With fewer
 * steps of K than stages the loads always are. */
WEFT_DEVICE bool is_awaited(const struct mover &mover) {
    const struct weft_hopper_task *task = mover.call.task;
    bool awaited = task->reduce.multiplied || turn_is_given(mover.block, mover.turn + 1) ||
                   (turn_is_given(mover.block, mover.turn) &&
                    turn_tile(mover.block, mover.turn) >= weft_hopper_tile_count(&task->tiles));
    return weft_warp_broadcast_u32(awaited, 0);
}

/* Copies a part to another member. */
WEFT_DEVICE void rows_push(const struct mover &mover, struct rows to, struct rows from,
                           uint32_t units) {
    if (is_awaited(mover))
        rows_copy<FLIGHT>(to, from, units, 0, 1);
    else
        rows_copy<FLIGHT_BESIDE_PRODUCT>(to, from, units, 0, 1);
}

/* Stores a warpgroup's panels to a matrix, or adds them to it; row y of the matrix is the part's
 * first row. */
template <int WIDTH>
WEFT_DEVICE void panels_store(const struct mover &mover, const struct weft_cu_tensor_map *map,
                              uint32_t x, uint32_t y, bool add) {
    uint32_t group = mover.group;
    const uint32_t cols = weft_hopper_panel(WIDTH);
    for (uint32_t number = 0; number < WIDTH / cols; number++) {
        const char *panel = panel_at<WIDTH>(mover.block, group, number);
        if (weft_lane() == 0)
            panel_await<WIDTH>();
        weft_warp_sync();
        weft_named_arrive(PANEL_FREE + group, PANEL_THREADS);
        weft_named_sync(PANEL_FULL + group, PANEL_THREADS);
        if (weft_lane() == 0) {
            if (add)
                weft_box_add(map, panel, x + number * cols, y);
            else
                weft_box_store(map, panel, x + number * cols, y);
            weft_bulk_commit();
        }
    }
}

/* Waits until the lanes' loads find what lane 0 has stored from panels. */
WEFT_DEVICE void panels_end(void) {
    if (weft_lane() == 0) {
        weft_bulk_wait();
        weft_fence_async();
    }
    weft_warp_sync();
}

/* Stores to C the sum of the other members' parts or, if this member's product is there already, of
 * all members' parts. */
template <class ELEMENT>
WEFT_DEVICE void parts_fold(const struct hopper_call &call, const struct tile_part &part) {
    const struct weft_hopper_task *task = call.task;
    uint32_t n = task->tiles.members, me = task->exchange.me;
    for (uint32_t member = 0; member < n && weft_lane() == 0; member++)
        if (member != me)
            await_chunk(call, WEFT_HOPPER_PARTS, member, part.chunk);
    weft_warp_sync();
    if (n == 2 && !task->reduce.multiplied)
        rows_copy<FLIGHT>(rows_in_c(task, part), rows_in_slot(task, me, 1 - me, part), part.units,
                          0, 1);
    else
        rows_fold<ELEMENT>(task, part, task->reduce.multiplied);
}

/* Pushes a part of another member's rows to that member, or a part of this member's sum to all
 * others, the next member first. */
WEFT_DEVICE void part_push(const struct mover &mover, const struct tile_part &part) {
    const struct weft_hopper_task *task = mover.call.task;
    uint32_t me = task->exchange.me, n = task->tiles.members;
    bool own = is_own(task, part);
    uint32_t slot = own ? n + me : me, receivers = own ? n - 1 : 1;
    enum weft_hopper_kind kind = own ? WEFT_HOPPER_SUMS : WEFT_HOPPER_PARTS;
    struct rows from =
        own ? rows_in_c(task, part) : rows_of(task, task->reduce.product, part.member, part);
    WEFT_ROLLED
    for (uint32_t i = 1; i <= receivers; i++) {
        uint32_t member =
            own ? (uint32_t)weft_gpu_member_after((int)me, (int)n, (int)i) : part.member;
        rows_push(mover, rows_in_slot(task, member, slot, part), from, part.units);
        count_chunk(mover.call, kind, member, part.chunk, part.share);
    }
}

/* Stores a warpgroup's panels of another member's rows to this member's product, or adds panels of
 * this member's rows to C. */
template <int WIDTH>
WEFT_DEVICE void part_store(const struct mover &mover, const struct tile_part &part) {
    const struct weft_hopper_task *task = mover.call.task;
    bool own = is_own(task, part);
    uint32_t row = own ? row_of_c(task, part.member) : part.member * task->rows;
    panels_store<WIDTH>(mover, own ? &task->c : &task->exchanged, part.x, row + part.y, own);
    panels_end();
}

/* Counts the chunks that have no tiles at the other members: a call counts all chunks. */
WEFT_DEVICE void count_empty(const struct hopper_call &call) {
    const struct weft_hopper_tiles *tiles = &call.task->tiles;
    uint32_t of_chunk = weft_hopper_chunk_tiles(tiles), me = call.task->exchange.me;
    uint32_t used = (weft_hopper_tiles_of_member(tiles) + of_chunk - 1) / of_chunk;
    int last = call.task->reduce.for_all ? WEFT_HOPPER_SUMS : WEFT_HOPPER_PARTS;
    for (uint32_t member = 0; member < tiles->members; member++)
        for (uint32_t chunk = used + weft_lane(); chunk < WEFT_HOPPER_CHUNKS && member != me;
             chunk += WEFT_WARP_LANES)
            for (int kind = WEFT_HOPPER_PARTS; kind <= last; kind++)
                weft_red_add_relaxed_sys_u64(
                    &words_of(call.task, member)->of[kind].arrived[me][chunk],
                    (uint64_t)WEFT_HOPPER_SHARES);
}

template <int WIDTH, class ELEMENT>
WEFT_DEVICE void part_move(const struct mover &mover, const struct tile_part &part) {
    const struct weft_hopper_task *task = mover.call.task;
    bool own = is_own(task, part);
    if (own) {
        parts_fold<ELEMENT>(mover.call, part);
        weft_fence_async(); /* bulk additions find what it has stored */
        weft_warp_sync();
    }
    if (has_panels(task, part))
        part_store<WIDTH>(mover, part);
    if (!own || task->reduce.for_all)
        part_push(mover, part);
}

/* Moves the parts that a warpgroup multiplies. The mover and the warpgroup meet at parts outside of
 * C, too, so that neither gets further ahead than a tile. */
template <int WIDTH, class ELEMENT> WEFT_DEVICE void move_tiles(struct mover &mover) {
    uint32_t count = weft_hopper_tile_count(&mover.call.task->tiles), t;
    while ((t = turn_tile_of_warp(mover.block, mover.turn++)) < count) {
        struct tile_part part = part_of_group<WIDTH>(mover.call.task, mover.block, t, mover.group);
        part_move<WIDTH, ELEMENT>(mover, part);
        if (part.units == 0)
            weft_named_sync(PANEL_FREE + mover.group, PANEL_THREADS);
    }
}

/* Moves parts of a product that is there already, as this warp takes them. */
template <int WIDTH, class ELEMENT> WEFT_DEVICE void move_pieces(const struct mover &mover) {
    const struct weft_hopper_task *task = mover.call.task;
    uint32_t count = weft_hopper_tile_count(&task->tiles) * WEFT_HOPPER_TILE_PARTS;
    take_pieces(&own_words(task)->pieces, count, [&](uint32_t piece) {
        part_move<WIDTH, ELEMENT>(mover, part_of<WIDTH>(task, piece / WEFT_HOPPER_TILE_PARTS,
                                                        piece % WEFT_HOPPER_TILE_PARTS));
    });
}

template <int WIDTH, class ELEMENT>
WEFT_DEVICE void move(const struct hopper_call &call, const struct hopper_block &block,
                      uint32_t group) {
    struct mover mover = {call, block, group, 0};
    if (call.task->reduce.multiplied)
        move_pieces<WIDTH, ELEMENT>(mover);
    else
        move_tiles<WIDTH, ELEMENT>(mover);
}

/* --- Loading ---------------------------------------------------------------------------------- */

/* Loads this block's part of each tile that the cluster takes. Called by one thread. */
template <int WIDTH, enum order ORDER>
WEFT_DEVICE void load_taken(const struct hopper_call &call, const struct hopper_block &block) {
    struct place place = first_empty();
    struct turns turns = {0, call.first};
    uint32_t count = weft_hopper_tile_count(&call.task->tiles), t;
    while ((t = turns_next(call, block, &turns)) < count)
        load_whole<WIDTH, ORDER>(call.task, block, t, &place);
}

#endif
