/* SPDX-License-Identifier: BSD-3-Clause */
/* Growing the heap reserves memory that the kernel allocates only when it is touched. So before
 * each growth every PE reports how much of its reserved memory is not allocated yet. The first PE
 * of each host checks whether the machine has enough for that and for the growth of all its PEs,
 * and all PEs receive the decision. No memory is touched before.
 *
 * In some cases memory is allocated (committed) at once as the heap grows, on all PEs if one PE
 * requires it: if the kernel accounts for pages when they are reserved, if the user asked for it,
 * and if a device registers the heap. */
#include "core/heap.h"
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include "base/env.h"
#include "base/machine.h"
#include "base/size.h"
#include "core/arena.h"
#include "core/blocks.h"
#include "core/pin.h"
#include "core/team.h"

enum { GROWTH_STEP = 2 << 20 }; /* a large page; this much of each growth is committed at once */
enum { SPARSE = 1 << 20 };      /* from this size it pays to skip pages that have no memory */

static bool committed_at_once; /* the whole heap is committed as it grows */

static int heap_grow(size_t need, size_t bytes);
static bool heap_give_back(void);

static size_t offset_in_heap(const void *p) {
    return (uintptr_t)p - weft_windows.heap.window.local;
}

/* Skips pages without memory: they are zeros already and stay unallocated. */
static void heap_clear(void *p, size_t bytes) {
    size_t first = offset_in_heap(p), from = first, begin, stop;
    if (bytes < SPARSE) {
        memset(p, 0, bytes);
        return;
    }
    while (weft_segment_find_data(&weft_windows.heap, from, first + bytes, &begin, &stop)) {
        memset((char *)p + (begin - first), 0, stop - begin);
        from = stop;
    }
}

static void heap_copy(void *to, const void *from, size_t bytes) {
    size_t first = offset_in_heap(from), done = 0, begin, stop;
    if (bytes < SPARSE) {
        memcpy(to, from, bytes);
        return;
    }
    while (weft_segment_find_data(&weft_windows.heap, first + done, first + bytes, &begin, &stop)) {
        heap_clear((char *)to + done, begin - first - done);
        memcpy((char *)to + (begin - first), (const char *)from + (begin - first), stop - begin);
        done = stop - first;
    }
    heap_clear((char *)to + done, bytes - done);
}

static struct weft_arena heap = {
    .window = &weft_windows.heap.window,
    .name = "the symmetric heap",
    .grow = heap_grow,
    .clear = heap_clear,
    .copy = heap_copy,
    .give_back = heap_give_back,
};

/* Returns whether enough of a free range has memory, or the range is in too many pieces to tell. */
static bool is_worth_returning(size_t offset, size_t bytes) {
    enum { WORTH = 8 << 20, PIECES_MAX = 1024 };
    size_t end = offset + bytes, found = 0, stop;
    for (int pieces = 0; found < WORTH && pieces < PIECES_MAX; pieces++) {
        if (!weft_segment_find_data(&weft_windows.heap, offset, end, &offset, &stop))
            return false;
        found += stop - offset;
        offset = stop;
    }
    return true;
}

static void log_return(int error, size_t bytes) {
    if (error)
        weft_log("cannot return %s of the symmetric heap to the system: %s%s",
                 weft_size(bytes).text, strerror(-error), weft_remedy(error).text);
}

static bool return_run(size_t offset, size_t bytes) {
    if (committed_at_once || !is_worth_returning(offset, bytes) || !weft_pin_hold_off())
        return false;
    int error = weft_segment_return(&weft_windows.heap, offset, bytes);
    weft_pin_end();
    log_return(error, bytes);
    return error == 0;
}

static bool heap_give_back(void) {
    size_t offset, bytes;
    bool done = false;
    while (weft_blocks_find_idle(heap.blocks, WEFT_ARENA_IDLE_LEAST, &offset, &bytes))
        done |= return_run(offset, bytes);
    return done;
}

static struct weft_team *world(void) {
    return weft_team_find(SHMEM_TEAM_WORLD);
}

static size_t round_up_to_step(size_t bytes) {
    size_t capacity = weft_windows.heap.slot_bytes;
    if (bytes > capacity - GROWTH_STEP)
        return bytes > capacity ? SIZE_MAX : capacity;
    return weft_round_up(bytes, GROWTH_STEP);
}

/* Each PE's contribution to an agreement, and the sum of all. */
struct bid {
    uint64_t promised; /* bytes reserved but not allocated; in the sum, of this host's PEs */
    uint64_t at_once;  /* number of PEs that require memory to be committed at once */
};

/* Returns whether this PE checks the memory of its host. */
static bool is_judge(void) {
    int first = 0;
    while (!weft_boot_is_here(first))
        first++;
    return first == weft_job.pe;
}

size_t weft_heap_promised(void) {
    size_t limit = weft_window_bytes(&weft_windows.heap.window);
    size_t present = weft_segment_present(&weft_windows.heap);
    return present < limit ? limit - present : 0;
}

