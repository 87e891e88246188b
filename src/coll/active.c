/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/active.h"
#include <shmem.h>
#include <string.h>
#include "far/far.h"
#include "core/init.h"
#include "coll/consistency.h"
#include "coll/place.h"

enum { ROUNDS_MAX = 32, SIZE_WORD = ROUNDS_MAX, PUSHED_WORDS };
_Static_assert(PUSHED_WORDS + WEFT_PUSHES <= SHMEM_SYNC_SIZE && SHMEM_SYNC_VALUE == 0,
               "pSync has the words");
_Static_assert(sizeof(size_t) == sizeof(long), "a word of pSync shows a size");

static _Atomic long *psync_word(const struct weft_group *group, int index) {
    return (_Atomic long *)&group->psync[index];
}

/* Returns the word that counts the signals of member `from` in a round. A PE may enter a call
 * before another PE has initialized its pSync, and PEs without threads use the sets that they share
 * in the same order: so the word is one of WORLD's, by the signalling PE. If threads may be in
 * several sets at once, only pSync distinguishes the sets, and holds the words. */
static _Atomic long *signal_word(const struct weft_group *group, int round, int from) {
    if (weft_job.threads)
        return psync_word(group, round);
    struct weft_team *world = weft_team_find(SHMEM_TEAM_WORLD);
    return &world->words->signals[weft_group_pe(group, from)];
}

/* Returns the address of a near member's copy of a word of pSync or of WORLD. */
static _Atomic long *word_of(const struct weft_group *group, _Atomic long *word, int member) {
    const struct weft_window *scratch = &weft_windows.scratch.window;
    size_t offset;
    if (weft_window_slot_of(scratch, word, &offset) < scratch->count)
        return weft_window_at(scratch, word,
                              weft_window_slot(scratch, weft_group_pe(group, member)));
    return weft_group_near(group, (void *)word, sizeof *word, member);
}

static bool is_far(const struct weft_group *group, int member) {
    return group->far && weft_is_far(weft_group_pe(group, member));
}

static void count_up(const struct weft_group *group, _Atomic long *word, int member) {
    struct weft_amo add = {WEFT_AMO_ADD, sizeof *word, (void *)word, .value = 1};
    if (is_far(group, member))
        weft_far_amo(&add, false, weft_group_pe(group, member));
    else
        atomic_fetch_add(word_of(group, word, member), 1);
}

static struct weft_waiter waiter_for(const struct weft_group *group, int member) {
    return (struct weft_waiter){.pe = weft_group_pe(group, member),
                                .member_list = &group->member_list,
                                .npes = group->npes};
}

/* A dissemination barrier (core/sync.c) with counting words. */
static void active_sync(const struct weft_group *group) {
    for (int round = 0, distance = 1; distance < group->npes; round++, distance *= 2) {
        int from = weft_group_member(group, group->npes - distance);
        _Atomic long *mine = word_of(group, signal_word(group, round, from), group->me);
        struct weft_waiter waiter = waiter_for(group, from);
        count_up(group, signal_word(group, round, group->me), weft_group_member(group, distance));
        while (atomic_load(mine) <= 0)
            weft_waiter_turn(&waiter);
        weft_waiter_end(&waiter);
        atomic_fetch_sub(mine, 1);
    }
}

int weft_active_unready(const struct weft_group *group) {
    int rounds = 0; /* rounds that are counted in pSync */
    while (weft_job.threads && 1 << rounds < group->npes)
        rounds++;
    for (int i = 0; i < SHMEM_SYNC_SIZE; i++) {
        long value = atomic_load(psync_word(group, i));
        if (value != SHMEM_SYNC_VALUE && !(i < rounds && value == SHMEM_SYNC_VALUE + 1))
            return i;
    }
    return -1;
}

/* After the second sync all members have read the words, so each member clears its own. */
static void active_share(const struct weft_group *group, size_t mine, size_t *sizes) {
    atomic_store(word_of(group, psync_word(group, SIZE_WORD), group->me), (long)mine);
    active_sync(group);
    for (int member = 0; member < group->npes; member++)
        if (is_far(group, member))
            weft_far_get(&sizes[member], &group->psync[SIZE_WORD], sizeof *sizes,
                         weft_group_pe(group, member), true);
        else
            sizes[member] =
                (size_t)atomic_load(word_of(group, psync_word(group, SIZE_WORD), member));
    if (group->far)
        weft_far_quiet();
    active_sync(group);
    atomic_store(word_of(group, psync_word(group, SIZE_WORD), group->me), SHMEM_SYNC_VALUE);
}

static void active_count(const struct weft_group *group, enum weft_push why, int member) {
    count_up(group, psync_word(group, PUSHED_WORDS + (int)why), member);
}

static void active_await(const struct weft_group *group, enum weft_push why, uint32_t count,
                         int near) {
    struct weft_waiter waiter = waiter_for(group, near);
    _Atomic long *word = word_of(group, psync_word(group, PUSHED_WORDS + (int)why), near);
    if (near == group->me)
        waiter.pe = WEFT_PE_ANY;
    while (atomic_load(word) < (long)count)
        weft_waiter_turn(&waiter);
    weft_waiter_end(&waiter);
}

static void active_clear(const struct weft_group *group) {
    for (enum weft_push why = 0; why < WEFT_PUSHES; why++)
        atomic_store(word_of(group, psync_word(group, PUSHED_WORDS + (int)why), group->me),
                     SHMEM_SYNC_VALUE);
}

