/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds of bulk copies: a tile is loaded to shared memory, and stored to all members, as it is and
 * as a summand. */
#ifndef TESTS_GPU_DEVICE_STRESS_BULK_CUH
#define TESTS_GPU_DEVICE_STRESS_BULK_CUH

#include "gpu/device_stress/puts.cuh"

/* --- Bulk copies ---------------------------------------------------------------------------------
 */

struct bulk_line {
    alignas(128) char bytes[128];
};

/* Shared memory of a block: a tile, and the mbarrier for loading it, used repeatedly. */
struct bulk_tile {
    struct bulk_line *lines;
    uint64_t *mbarrier;
    uint32_t loads; /* so far */
};

#if !defined(__CUDACC__) || WEFT_DEVICE_ARCH >= 900

WEFT_DEVICE void begin_tile(const struct bulk_tile *tile) {
    if (weft_block_rank() == 0)
        weft_mbarrier_init(tile->mbarrier, 1);
    weft_block_sync();
}

WEFT_DEVICE void end_tile(const struct bulk_tile *tile) {
    weft_block_sync();
    if (weft_block_rank() == 0)
        weft_mbarrier_inval(tile->mbarrier);
}

WEFT_DEVICE int load_tile(const struct stress_round *r, const struct bulk_tile *tile) {
    if (r->lane == 0) {
        weft_fence_async();
        weft_mbarrier_expect(tile->mbarrier, r->bytes);
        weft_bulk_load(tile->lines, source_of(r), r->bytes, tile->mbarrier);
    }
    return weft_mbarrier_wait(r->t, tile->mbarrier, tile->loads % 2);
}

/* The tile once more, through the threads. */
WEFT_DEVICE void rewrite_tile(const struct stress_round *r, char *tile) {
    for (uint32_t i = r->lane; i < r->bytes; i += r->size) {
        expect(r, r->t->me, (int32_t)i, (unsigned char)tile[i], byte_of(r, r->t->me, i));
        tile[i] = (char)byte_of(r, r->t->me, i);
    }
    weft_fence_async_shared();
    weft_block_sync();
}

WEFT_DEVICE void send_tile(const struct stress_round *r, const void *tile, int m) {
    char *dest = (char *)weft_at(r->t, dest_of(r, r->t->me), m);
    void *words = weft_at(r->t, words_of(r), m);
    weft_bulk_put(dest, tile, r->bytes);
    if (r->variant % 2)
        weft_bulk_add_u32(words, tile, r->bytes);
    else
        weft_bulk_add_u64(words, tile, r->bytes);
}

/* Returns a member's bytes as a number. */
WEFT_DEVICE uint64_t number_of(const struct stress_round *r, int member, uint32_t at, int bytes) {
    uint64_t number = 0;
    for (int i = 0; i < bytes; i++)
        number |= (uint64_t)byte_of(r, member, at + (uint32_t)i) << 8 * i;
    return number;
}

WEFT_DEVICE void check_sums(const struct stress_round *r) {
    int bytes = r->variant % 2 ? 4 : 8;
    const char *words = (const char *)words_of(r);
    for (uint32_t at = r->lane * 8; at < r->bytes; at += r->size * 8)
        for (uint32_t part = at; part < at + 8; part += (uint32_t)bytes) {
            uint64_t sum = 0;
            for (int from = 0; from < r->t->n; from++)
                sum += number_of(r, from, part, bytes);
            expect(r, -1, (int32_t)part,
                   bytes == 4 ? *(const uint32_t *)(words + part)
                              : *(const uint64_t *)(words + part),
                   bytes == 4 ? (uint32_t)sum : sum);
        }
}

STRESS_PART int run_bulk(const struct stress_round *r, const struct bulk_tile *tile) {
    uint64_t *sig = signal_of(r, r->t->me), value = value_of(r, r->t->me);
    if (!load_tile(r, tile))
        return 0;
    if (r->variant / 2 % 2)
        rewrite_tile(r, tile->lines->bytes);
    for (int d = 0; d < r->t->n && r->lane == 0; d++)
        send_tile(r, tile->lines, member_at(r, d));
    if (r->lane == 0) {
        weft_bulk_commit();
        if (r->variant / 4 % 2)
            weft_bulk_wait_read();
        weft_bulk_wait();
        for (int d = 0; d < r->t->n; d++)
            weft_signal(r->t, sig, value, member_at(r, d));
    }
    int taken = take_signalled(r);
    weft_block_sync();
    check_sums(r);
    return taken;
}

#else

WEFT_DEVICE void begin_tile(const struct bulk_tile *) {}
WEFT_DEVICE void end_tile(const struct bulk_tile *) {}

WEFT_DEVICE int run_bulk(const struct stress_round *r, const struct bulk_tile *) {
    return run_put(r);
}

#endif

#endif
