/* SPDX-License-Identifier: BSD-3-Clause */
/* A post is for one call of one thread, and its state counts up:
 *
 *     FREE -> FILLED (its owner writes) -> OPEN -> SEEN (by the set's first member) -> FREE
 *
 * The first member looks for a post of each other one that is open for the same set. Nobody else
 * closes that, so it is not of an earlier call; and unless threads may be in several at once, it is
 * the member's next one on the set, whatever its pSync. */
#include "coll/active_check.h"
#include <shmem.h>
#include <string.h>
#include "core/init.h"
#include "coll/place.h"

enum { FREE, FILLED, OPEN, SEEN, STATES };
enum { PE_START, LOG_STRIDE, PE_SIZE, PSYNC, SET_FACTS };

struct post {
    _Atomic uint32_t state;
    struct weft_entry entry;
};
enum { POSTS = WEFT_ACTIVE_POSTS_BYTES / sizeof(struct post) };
_Static_assert(POSTS >= 8, "a PE's threads have posts");

static struct post *posts_of(int pe) {
    struct weft_team *world = weft_team_find(SHMEM_TEAM_WORLD);
    return (struct post *)weft_team_words_of(world, pe)->active_posts;
}

static bool is_same_set(const struct weft_entry *a, const struct weft_entry *b) {
    bool members = memcmp(a->values, b->values, PSYNC * sizeof *a->values) == 0;
    return members &&
           (a->values[PSYNC] == b->values[PSYNC] || weft_thread_level() < SHMEM_THREAD_MULTIPLE);
}

/* Whether `pe` is in the same call; ends the job if it is in another one of this set. What was read
 * counts if the post was open all the time. */
static bool meet_one(const struct weft_entry *mine, const struct weft_same *arguments, int pe) {
    struct post *post = posts_of(pe);
    for (struct post *end = post + POSTS; post < end; post++) {
        uint32_t state = atomic_load(&post->state);
        if (state % STATES != OPEN)
            continue;
        struct weft_entry theirs = post->entry;
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load(&post->state) != state || !is_same_set(mine, &theirs))
            continue;
        weft_entry_compare(mine, &theirs, arguments, pe);
        atomic_store(&post->state, state + 1);
        return true;
    }
    return false;
}

/* Meets whom it can; returns one that is still to come, or 0. */
static int meet_all(const struct weft_group *group, const struct weft_entry *mine,
                    const struct weft_same *arguments, bool *met) {
    int absent = 0;
    for (int member = group->npes - 1; member > 0; member--) {
        met[member] = met[member] || meet_one(mine, arguments, weft_group_pe(group, member));
        if (!met[member])
            absent = member;
    }
    return absent;
}

static struct weft_waiter waiter_of(const struct weft_group *group) {
    return (struct weft_waiter){.call = group->call,
                                .pe = weft_group_pe(group, 0),
                                .roster = &group->roster,
                                .npes = group->npes};
}

static void compare_calls(const struct weft_group *group, const struct weft_entry *mine,
                          const struct weft_same *arguments) {
    struct weft_waiter waiter = waiter_of(group);
    bool met[group->npes];
    int absent;
    memset(met, 0, sizeof met);
    while ((absent = meet_all(group, mine, arguments, met)) != 0) {
        int pe = weft_group_pe(group, absent);
        waiter.departed = waiter.departed && waiter.pe == pe;
        waiter.pe = pe;
        weft_waiter_turn(&waiter);
    }
    weft_waiter_end(&waiter);
}

/* A post of this PE, for this thread to fill. More threads than posts wait for one. */
static struct post *take_post(const char *call) {
    struct post *posts = posts_of(weft_job.pe);
    struct weft_waiter waiter = {.call = call, .pe = WEFT_PE_ANY};
    for (int i = 0;; i = (i + 1) % POSTS) {
        uint32_t state = atomic_load(&posts[i].state);
        if (state % STATES == FREE &&
            atomic_compare_exchange_strong(&posts[i].state, &state, state + 1)) {
            weft_waiter_end(&waiter);
            return &posts[i];
        }
        if (i == POSTS - 1)
            weft_waiter_turn(&waiter);
    }
}

static void show_call(const struct weft_group *group, const struct weft_entry *mine) {
    struct weft_waiter waiter = waiter_of(group);
    struct post *post = take_post(group->call);
    post->entry = *mine;
    uint32_t open = atomic_fetch_add(&post->state, 1) + 1;
    while (atomic_load(&post->state) == open)
        weft_waiter_turn(&waiter);
    weft_waiter_end(&waiter);
    atomic_fetch_add(&post->state, 1);
}

/* Tells one pSync from another on all PEs alike: its offset in the heap, or a negative number. */
static int64_t psync_number(const long *psync) {
    struct weft_place place = weft_place_of(psync, sizeof *psync);
    int64_t offset = (int64_t)place.offset;
    return place.space == WEFT_SPACE_HEAP ? offset : -1 - offset;
}

void weft_active_check(const struct weft_group *group, const struct weft_same *arguments) {
    struct weft_same all[WEFT_CONSISTENCY_FACTS + 1] = {
        [PE_START] = {"PE_start", weft_group_pe(group, 0)},
        [LOG_STRIDE] = {"logPE_stride", __builtin_ctz((unsigned)group->roster.stride)},
        [PE_SIZE] = {"PE_size", group->npes},
        [PSYNC] = {"pSync (as an offset)", psync_number(group->psync)}};
    for (int i = 0; arguments[i].argument; i++)
        all[SET_FACTS + i] = arguments[i];
    struct weft_entry mine = weft_entry_of(group->call, all);
    if (group->me == 0)
        compare_calls(group, &mine, all);
    else
        show_call(group, &mine);
}
