/* SPDX-License-Identifier: BSD-3-Clause */
/* A round of the stress test: its random choices, its arrays, the data of each member, and their
 * check. */
#ifndef TESTS_GPU_DEVICE_STRESS_ROUND_CUH
#define TESTS_GPU_DEVICE_STRESS_ROUND_CUH

#include "base/gpu.cuh"
#include "gpu/device_stress/task.h"

/* Marks functions that must not be inlined, for the compiler's sake. */
#ifdef __CUDACC__
#define STRESS_PART static __device__ __noinline__
#else
#define STRESS_PART WEFT_DEVICE
#endif

enum { THREAD, WARP, BLOCK, SCOPES };
enum { GUARD = 16, SHIFTS = 16, VARIANTS = 1 << 16 };

/* --- A round, as one thread sees it --------------------------------------------------------------
 */

struct stress_round {
    const weft_device_team *t;
    struct stress_plan plan;
    uint64_t number;
    uint32_t key;
    int kind, scope;
    uint32_t variant;           /* chooses among several ways */
    uint32_t group, lane, size; /* this thread's group, its number in it, their number */
    uint32_t span;              /* bytes of a slot that a group has */
    uint32_t bytes, to_shift, from_shift;
};

WEFT_DEVICE uint32_t mix(uint32_t x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

WEFT_DEVICE uint32_t draw(uint32_t key, uint32_t i, uint32_t limit) {
    return mix(key + 0x9e3779b9u * (i + 1)) % limit;
}

/* A barrier of grids is for all blocks, and so is drawn without the block's number. */
WEFT_DEVICE int kind_of(const struct stress_round *r, uint32_t grid_key) {
    int kind = (int)draw(r->key, 1, STRESS_GRID);
    if (r->plan.only >= 0)
        kind = r->plan.only;
    else if (draw(grid_key, 0, STRESS_KINDS) == STRESS_GRID)
        kind = STRESS_GRID;
    bool is_there = (kind != STRESS_ATOMIC || r->t->flags & WEFT_DEVICE_ATOMICS) &&
                    (kind != STRESS_BULK_PUT || r->plan.bulk);
    return is_there ? kind : STRESS_PUT;
}

WEFT_DEVICE void take_group(struct stress_round *r) {
    uint32_t id = weft_block_rank(), count = weft_block_size();
    r->size = r->scope == THREAD ? 1 : r->scope == WARP ? 32u : count;
    r->group = id / r->size;
    r->lane = id % r->size;
    r->span = STRESS_SLOT / (count / r->size) / 16 * 16;
}

/* Draws sizes log-uniformly; one in four is aligned, and one in four equally aligned on both sides.
 */
WEFT_DEVICE void draw_bytes(struct stress_round *r) {
    uint32_t most = r->span - 2 * GUARD - SHIFTS, octaves = 0;
    while (2u << octaves <= most)
        octaves++;
    uint32_t floor = 1u << draw(r->key, 2, octaves + 1);
    r->bytes = floor + draw(r->key, 3, floor);
    r->bytes = r->bytes < most ? r->bytes : most;
    uint32_t how = draw(r->key, 4, 4);
    r->to_shift = how == 0 ? 0 : draw(r->key, 5, SHIFTS);
    r->from_shift = how == 1 ? r->to_shift : how == 0 ? 0u : draw(r->key, 6, SHIFTS);
    if (r->kind != STRESS_BULK_PUT)
        return;
    r->bytes = (r->bytes / 16 + 1) * 16 < most / 16 * 16 ? (r->bytes / 16 + 1) * 16 : 16;
    if (r->bytes > STRESS_BULK)
        r->bytes = STRESS_BULK;
    r->to_shift = r->from_shift = 0;
}

STRESS_PART struct stress_round round_of(const weft_device_team *t, const struct stress_plan *plan,
                                         uint64_t number) {
    struct stress_round r = {t, *plan, number, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    uint32_t grid_key = mix(plan->seed ^ (uint32_t)number) + (uint32_t)(number >> 32);
    r.key = mix(grid_key + 0x85ebca6bu * (weft_block_index() + 1));
    r.kind = kind_of(&r, grid_key);
    r.scope = r.kind == STRESS_BULK_PUT ? BLOCK : (int)draw(r.key, 7, SCOPES);
    r.variant = draw(r.key, 8, VARIANTS);
    take_group(&r);
    draw_bytes(&r);
    return r;
}

/* --- Arrays --------------------------------------------------------------------------------------
 */

WEFT_DEVICE char *dest_of(const struct stress_round *r, int from) {
    size_t slot = weft_block_index() * (size_t)STRESS_MEMBERS + (size_t)from;
    return r->plan.dest + slot * STRESS_SLOT + r->group * r->span + GUARD + r->to_shift;
}
WEFT_DEVICE char *source_of(const struct stress_round *r) {
    return r->plan.source + weft_block_index() * (size_t)STRESS_SLOT + r->group * r->span + GUARD +
           r->from_shift;
}
WEFT_DEVICE uint64_t *signal_of(const struct stress_round *r, int from) {
    size_t slot = weft_block_index() * (size_t)STRESS_MEMBERS + (size_t)from;
    return r->plan.signals + slot * STRESS_THREADS + r->group;
}
WEFT_DEVICE uint64_t *words_of(const struct stress_round *r) {
    return r->plan.words + weft_block_index() * (size_t)STRESS_WORDS;
}

/* Returns byte i of a member's group's data, and of the memory around them. */
WEFT_DEVICE unsigned char byte_of(const struct stress_round *r, int member, uint32_t i) {
    uint32_t key = mix(r->key + 0xc2b2ae35u * (uint32_t)(member + 1)) + r->group * 0x27d4eb2fu;
    return (unsigned char)(mix(key + i / 4) >> i % 4 * 8);
}
WEFT_DEVICE unsigned char guard_of(const struct stress_round *r, int32_t i) {
    return (unsigned char)(0x5a + 7 * r->number + (uint32_t)i);
}

/* Never 0. */
WEFT_DEVICE uint64_t value_of(const struct stress_round *r, int member) {
    return (uint64_t)mix(r->key ^ 0x1b873593u) << 24 | (uint32_t)(member + 1);
}

WEFT_DEVICE int member_at(const struct stress_round *r, int distance) {
    return weft_gpu_member_after(r->t->me, r->t->n, distance);
}

STRESS_PART void fill(const struct stress_round *r) {
    char *source = source_of(r);
    for (uint32_t i = r->lane; i < r->bytes; i += r->size)
        source[i] = (char)byte_of(r, r->t->me, i);
    for (int from = 0; from < r->t->n; from++) {
        char *dest = dest_of(r, from);
        for (int32_t i = (int32_t)r->lane - GUARD; i < (int32_t)r->bytes + GUARD; i += r->size)
            dest[i] = (char)guard_of(r, i);
        if (r->lane == 0)
            *signal_of(r, from) = 0;
    }
    uint64_t *words = words_of(r);
    for (uint32_t i = weft_block_rank(); i < STRESS_WORDS; i += weft_block_size())
        words[i] = 0;
}

/* --- Checks --------------------------------------------------------------------------------------
 */

WEFT_DEVICE void note_wrong(const struct stress_round *r, int from, int32_t index, uint64_t found,
                            uint64_t wanted) {
    struct stress_seen *seen = r->plan.seen;
    weft_atom_add_sys_u64(&seen->wrong, 1);
    if (weft_atom_exch_sys_u64(&seen->claimed, 1))
        return;
    seen->round = r->number;
    seen->kind = r->kind;
    seen->scope = r->scope;
    seen->variant = (int32_t)r->variant;
    seen->from = from;
    seen->block = weft_block_index();
    seen->group = r->group;
    seen->bytes = r->bytes;
    seen->to_shift = r->to_shift;
    seen->from_shift = r->from_shift;
    seen->index = index;
    seen->found = found;
    seen->wanted = wanted;
}

WEFT_DEVICE void expect(const struct stress_round *r, int from, int32_t index, uint64_t found,
                        uint64_t wanted) {
    if (found != wanted)
        note_wrong(r, from, index, found, wanted);
}

/* Checks the data from a member for this thread's group, and that the memory around them is
 * unchanged. */
STRESS_PART void check_from(const struct stress_round *r, int from) {
    const char *dest = dest_of(r, from);
    int32_t bytes = (int32_t)r->bytes;
    for (int32_t i = (int32_t)r->lane - GUARD; i < bytes + GUARD; i += (int32_t)r->size)
        expect(r, from, i, (unsigned char)weft_ld_weak(&dest[i]),
               i < 0 || i >= bytes ? guard_of(r, i) : byte_of(r, from, (uint32_t)i));
}

WEFT_DEVICE void check_all(const struct stress_round *r) {
    for (int from = 0; from < r->t->n; from++)
        check_from(r, from);
}

#endif
