/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: symmetric objects over any memory. Growth is requested once, and its refusal changes
 * nothing. realloc moves an object only if it must. Freed memory is returned to the system if it is
 * not allocated again, and later and later if a program does that repeatedly. The memory is
 * addresses only. PEs: 1 2 3 */
#include "core/arena.h"
#include <shmem.h>
#include <stdint.h>
#include <string.h>
#include "core/blocks.h"
#include "tap.h"

enum { CAPACITY = 1 << 30, MIB = 1 << 20 };

static struct weft_window window = {.local = (uintptr_t)1 << 40, .bytes = CAPACITY};
static struct weft_arena arena;
static struct { int grown, cleared, copied, given_back; } count;
static bool may_grow, has_idle;
static size_t need_seen, copied_bytes;

static int grow(size_t need, size_t bytes) {
    (void)bytes;
    count.grown++;
    need_seen = need;
    if (!may_grow || need > CAPACITY)
        return -1;
    weft_arena_extend(&arena, need);
    return 0;
}

static void clear(void *p, size_t bytes) {
    (void)p, (void)bytes;
    count.cleared++;
}

static void copy(void *to, const void *from, size_t bytes) {
    (void)to, (void)from;
    count.copied++;
    copied_bytes = bytes;
}

/* Records the returned memory, as the heap does. */
static bool give_back(void) {
    size_t offset, bytes;
    count.given_back++;
    while (weft_blocks_find_idle(arena.blocks, MIB, &offset, &bytes))
        ;
    return has_idle;
}

static void begin(void) {
    arena = (struct weft_arena){.window = &window,
                                .name = "a test's memory",
                                .grow = grow,
                                .clear = clear,
                                .copy = copy,
                                .give_back = give_back};
    memset(&count, 0, sizeof count);
    may_grow = has_idle = true;
    EXPECT(weft_arena_open(&arena, CAPACITY) == 0, "no arena");
}

static void *take(size_t bytes) {
    return weft_arena_malloc(&arena, bytes, WEFT_BLOCK_ALIGN, false);
}

static void growth(void) {
    tap_case("growth is asked for when nothing fits, and once");
    begin();
    char *first = take(MIB);
    EXPECT(first == (char *)window.local && count.grown == 1, "%p, %d times", (void *)first,
           count.grown);
    EXPECT(need_seen >= MIB && weft_arena_limit(&arena) == need_seen, "limit %zu, need %zu",
           weft_arena_limit(&arena), need_seen);
    weft_arena_free(&arena, first);
    EXPECT(take(MIB) == first && count.grown == 1, "what was freed is not taken again");
    char *aligned = weft_arena_malloc(&arena, 64, MIB, true);
    EXPECT((uintptr_t)aligned % MIB == 0 && count.cleared == 1, "%p", (void *)aligned);
    weft_arena_close(&arena);
}

static void refusals(void) {
    tap_case("refused growth is NULL, and all is as before");
    begin();
    char *p = take(MIB);
    size_t limit = weft_arena_limit(&arena), bytes;
    void *found;
    may_grow = false;
    EXPECT(take(2 * MIB) == NULL && weft_arena_realloc(&arena, p, 3 * MIB) == NULL,
           "got memory that is not there");
    EXPECT(weft_arena_limit(&arena) == limit && count.copied == 0, "limit %zu", limit);
    EXPECT(weft_arena_find(&arena, p + MIB - 1, &found, &bytes) && found == p && bytes == MIB,
           "the object is gone");
    EXPECT(take((size_t)CAPACITY + 1) == NULL && need_seen == SIZE_MAX, "need %zu", need_seen);
    EXPECT(weft_arena_malloc(&arena, 1, (size_t)CAPACITY * 2, false) == NULL &&
               need_seen == SIZE_MAX,
           "need %zu", need_seen);
    EXPECT(!weft_arena_find(&arena, p + limit, &found, &bytes) && !found, "found %p", found);
    weft_arena_close(&arena);
}

static void sizes(void) {
    tap_case("realloc stays for sizes above a half, and copies what both have elsewhere");
    begin();
    char *p = take(4096), *wall = take(64);
    EXPECT(weft_arena_realloc(&arena, p, 2049) == p && count.copied == 0, "it moved");
    char *small = weft_arena_realloc(&arena, p, 512);
    EXPECT(small && small != p && copied_bytes == 512, "%zu bytes were copied", copied_bytes);
    char *large = weft_arena_realloc(&arena, small, 8192);
    EXPECT(large && large != small && copied_bytes == 512, "%zu bytes were copied", copied_bytes);
    void *found;
    size_t bytes;
    EXPECT(!weft_arena_find(&arena, small, &found, &bytes), "the old object is still there");
    EXPECT(weft_arena_find(&arena, large + 8191, &found, &bytes) && found == large && bytes == 8192,
           "%p has %zu bytes", found, bytes);
    weft_arena_check(&arena, wall);
    weft_arena_close(&arena);
}

/* Allocates and frees a large object; returns after how many other calls its memory is returned. */
static int calls_until_return(void) {
    int calls = 0, before = count.given_back;
    weft_arena_free(&arena, take(WEFT_ARENA_IDLE_LEAST));
    for (; count.given_back == before && calls < 100; calls++)
        weft_arena_free(&arena, take(64));
    return calls;
}

static void returns(void) {
    tap_case(
        "what is freed goes back in the next call, later where it is asked for again and again");
    begin();
    weft_arena_free(&arena, take(WEFT_ARENA_IDLE_LEAST / 2));
    take(64);
    EXPECT(count.given_back == 0, "little memory went back");
    int first = calls_until_return(), last = first;
    EXPECT(first == 1, "after %d calls", first);
    for (int i = 0; i < 8; i++)
        last = calls_until_return();
    EXPECT(last >= 4 && last < 100, "after %d calls for the ninth time", last);
    weft_arena_close(&arena);
    begin();
    has_idle = false; /* no memory was returned, so no return is regretted */
    for (int i = 0; i < 8; i++)
        last = calls_until_return();
    EXPECT(last == 1, "after %d calls where nothing was there to go back", last);
    weft_arena_close(&arena);
}

int main(void) {
    shmem_init();
    tap_start(shmem_my_pe());
    growth();
    refusals();
    sizes();
    returns();
    shmem_finalize();
    return tap_finish();
}
