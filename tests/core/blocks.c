/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the heap's allocator against a plain list of intervals: no overlap, alignment, no
 * byte lost after everything is freed, the same results for the same calls, and the record of free
 * memory that was in use. PEs: 1 */
#include "core/blocks.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "tap.h"

enum { LIVE_MAX = 512, STEPS = 200000, UNITS_MAX = 4 << 20 >> 6, IDLE_LEAST = 8192 };

static uint64_t random_state;

static uint64_t random_next(void) { /* xorshift64* */
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * UINT64_C(0x2545f4914f6cdd1d);
}

static struct { size_t offset, bytes; } live[LIVE_MAX];
static int nlive;
static bool dirty[UNITS_MAX]; /* in use since it was last found idle */

static bool overlaps_any(size_t offset, size_t bytes) {
    for (int i = 0; i < nlive; i++)
        if (offset < live[i].offset + live[i].bytes && live[i].offset < offset + bytes)
            return true;
    return false;
}

static void random_take(struct weft_blocks *blocks, size_t limit) {
    size_t bytes = 1 + (random_next() % ((size_t)1 << (random_next() % 16)));
    size_t alignment = (size_t)1 << (random_next() % 13);
    size_t offset = weft_blocks_take(blocks, bytes, alignment);
    if (offset == WEFT_BLOCK_NONE)
        return;
    EXPECT(offset % alignment == 0, "offset %zu, alignment %zu", offset, alignment);
    EXPECT(offset + bytes <= limit, "offset %zu + %zu beyond %zu", offset, bytes, limit);
    EXPECT(!overlaps_any(offset, bytes), "%zu bytes at %zu overlap another block", bytes, offset);
    EXPECT(weft_blocks_size(blocks, offset) >= bytes, "block is smaller than asked for");
    live[nlive].offset = offset;
    live[nlive++].bytes = bytes;
}

static void random_give(struct weft_blocks *blocks) {
    int victim = (int)(random_next() % (uint64_t)nlive);
    size_t offset = live[victim].offset, idle;
    EXPECT(weft_blocks_give(blocks, offset, &idle), "a block in use was none");
    EXPECT(idle >= live[victim].bytes, "%zu of %zu bytes are idle", idle, live[victim].bytes);
    EXPECT(weft_blocks_size(blocks, offset) == 0, "a given block is still in use");
    EXPECT(weft_blocks_given_back(blocks, offset), "a given block was never in use");
    EXPECT(!weft_blocks_give(blocks, offset, &idle), "a given block was given again");
    memset(&dirty[offset / 64], true, (live[victim].bytes + 63) / 64);
    live[victim] = live[--nlive];
}

/* Idle memory is free; afterwards no free run has much memory that was in use. */
static void take_idle(struct weft_blocks *blocks, size_t limit) {
    static bool used[UNITS_MAX];
    size_t offset, bytes, first = SIZE_MAX;
    while (weft_blocks_find_idle(blocks, IDLE_LEAST, &offset, &bytes)) {
        EXPECT(bytes >= IDLE_LEAST && offset + bytes <= limit, "%zu bytes at %zu", bytes, offset);
        EXPECT(!overlaps_any(offset, bytes), "%zu bytes at %zu are in use", bytes, offset);
        memset(&dirty[offset / 64], false, bytes / 64);
    }
    memset(used, false, sizeof used);
    for (int i = 0; i < nlive; i++)
        memset(&used[live[i].offset / 64], true, (live[i].bytes + 63) / 64);
    for (size_t unit = 0; unit < limit / 64; unit++) {
        if (used[unit])
            first = SIZE_MAX;
        else if (dirty[unit] && first == SIZE_MAX)
            first = unit;
        EXPECT(used[unit] || !dirty[unit] || (unit + 1 - first) * 64 < IDLE_LEAST,
               "units %zu to %zu are free, were in use, and are not idle", first, unit);
    }
}

/* The range shrinks to the end of the used blocks and grows again. */
static void shrink_and_extend(struct weft_blocks *blocks, size_t limit) {
    size_t end = weft_blocks_used_end(blocks), last = 0;
    for (int i = 0; i < nlive; i++)
        if (live[i].offset + live[i].bytes > last)
            last = live[i].offset + live[i].bytes;
    EXPECT(end == (last + 63) / 64 * 64, "in use to %zu, not %zu", last, end);
    size_t cut = random_next() % 2 ? end : (end + limit) / 128 * 64;
    weft_blocks_shrink(blocks, cut);
    memset(&dirty[cut / 64], false, (limit - cut) / 64);
    EXPECT(weft_blocks_used_end(blocks) == end, "%zu, not %zu", weft_blocks_used_end(blocks), end);
    weft_blocks_extend(blocks, limit);
    EXPECT(weft_blocks_limit(blocks) == limit, "%zu", weft_blocks_limit(blocks));
}

/* Returns a checksum over all results. */
static uint64_t random_run(uint64_t seed) {
    size_t limit = 1 << 20;
    struct weft_blocks *blocks = weft_blocks_new((size_t)1 << 30);
    uint64_t sum = 0;
    random_state = seed;
    nlive = 0;
    memset(dirty, false, sizeof dirty);
    weft_blocks_extend(blocks, limit);
    for (int step = 0; step < STEPS; step++) {
        if (nlive == 0 || (nlive < LIVE_MAX && random_next() % 2))
            random_take(blocks, limit);
        else
            random_give(blocks);
        sum = sum * 31 + (nlive ? live[nlive - 1].offset : 0);
        if (step % (STEPS / 4) == STEPS / 8)
            weft_blocks_extend(blocks, limit += 1 << 19);
        if (step % 1000 == 0)
            take_idle(blocks, limit);
        if (step % 3000 == 0)
            shrink_and_extend(blocks, limit);
    }
    while (nlive)
        random_give(blocks);
    EXPECT(weft_blocks_in_use(blocks) == 0, "%zu bytes lost", weft_blocks_in_use(blocks));
    size_t most = limit - limit / 8; /* good fit looks only in bins that surely suffice */
    EXPECT(weft_blocks_take(blocks, most, 64) != WEFT_BLOCK_NONE, "free blocks were not joined");
    weft_blocks_free(blocks);
    return sum;
}

int main(void) {
    tap_start(0);
    tap_case("random takes and gives never overlap, are aligned, and join again");
    uint64_t first = random_run(12345);
    tap_case("the same calls give the same offsets");
    EXPECT(random_run(12345) == first, "answers differ");
    tap_case("what does not fit is refused, and the limit that it needs suffices");
    struct weft_blocks *blocks = weft_blocks_new((size_t)1 << 30);
    EXPECT(weft_blocks_take(blocks, 1, 64) == WEFT_BLOCK_NONE, "an empty range gave a block");
    for (size_t bytes = 1; bytes < (size_t)1 << 26; bytes = bytes * 3 + 1) {
        weft_blocks_extend(blocks, weft_blocks_limit_for(blocks, bytes, 4096));
        EXPECT(weft_blocks_take(blocks, bytes, 4096) != WEFT_BLOCK_NONE, "%zu bytes", bytes);
    }
    weft_blocks_free(blocks);
    return tap_finish();
}