/* --- Checked mode --------------------------------------------------------------------------------
 * Checks that all members make the same call with the same arguments, as coll/consistency.h does
 * for teams. An active set has no words of its own, so every PE shows its calls in posts among its
 * words of WORLD. A post is for one call of one thread, and its state counts up:
 *
 *     FREE -> FILLED (its owner writes) -> OPEN -> SEEN (by the set's first member) -> FREE
 *
 * The first member looks for an open post of the same set at each other member. Only the first
 * member closes posts, so an open post is not of an earlier call. Unless threads may be in several
 * sets at once, it is the member's next call on the set, whatever its pSync. */

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

/* Returns a PE's posts: a near PE's in place, a far PE's as a copy that is fetched now. */
static const struct post *look_through(int pe, struct post copy[POSTS]) {
    if (!weft_is_far(pe))
        return posts_of(pe);
    weft_far_get(copy, posts_of(weft_job.pe), POSTS * sizeof *copy, pe, false);
    return copy;
}

/* Copies the entry of post `i` of a PE, then returns the post's state. */
static uint32_t read_post(int pe, int i, struct weft_entry *entry) {
    struct post *post = &posts_of(weft_is_far(pe) ? weft_job.pe : pe)[i];
    if (weft_is_far(pe)) {
        weft_far_get(entry, &post->entry, sizeof *entry, pe, false);
        uint32_t state;
        struct weft_amo fetch = {WEFT_AMO_FETCH, sizeof state, &post->state, .fetch = &state};
        weft_far_amo(&fetch, false, pe);
        return state;
    }
    *entry = post->entry;
    atomic_thread_fence(memory_order_acquire);
    return atomic_load(&post->state);
}

static void set_state(int pe, int i, uint32_t state) {
    struct weft_amo set = {WEFT_AMO_SET, sizeof state, &posts_of(weft_job.pe)[i].state,
                           .value = state};
    if (weft_is_far(pe))
        weft_far_amo(&set, false, pe);
    else
        atomic_store(&posts_of(pe)[i].state, state);
}

static bool is_same_set(const struct weft_entry *a, const struct weft_entry *b) {
    bool members = memcmp(a->values, b->values, PSYNC * sizeof *a->values) == 0;
    return members &&
           (a->values[PSYNC] == b->values[PSYNC] || weft_thread_level() < SHMEM_THREAD_MULTIPLE);
}

/* Returns whether `pe` is in the same call; ends the job if it is in another call of this set. An
 * entry that was read counts only if the post was open all the time. */
static bool meet_one(const struct weft_entry *mine, const struct weft_same *arguments, int pe) {
    struct post copy[POSTS];
    const struct post *posts = look_through(pe, copy);
    for (int i = 0; i < POSTS; i++) {
        uint32_t state = atomic_load(&posts[i].state);
        struct weft_entry theirs;
        if (state % STATES != OPEN || read_post(pe, i, &theirs) != state ||
            !is_same_set(mine, &theirs))
            continue;
        weft_entry_compare(mine, &theirs, arguments, pe);
        set_state(pe, i, state + 1);
        return true;
    }
    return false;
}

/* Compares with the members that have arrived. Returns a member that has not, or 0. */
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

static void compare_calls(const struct weft_group *group, const struct weft_entry *mine,
                          const struct weft_same *arguments) {
    struct weft_waiter waiter = waiter_for(group, 0);
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

/* Returns a free post of this PE, for this thread to fill. Waits if there are more threads than
 * posts. */
static struct post *take_post(void) {
    struct post *posts = posts_of(weft_job.pe);
    struct weft_waiter waiter = {.pe = WEFT_PE_ANY};
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
    struct weft_waiter waiter = waiter_for(group, 0);
    struct post *post = take_post();
    post->entry = *mine;
    uint32_t open = atomic_fetch_add(&post->state, 1) + 1;
    while (atomic_load(&post->state) == open)
        weft_waiter_turn(&waiter);
    weft_waiter_end(&waiter);
    atomic_fetch_add(&post->state, 1);
}

/* Returns a number that identifies a pSync on all PEs: its offset in the heap, or a negative
 * number. */
static int64_t psync_number(const long *psync) {
    struct weft_place place = weft_place_of(psync, sizeof *psync);
    int64_t offset = (int64_t)place.offset;
    return place.space == WEFT_SPACE_HEAP ? offset : -1 - offset;
}

/* Ends the job unless all members of the active set make this call with these arguments and the
 * same pSync. Only the first member compares and reports. */
static void active_check(const struct weft_group *group, const struct weft_same *arguments) {
    struct weft_same all[WEFT_CONSISTENCY_FACTS + 1] = {
        [PE_START] = {"PE_start", weft_group_pe(group, 0)},
        [LOG_STRIDE] = {"logPE_stride", __builtin_ctz((unsigned)group->member_list.stride)},
        [PE_SIZE] = {"PE_size", group->npes},
        [PSYNC] = {"pSync (as an offset)", psync_number(group->psync)}};
    for (int i = 0; arguments[i].argument; i++)
        all[SET_FACTS + i] = arguments[i];
    struct weft_entry mine = weft_entry_of(all);
    if (group->me == 0)
        compare_calls(group, &mine, all);
    else
        show_call(group, &mine);
}

static const struct weft_set_calls set_calls = {active_share, active_check, active_count,
                                                active_await, active_clear};

static bool some_are_far(int start, int stride, int size) {
    for (int member = 0; weft_job.far && member < size; member++)
        if (weft_is_far(start + member * stride))
            return true;
    return false;
}

struct weft_group weft_active_group(int start, int log_stride, int size, long *psync, int pe) {
    int stride = 1 << log_stride, distance = pe - start;
    bool member = distance >= 0 && distance % stride == 0 && distance / stride < size;
    return (struct weft_group){.me = member ? distance / stride : -1,
                               .npes = size,
                               .member_list = {.start = start, .stride = stride},
                               .far = some_are_far(start, stride, size),
                               .psync = psync,
                               .sync = active_sync,
                               .set = &set_calls};
}
