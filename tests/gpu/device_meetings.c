/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: inside kernels, members synchronise by threads, warps, blocks and grids, from kernel
 * to kernel: stores before a barrier are visible to all after it, and no member overwrites data
 * that others still read; syncs synchronise; packets bring the data of their own call only, also
 * when their flags wrap around. PEs: 1 2 3 4 */
#include "gpu/handles.h"
#include "gpu/device_meetings/task.h"

enum { BLOCKS = 2, THREADS = 64, GRID_BLOCKS = 8, CALLS = 3 };

static uint64_t *words; /* symmetric */
static size_t words_bytes;

/* --- Barriers --------------------------------------------------------------------------------- */

static void rounds(const weft_device_team *t, const char *kernel, int kind, const char *what) {
    struct meetings_rounds task = {.count = (uint32_t)gpu_rounds_together(2000, 12),
                                   .kind = kind,
                                   .words = words,
                                   .found = handles_found};
    for (int m = 0; m < 8; m++)
        task.blocks[m] = kind >= MEET_GRID ? (uint32_t)(1 + (m * 3 + 1) % GRID_BLOCKS) : BLOCKS;
    handles_zero(words, words_bytes);
    handles_sync();
    for (uint32_t call = 0; call < CALLS; call++) {
        task.first = call * task.count;
        handles_launch(kernel, task.blocks[t->me % 8], THREADS, t, &task);
    }
    handles_expect(t, what);
    handles_sync();
}

static void barriers(const weft_device_team *t) {
    static const char *const names[MEET_KINDS] = {"barriers of blocks",
                                                  "halves of blocks",
                                                  "barriers of warps",
                                                  "halves of warps",
                                                  "barriers of threads",
                                                  "halves of threads",
                                                  "barriers of any of the three",
                                                  "barriers of grids that differ",
                                                  "barriers of such grids in a row"};
    for (int kind = 0; kind < MEET_KINDS; kind++)
        rounds(t, "meetings_barriers", kind, names[kind]);
}

static void syncs(const weft_device_team *t) {
    if (t->flags & WEFT_DEVICE_ATOMICS)
        rounds(t, "meetings_syncs", 0, "syncs");
}

/* --- Packets ---------------------------------------------------------------------------------- */

static void call_packets(const weft_device_team *t, uint32_t bcast, int count) {
    struct meetings_packets task = {.seed = (uint32_t)gpu_draw(9, UINT32_MAX),
                                    .count = (uint32_t)count,
                                    .bcast = bcast,
                                    .found = handles_found};
    handles_launch("meetings_packets", BLOCKS, THREADS, t, &task);
    handles_expect(t, bcast ? "packets for all" : "packets");
}

static void set_epoch(const weft_device_team *t, uint64_t epoch) {
    handles_sync();
    handles_launch("meetings_set_epoch", BLOCKS, THREADS, t, &epoch);
    handles_sync();
}

static void packets(const weft_device_team *t) {
    for (uint32_t call = 0; call < CALLS; call++)
        call_packets(t, call % 2, gpu_rounds_together(5000, 15));
}

/* Large calls have the numbers 1 to 3; then follow the last calls before the flags wrap around,
 * which are small. So the packets of calls 2 and 3 are still there when 2 and 3 recur, in the first
 * calls after the wrap. Epochs never go back. */
static void packets_come_round(const weft_device_team *t) {
    enum { LARGE = 3, SMALL = 5 };
    call_packets(t, 0, LARGE);
    for (int high = 0; high < 3; high++) {
        set_epoch(t, (uint64_t)high << 32 | (UINT32_MAX - (uint32_t)SMALL - (uint32_t)high));
        call_packets(t, (uint32_t)high % 2, SMALL + high + LARGE - 1);
    }
}

int main(void) {
    shmem_init();
    handles_start();
    words_bytes = sizeof *words * 2 * GRID_BLOCKS * THREADS * (size_t)shmem_n_pes();
    words = handles_malloc(words_bytes);
    tap_case("what has been stored before a barrier is seen behind it");
    handles_for_each(barriers);
    tap_case("a sync lets nobody go ahead");
    handles_for_each(syncs);
    tap_case("no older packet is taken for a new one when flags come round");
    handles_for_each(packets_come_round);
    tap_case("packets bring what their call has sent");
    handles_for_each(packets);
    return handles_finish();
}
