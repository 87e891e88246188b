/* SPDX-License-Identifier: BSD-3-Clause */
/* Growth is two agreements: PE 0 looks whether the machine has the memory for all PEs of the host
 * together, then everyone commits and hears whether everyone could. Nothing is touched before. */
#include "core/heap.h"
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include "base/env.h"
#include "base/log.h"
#include "base/machine.h"
#include "core/arena.h"
#include "core/blocks.h"
#include "core/device.h"
#include "core/job.h"
#include "core/team.h"
#include "core/window.h"

enum { GROWTH_STEP = 2 << 20 }; /* a large page */

static int heap_grow(size_t need, size_t bytes, const char *call);

static void heap_clear(void *p, size_t bytes, const char *call) {
    (void)call;
    memset(p, 0, bytes);
}

static void heap_copy(void *to, const void *from, size_t bytes, const char *call) {
    (void)call;
    memcpy(to, from, bytes);
}

static struct weft_arena heap = {
    .window = &weft_windows.heap.window,
    .name = "the symmetric heap",
    .grow = heap_grow,
    .clear = heap_clear,
    .copy = heap_copy,
};

static struct weft_team *world(void) {
    return weft_team_find(SHMEM_TEAM_WORLD);
}

static size_t round_up_to_step(size_t bytes) {
    size_t capacity = weft_windows.heap.slot_bytes;
    if (bytes > capacity - GROWTH_STEP)
        return bytes > capacity ? SIZE_MAX : capacity;
    return (bytes + GROWTH_STEP - 1) / GROWTH_STEP * GROWTH_STEP;
}

/* PE 0's answer: the limit that every PE is to commit, 0 when the machine cannot. Grows by half of
 * what there is, so that extents stay few, or by just the need where memory is short. `bytes` is
 * what the caller asked for. */
static size_t judge_growth(size_t need, size_t bytes, const char *call) {
    size_t have = weft_windows.heap.window.bytes, capacity = weft_windows.heap.slot_bytes;
    size_t npes = (size_t)weft_job.npes;
    if (need > capacity) {
        weft_log("%s of %zu bytes: a PE's symmetric heap has %zu bytes of address space, of which "
                 "%zu are in use; no PE gets any",
                 call, bytes, capacity, weft_blocks_in_use(heap.blocks));
        return 0;
    }
    const char *limit;
    size_t room = weft_machine_memory_available(&limit) / npes;
    size_t generous = round_up_to_step(have + have / 2);
    if (generous > need && generous - have <= room / 2)
        return generous;
    if (need - have <= room)
        return need;
    weft_log("%s of %zu bytes: the symmetric heap would need %zu more bytes on each of %zu PEs, "
             "and the machine has %zu for each (%s); no PE gets any",
             call, bytes, need - have, npes, room, limit);
    return 0;
}

/* Commits at least `need` bytes of heap on every PE. Collective; the same result on all. */
static int heap_grow(size_t need, size_t bytes, const char *call) {
    uint64_t verdict = UINT64_MAX;
    if (weft_job.pe == 0)
        verdict = judge_growth(round_up_to_step(need), bytes, call);
    size_t limit = weft_sync_min(world(), verdict, call);
    if (limit == 0)
        return -ENOMEM;
    int result = weft_segment_commit(&weft_windows.heap, limit);
    if (result < 0)
        weft_log("%s of %zu bytes: cannot commit the symmetric heap up to %zu bytes: %s", call,
                 bytes, limit, strerror(-result));
    if (!weft_sync_min(world(), result == 0, call)) {
        weft_segment_show(&weft_windows.heap, weft_arena_limit(&heap));
        return -ENOMEM;
    }
    weft_arena_extend(&heap, limit);
    weft_device_heap_grown();
    return 0;
}

int weft_heap_open(void) {
    int error = weft_arena_open(&heap, weft_windows.heap.slot_bytes);
    if (error) {
        weft_log("no memory for the bookkeeping of the symmetric heap");
        return error;
    }
    size_t bytes = weft_env.symmetric_size;
    return bytes == 0 ? 0 : heap_grow(bytes, bytes, "shmem_init with SHMEM_SYMMETRIC_SIZE");
}

void weft_heap_close(void) {
    weft_arena_close(&heap);
}

void weft_heap_check(const void *p, const char *call) {
    weft_arena_check(&heap, p, call);
}

bool weft_heap_find(const void *p, void **begin, size_t *bytes) {
    return weft_arena_find(&heap, p, begin, bytes);
}

void *weft_heap_malloc(size_t bytes, size_t alignment, bool zero, const char *call) {
    return weft_arena_malloc(&heap, bytes, alignment, zero, call);
}

void weft_heap_free(void *p, const char *call) {
    weft_arena_free(&heap, p, call);
}

void *weft_heap_realloc(void *p, size_t bytes, const char *call) {
    return weft_arena_realloc(&heap, p, bytes, call);
}