static struct bid add_bids(void) {
    struct bid sum = {0, 0}, mine = {weft_heap_promised(), committed_at_once || weft_pinned()};
    weft_sync_post(world(), &mine, sizeof mine);
    for (int pe = 0; pe < weft_job.npes; pe++) {
        struct bid theirs;
        memcpy(&theirs, weft_sync_peek(world(), pe), sizeof theirs);
        sum.promised += weft_boot_is_here(pe) ? theirs.promised : 0;
        sum.at_once += theirs.at_once;
    }
    return sum;
}

/* Returns the bytes by which the heap of each PE on this host can grow if it is `all` bytes large
 * afterwards. A small heap may use the reserve that is kept for others beside a large heap. */
static size_t room_for(size_t all, size_t promised, const char **limit) {
    size_t npes = (size_t)weft_boot_npes_here();
    size_t room = weft_machine_memory_room(npes * GROWTH_STEP, npes * all, limit);
    return (promised < room ? room - promised : 0) / npes;
}

static void log_refusal(size_t bytes, size_t more, size_t room, const char *limit) {
    bool machine = strcmp(limit, WEFT_MACHINE_AVAILABLE) == 0;
    weft_log("%s of %s failed on all PEs: it needs %s per PE, and %s per PE is available "
             "(%s%sdetails: weft(7))",
             weft_current_call, weft_size(bytes).text, weft_size(more).text, weft_size(room).text,
             machine ? "" : limit, machine ? "" : "; ");
}

/* Decides for one host: returns the limit to which every PE's heap grows, or 0, logged, if a slot
 * has too little address space or the machine too little memory. Grows by half of the present size,
 * so that extents stay few, or by just the need if that is more or memory is scarce. `promised`
 * counts the bytes that PEs may still touch, `bytes` is the size of the request. */
static size_t judge_growth(size_t need, size_t promised, size_t bytes) {
    size_t have = weft_windows.heap.window.bytes, capacity = weft_windows.heap.slot_bytes;
    if (need > capacity) {
        weft_log("%s of %s failed on all PEs: a PE's symmetric heap has %s of address space, of "
                 "which %s are in use (details: weft(7))",
                 weft_current_call, weft_size(bytes).text, weft_size(capacity).text,
                 weft_size(weft_blocks_in_use(heap.blocks)).text);
        return 0;
    }
    const char *limit;
    size_t generous = round_up_to_step(have + have / 2);
    if (generous > need && generous - have <= room_for(generous, promised, &limit) / 2)
        return generous;
    size_t room = room_for(need, promised, &limit);
    if (need - have <= room)
        return need;
    log_refusal(bytes, need - have, room, limit);
    return 0;
}

/* Grows the heap to at least `need` bytes on every PE. Collective; returns the same result on
 * all. */
static int heap_grow(size_t need, size_t bytes) {
    uint64_t verdict = UINT64_MAX;
    struct bid all = add_bids();
    if (is_judge())
        verdict = judge_growth(round_up_to_step(need), all.promised, bytes);
    size_t limit = weft_sync_min(world(), verdict);
    if (limit == 0)
        return -ENOMEM;
    committed_at_once = all.at_once > 0;
    int result =
        weft_segment_grow(&weft_windows.heap, limit, committed_at_once ? limit : GROWTH_STEP);
    if (result < 0)
        weft_log("%s of %s: cannot commit the symmetric heap up to %s: %s%s", weft_current_call,
                 weft_size(bytes).text, weft_size(limit).text, strerror(-result),
                 weft_remedy(result).text);
    if (!weft_sync_min(world(), result == 0)) {
        /* Some PE failed, so this one returns what it has committed. */
        log_return(weft_segment_shrink(&weft_windows.heap, weft_arena_limit(&heap)), GROWTH_STEP);
        return -ENOMEM;
    }
    weft_arena_extend(&heap, limit);
    if (weft_space_device)
        weft_space_device->grown();
    return 0;
}

int weft_heap_open(void) {
    bool now = strcmp(weft_env.commit, "now") == 0;
    committed_at_once = now || weft_env.symmetric_size != 0 || weft_machine_counts_pages();
    if (!now && strcmp(weft_env.commit, "auto") != 0) {
        weft_log("WEFT_COMMIT is '%s': set it to auto or now", weft_env.commit);
        return -EINVAL;
    }
    int error = weft_arena_open(&heap, weft_windows.heap.slot_bytes);
    if (error) {
        weft_log("no memory for the bookkeeping of the symmetric heap");
        return error;
    }
    size_t bytes = weft_env.symmetric_size;
    WEFT_IN_CALL("shmem_init with SHMEM_SYMMETRIC_SIZE");
    return bytes ? heap_grow(bytes, bytes) : 0;
}

void weft_heap_close(void) {
    weft_arena_close(&heap);
}

const struct weft_heap weft_heap_host = {.window = &weft_windows.heap.window,
                                         .arena = &heap,
                                         .malloc = weft_arena_malloc,
                                         .realloc = weft_arena_realloc,
                                         .free = weft_arena_free};
