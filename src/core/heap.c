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
#include "core/blocks.h"
#include "core/device.h"
#include "core/job.h"
#include "core/order.h"
#include "core/team.h"
#include "core/window.h"

enum { GROWTH_STEP = 2 << 20 }; /* a large page */

static struct weft_blocks *blocks;

static struct weft_team *world(void) {
    return weft_team_find(SHMEM_TEAM_WORLD);
}

static void heap_barrier(const char *call) {
    weft_quiet();
    weft_sync_barrier(world(), call);
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
                 call, bytes, capacity, weft_blocks_in_use(blocks));
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
        weft_segment_show(&weft_windows.heap, weft_blocks_limit(blocks));
        return -ENOMEM;
    }
    weft_blocks_extend(blocks, limit);
    weft_device_heap_grown();
    return 0;
}

int weft_heap_open(void) {
    blocks = weft_blocks_new(weft_windows.heap.slot_bytes);
    if (!blocks) {
        weft_log("no memory for the bookkeeping of the symmetric heap");
        return -ENOMEM;
    }
    size_t bytes = weft_env.symmetric_size;
    return bytes == 0 ? 0 : heap_grow(bytes, bytes, "shmem_init with SHMEM_SYMMETRIC_SIZE");
}

void weft_heap_close(void) {
    weft_blocks_free(blocks);
    blocks = NULL;
}

bool weft_heap_find(const void *p, void **begin, size_t *bytes) {
    uintptr_t local = weft_windows.heap.window.local;
    size_t offset;
    bool used = weft_blocks_find(blocks, (uintptr_t)p - local, &offset, bytes);
    *begin = used ? (void *)(local + offset) : NULL;
    return used;
}

static void *address_of(size_t offset) {
    return (void *)(weft_windows.heap.window.local + offset);
}

/* Offset of a live allocation, or the end of the job. */
static size_t offset_of(const void *p, const char *call) {
    size_t offset = (uintptr_t)p - weft_windows.heap.window.local;
    if (weft_blocks_size(blocks, offset) == 0)
        weft_job_panic("%s: argument ptr is %p, no live allocation of the symmetric heap: freed "
                       "before, inside an object, or from another allocator",
                       call, p);
    return offset;
}

static size_t take(size_t bytes, size_t alignment, const char *call) {
    size_t offset = weft_blocks_take(blocks, bytes, alignment);
    if (offset != WEFT_BLOCK_NONE)
        return offset;
    size_t capacity = weft_windows.heap.slot_bytes, need = SIZE_MAX;
    if (bytes <= capacity && alignment <= capacity)
        need = weft_blocks_limit_for(blocks, bytes, alignment);
    if (heap_grow(need, bytes, call) < 0)
        return WEFT_BLOCK_NONE;
    return weft_blocks_take(blocks, bytes, alignment);
}

void *weft_heap_malloc(size_t bytes, size_t alignment, bool zero, const char *call) {
    size_t offset = take(bytes, alignment, call);
    if (offset != WEFT_BLOCK_NONE && zero)
        memset(address_of(offset), 0, bytes);
    heap_barrier(call);
    return offset == WEFT_BLOCK_NONE ? NULL : address_of(offset);
}

void weft_heap_free(void *p, const char *call) {
    heap_barrier(call); /* no PE may still be using it */
    weft_blocks_give(blocks, offset_of(p, call));
}

void *weft_heap_realloc(void *p, size_t bytes, const char *call) {
    heap_barrier(call);
    size_t old = offset_of(p, call), old_bytes = weft_blocks_size(blocks, old);
    if (bytes <= old_bytes && bytes > old_bytes / 2) {
        weft_blocks_resize(blocks, old, bytes);
        heap_barrier(call);
        return p;
    }
    size_t offset = take(bytes, WEFT_BLOCK_ALIGN, call);
    if (offset != WEFT_BLOCK_NONE) {
        memcpy(address_of(offset), p, bytes < old_bytes ? bytes : old_bytes);
        weft_blocks_give(blocks, old);
    }
    heap_barrier(call);
    return offset == WEFT_BLOCK_NONE ? NULL : address_of(offset);
}
