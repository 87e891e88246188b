/* SPDX-License-Identifier: BSD-3-Clause */
/* Making a team takes two rounds: the first finds a scratch slot that is free on every member, the
 * second confirms that all members have their words ready. A split makes these rounds with posts in
 * the parent team; members of the parent that do not join only take part in the rounds. PEs without
 * a common team use exchanges among themselves. A slot is reused after a destroy, whose barrier no
 * late store or message can outlast. */
#include "core/team.h"
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/machine.h"
#include "base/size.h"
#include "far/far.h"

enum { WORLD_SLOT = 0, SHARED_SLOT = 1, HANDLE_SLOT_BITS = 9 };

_Static_assert(WEFT_TEAMS_MAX < 1 << HANDLE_SLOT_BITS, "a handle has room for every slot");

/* Changed under the lock, read without it. */
static struct weft_team *_Atomic teams[WEFT_TEAMS_MAX];
static uint32_t generations[WEFT_TEAMS_MAX];
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool workspace_is_open[WEFT_TEAMS_MAX]; /* by slot */

/* Returns the handle: slot + 1 in the low bits, the generation above. So WORLD is 1, SHARED 2,
 * INVALID 0. */
static shmem_team_t handle_of(const struct weft_team *team) {
    return (shmem_team_t)(((uintptr_t)team->generation << HANDLE_SLOT_BITS) |
                          (uintptr_t)(team->slot + 1));
}

struct weft_team *weft_team_in_slot(int slot) {
    return atomic_load_explicit(&teams[slot], memory_order_acquire);
}

struct weft_team *weft_team_find(shmem_team_t handle) {
    uintptr_t number = (uintptr_t)handle;
    uintptr_t slot = (number & ((1u << HANDLE_SLOT_BITS) - 1)) - 1;
    if (slot >= WEFT_TEAMS_MAX)
        return NULL;
    struct weft_team *team = weft_team_in_slot((int)slot);
    return team && team->generation == number >> HANDLE_SLOT_BITS ? team : NULL;
}

int weft_team_refuse(shmem_team_t handle) {
    return weft_fail(-EINVAL, "argument team is %p: pass a team that this PE is a member of",
                     (void *)handle);
}

/* Returns the index of a PE in start, start + stride, ... (`size` elements), or -1. */
static int position(int start, int stride, int size, int pe) {
    int64_t distance = (int64_t)pe - start, step = stride ? stride : 1, member = distance / step;
    return distance % step == 0 && member >= 0 && member < size ? (int)member : -1;
}

static int position_in_list(const int *pes, int npes, int pe) {
    for (int i = 0; i < npes; i++)
        if (pes[i] == pe)
            return i;
    return -1;
}

int weft_team_member(const struct weft_team *team, int world_pe) {
    const struct weft_member_list *member_list = &team->member_list;
    return member_list->pes
               ? position_in_list(member_list->pes, team->npes, world_pe)
               : position(member_list->start, member_list->stride, team->npes, world_pe);
}

/* Returns the size of a team's words with a signal per PE, the same for all slots. */
static size_t words_bytes(void) {
    return weft_page_up(sizeof(struct weft_team_words) + (size_t)weft_job.npes * sizeof(long));
}

/* Returns the offset of the workspace in the scratch. */
static size_t workspace_begin(const struct weft_team *team) {
    return (size_t)team->slot * weft_team_slot_bytes() + words_bytes();
}

/* Makes the workspaces of all near PEs accessible when a peer's is first asked for: a member may
 * have committed more than this PE. */
static void workspace_open(const struct weft_team *team) {
    int error = weft_segment_open(&weft_windows.scratch, workspace_begin(team),
                                  weft_team_workspace_capacity());
    if (error)
        weft_job_panic("cannot reach the workspaces of %d PEs (mprotect): %s%s", team->npes,
                       strerror(-error), weft_remedy(error).text);
    atomic_store(&workspace_is_open[team->slot], true);
}

void *weft_team_workspace_of(const struct weft_team *team, int member) {
    if (member != team->my_pe && !atomic_load(&workspace_is_open[team->slot]))
        workspace_open(team);
    return weft_team_slot_of(team->slot, weft_team_world_pe(team, member)) + words_bytes();
}

/* Returns the size of the inbox of a team of all PEs. All teams use it, so that all slots have the
 * same layout. */
static size_t inbox_bytes(void) {
    return weft_job.far ? (size_t)weft_job.npes * sizeof(struct weft_inbox) : 0;
}

static struct weft_inbox *inbox_in(int slot) {
    return (struct weft_inbox *)(weft_team_slot_of(slot + 1, weft_job.pe) - inbox_bytes());
}

/* Returns the size of the receive area's words: one per member for pushes, and one per host for
 * each packet epoch. */
static size_t receive_words_bytes(size_t npes) {
    return npes * (1 + WEFT_PACKETS) * sizeof(struct weft_word);
}

static size_t receive_bytes(void) {
    return weft_job.far ? sizeof(struct weft_receive) + receive_words_bytes((size_t)weft_job.npes)
                        : 0;
}

static struct weft_receive *receive_in(int slot) {
    return (struct weft_receive *)((char *)inbox_in(slot) - receive_bytes());
}

/* Returns the room for the packets of one epoch; all epochs together take at most a quarter of the
 * rest of the slot. */
static size_t packets_room(void) {
    enum { SHARE = 4 * WEFT_PACKETS };
    size_t left = weft_team_slot_bytes() - words_bytes() - inbox_bytes() - receive_bytes();
    size_t room = left / SHARE / sizeof(struct weft_word) * sizeof(struct weft_word);
    return !weft_job.far ? 0 : room < WEFT_RECEIVE_BYTES ? room : WEFT_RECEIVE_BYTES;
}

size_t weft_team_workspace_capacity(void) {
    return weft_team_slot_bytes() - words_bytes() - inbox_bytes() - receive_bytes() -
           WEFT_PACKETS * packets_room();
}

int weft_team_workspace_commit(struct weft_team *team, size_t bytes) {
    if (bytes <= team->workspace_committed)
        return 0;
    if (bytes > weft_team_workspace_capacity())
        return weft_fail_bare(-ENOMEM, "a workspace of %s is more than the %s a team can have",
                              weft_size(bytes).text,
                              weft_size(weft_team_workspace_capacity()).text);
    int result = weft_segment_commit_range(&weft_windows.scratch, workspace_begin(team), bytes);
    if (result < 0)
        return weft_fail_bare(result, "cannot commit a workspace of %s: %s%s",
                              weft_size(bytes).text, strerror(-result), weft_remedy(result).text);
    team->workspace_committed = bytes;
    return 0;
}

/* Returns the list as a progression if it is one. */
static struct weft_member_list member_list_of(const int *pes, int npes) {
    int stride = npes > 1 ? pes[1] - pes[0] : 1;
    for (int i = 0; i < npes; i++)
        if (pes[i] != pes[0] + i * stride)
            return (struct weft_member_list){.pes = pes};
    return (struct weft_member_list){.start = pes[0], .stride = stride};
}

/* Returns a copy of the team with its own copy of the list. */
static struct weft_team *copy_of(const struct weft_team *shape) {
    const struct weft_member_list *member_list = &shape->member_list;
    size_t list = member_list->pes ? (size_t)shape->npes * sizeof *member_list->pes : 0;
    struct weft_team *team = malloc(sizeof *team + list);
    if (!team)
        return NULL;
    *team = *shape;
    if (list > 0)
        team->member_list.pes = memcpy(team + 1, member_list->pes, list);
    return team;
}

static void team_free(struct weft_team *team) {
    free(team->levels);
    free(team);
}

/* Makes the words of a team accessible on all near PEs, and the areas that far PEs write. */
static int words_open(const struct weft_team *team) {
    size_t begin = (size_t)team->slot * weft_team_slot_bytes();
    int error = weft_segment_open(&weft_windows.scratch, begin, words_bytes());
    size_t rest = inbox_bytes() + receive_bytes() + WEFT_PACKETS * packets_room();
    if (error || !team->far)
        return error;
    return weft_segment_open(&weft_windows.scratch, begin + weft_team_slot_bytes() - rest, rest);
}

/* Returns 0, -ENOMEM, or -EAGAIN if another thread has taken the slot meanwhile. */
static int team_new(const struct weft_team *shape, struct weft_team **made) {
    struct weft_team *team = copy_of(shape);
    if (!team)
        return -ENOMEM;
    const struct weft_window *scratch = &weft_windows.scratch.window;
    for (int member = 0; member < team->npes; member++) {
        int pe = weft_team_world_pe(team, member);
        team->far |= weft_is_far(pe);
        assert(weft_job.far || weft_window_slot(scratch, pe) < scratch->count);
    }
    team->words = (struct weft_team_words *)weft_team_slot_of(team->slot, weft_job.pe);
    team->inbox = team->far ? inbox_in(team->slot) : NULL;
    team->receive = team->far ? receive_in(team->slot) : NULL;
    team->receive_bytes = packets_room();
    team->levels = team->far ? weft_levels_of(&team->member_list, team->npes, team->my_pe) : NULL;
    if ((team->far && !team->levels) || words_open(team) != 0) {
        team_free(team);
        return -ENOMEM;
    }
    pthread_mutex_lock(&changing);
    bool taken = atomic_load(&teams[team->slot]) != NULL;
    team->generation = generations[team->slot];
    if (!taken)
        atomic_store(&teams[team->slot], team);
    pthread_mutex_unlock(&changing);
    if (!taken)
        *made = team;
    else
        team_free(team);
    return taken ? -EAGAIN : 0;
}

static void team_drop(struct weft_team *team) {
    pthread_mutex_lock(&changing);
    generations[team->slot]++;
    atomic_store(&teams[team->slot], NULL);
    pthread_mutex_unlock(&changing);
    team_free(team);
}

/* Commits [p, p + bytes) of this PE's scratch and clears it. */
static int clear_words(void *p, size_t bytes) {
    size_t begin = (uintptr_t)p - weft_windows.scratch.window.local;
    int result = weft_segment_commit_range(&weft_windows.scratch, begin, bytes);
    if (result == 0)
        memset(p, 0, bytes);
    return result;
}

/* Makes a team in the slot of its shape, with words and inbox committed and zero. Returns 0 or
 * -errno as team_new. Local. */
static int team_open(const struct weft_team *shape, struct weft_team **team) {
    int result = team_new(shape, team);
    if (result)
        return result;
    result = clear_words((*team)->words, sizeof(struct weft_team_words));
    if (result == 0 && (*team)->far)
        result = clear_words((*team)->inbox, (size_t)shape->npes * sizeof(struct weft_inbox));
    if (result == 0 && (*team)->far)
        result = clear_words(&(*team)->receive->closing,
                             sizeof(struct weft_receive) - offsetof(struct weft_receive, closing) +
                                 receive_words_bytes((size_t)shape->npes));
    if (result)
        team_drop(*team);
    return result;
}

/* Checks that the slots are large enough: an inbox has an entry per PE, and low limits make small
 * slots. */
static int check_slots(void) {
    size_t have = weft_team_slot_bytes(), need = words_bytes() + inbox_bytes() + receive_bytes();
    if (need <= have)
        return 0;
    weft_log("the words of a team of %d PEs take %s, but only %s are available for each of %d "
             "teams: raise "
             "the limits on address space (ulimit -v) and file size (ulimit -f)",
             weft_job.npes, weft_size(need).text, weft_size(have).text, WEFT_TEAMS_MAX);
    return -ENOMEM;
}

int weft_teams_open(void) {
    const struct weft_segment *scratch = &weft_windows.scratch;
    const struct weft_window *near = &scratch->window;
    const struct weft_team shapes[] = {
        {.my_pe = weft_job.pe,
         .npes = weft_job.npes,
         .member_list = {.stride = 1},
         .slot = WORLD_SLOT},
        {.my_pe = (int)scratch->mine,
         .npes = (int)near->count,
         .member_list = {.start = (int)near->first, .stride = (int)near->step},
         .slot = SHARED_SLOT}};
    memset(generations, 0, sizeof generations);
    int result = check_slots();
    for (int slot = WORLD_SLOT; slot <= SHARED_SLOT && result == 0; slot++) {
        /* Not cleared: fresh scratch is zero, and a fast peer may have signalled here already. */
        struct weft_team *made;
        result = team_new(&shapes[slot], &made);
        if (result < 0)
            weft_log("no memory for SHMEM_TEAM_WORLD and SHMEM_TEAM_SHARED");
    }
    return result;
}

void weft_teams_close(void) {
    for (int slot = 0; slot < WEFT_TEAMS_MAX; slot++) {
        atomic_store(&workspace_is_open[slot], false);
        if (teams[slot])
            team_drop(teams[slot]);
    }
}

/* --- Finding a slot --------------------------------------------------------------------------- */

/* The free slots, one bit each. */
struct slots {
    uint64_t bits[WEFT_TEAMS_MAX / 64];
};

static struct slots free_slots(void) {
    struct slots slots = {{0}};
    for (int slot = 0; slot < WEFT_TEAMS_MAX; slot++)
        if (!atomic_load(&teams[slot]))
            slots.bits[slot / 64] |= UINT64_C(1) << (slot % 64);
    return slots;
}

static void keep_common(struct slots *slots, const struct slots *theirs) {
    for (int i = 0; i < WEFT_TEAMS_MAX / 64; i++)
        slots->bits[i] &= theirs->bits[i];
}

/* Returns the first free slot from `first` on, or -1. Threads that make different teams at the same
 * time start at different slots. */
static int choose_slot(const struct slots *slots, unsigned first) {
    for (unsigned i = 0; i < WEFT_TEAMS_MAX; i++) {
        unsigned slot = (first + i) % WEFT_TEAMS_MAX;
        if (slots->bits[slot / 64] >> (slot % 64) & 1)
            return (int)slot;
    }
    return -1;
}

/* --- Splitting -------------------------------------------------------------------------------- */

/* The facts that the members of a parent post for a split. */
struct split_post {
    struct slots free;
    int32_t start, stride, size;
    int32_t num_contexts; /* of a member that joins */
    int32_t valid;
};

/* Returns whether all PEs of the split are members of the parent. */
static bool split_is_valid(const struct weft_team *parent, const struct weft_split *split) {
    if (split->size < 1 || split->start < 0 || split->start >= parent->npes ||
        (split->stride == 0 && split->size != 1))
        return false;
    int64_t last = split->start + (int64_t)split->stride * (split->size - 1);
    return last >= 0 && last < parent->npes;
}

/* Checks that all members' arguments are valid and equal, and that all members who join want the
 * same configuration. Keeps the slots that are free on all who join. */
static bool split_agree(struct weft_team *parent, struct split_post *mine) {
    struct split_post common = *mine;
    bool agreed = mine->valid;
    int32_t num_contexts = -1; /* of the first member that joins */
    weft_sync_post(parent, mine, sizeof *mine);
    for (int member = 0; member < parent->npes; member++) {
        struct split_post theirs;
        memcpy(&theirs, weft_sync_peek(parent, member), sizeof theirs);
        if (!theirs.valid || theirs.start != mine->start || theirs.stride != mine->stride ||
            theirs.size != mine->size)
            agreed = false;
        bool joins = position(mine->start, mine->stride, mine->size, member) >= 0;
        if (joins && num_contexts >= 0 && theirs.num_contexts != num_contexts)
            agreed = false;
        if (!joins)
            continue;
        num_contexts = theirs.num_contexts;
        keep_common(&common.free, &theirs.free);
    }
    *mine = common;
    return agreed;
}

/* Makes the new team on a member. Returns 0, -ENOSPC if no slot is free on all who join, or another
 * -errno as team_new. Local. */
static int split_create(const struct weft_team *parent, const struct split_post *post, int my_pe,
                        struct weft_team **team) {
    enum { APART = 37 };
    int pes[post->size];
    for (int i = 0; i < post->size; i++)
        pes[i] = weft_team_world_pe(parent, post->start + i * post->stride);
    struct weft_team shape = {.my_pe = my_pe,
                              .npes = post->size,
                              .member_list = member_list_of(pes, post->size),
                              .slot = choose_slot(&post->free, (unsigned)parent->slot * APART)};
    int result = shape.slot < 0 ? -ENOSPC : team_open(&shape, team);
    if (result == -ENOMEM)
        weft_log("no memory for the words of a new team%s", weft_remedy(result).text);
    return result;
}

/* Tries once. Returns 0, -EAGAIN or another -errno, the same on all members of the parent. */
static int split_try(struct weft_team *parent, struct split_post *post, struct weft_team **team) {
    enum { FULL, FAILED, AGAIN, READY };
    static const int errors[] = {-ENOSPC, -ENOMEM, -EAGAIN, 0};
    post->free = free_slots();
    if (!split_agree(parent, post))
        return -EINVAL;
    int my_pe = position(post->start, post->stride, post->size, parent->my_pe);
    int mine = my_pe < 0 ? 0 : split_create(parent, post, my_pe, team);
    uint64_t vote = mine == 0 ? READY : mine == -EAGAIN ? AGAIN : mine == -ENOSPC ? FULL : FAILED;
    uint64_t verdict = weft_sync_min(parent, vote);
    if (verdict != READY && my_pe >= 0 && mine == 0)
        team_drop(*team);
    if (verdict == FULL && parent->my_pe == 0)
        weft_log("%s: none of the %d team slots is free on all PEs of the new team, so no PE gets "
                 "it: destroy some teams first",
                 weft_current_call, WEFT_TEAMS_MAX);
    return errors[verdict];
}

/* Returns the number of contexts that a member wants in the new team, or a negative number if the
 * mask is invalid. */
static int wanted_contexts(const struct weft_split *split) {
    if (split->config_mask & ~SHMEM_TEAM_NUM_CONTEXTS)
        return -1;
    return split->config_mask ? split->config->num_contexts : 0;
}

int weft_team_split(struct weft_team *parent, const struct weft_split *split,
                    shmem_team_t *new_team) {
    *new_team = SHMEM_TEAM_INVALID;
    bool joins = position(split->start, split->stride, split->size, parent->my_pe) >= 0;
    struct split_post post = {.start = split->start, .stride = split->stride, .size = split->size};
    post.num_contexts = joins ? wanted_contexts(split) : 0;
    post.valid = split_is_valid(parent, split) && post.num_contexts >= 0;
    struct weft_team *team = NULL;
    int result;
    do
        result = split_try(parent, &post, &team);
    while (result == -EAGAIN);
    if (result == 0 && team) {
        team->config.num_contexts = post.num_contexts;
        *new_team = handle_of(team);
    }
    return result;
}

/* --- Among any PEs ---------------------------------------------------------------------------- */

/* Tries once, as split_try. */
static int create_try(const struct weft_boot_subset *subset, struct weft_team *shape,
                      unsigned first, struct weft_team **team) {
    struct slots mine = free_slots(), all[subset->count];
    struct weft_exchange exchange = {.mine = &mine, .bytes = sizeof mine, .all = all};
    int result = weft_boot_exchange_among(subset, &exchange);
    for (int i = 0; i < subset->count && result == 0; i++)
        keep_common(&mine, &all[i]);
    if (result == 0 && (shape->slot = choose_slot(&mine, first)) < 0)
        result = weft_fail(
            -ENOSPC,
            "none of the %d team slots is free on all PEs of the new team: destroy some first",
            WEFT_TEAMS_MAX);
    if (result)
        return result;
    int own = team_open(shape, team);
    if (own == -ENOMEM)
        weft_fail(own, "no memory for the words of a new team");
    result = weft_boot_agree_among(subset, own);
    if (result && own == 0)
        team_drop(*team);
    return result;
}

int weft_team_create(const struct weft_boot_subset *subset, shmem_team_t *new_team) {
    struct weft_boot_subset team_subset = *subset;
    team_subset.tag = weft_hash(subset->tag, "team", 4); /* for this kind of call only */
    struct weft_team shape = {.my_pe = position_in_list(subset->pes, subset->count, weft_job.pe),
                              .npes = subset->count,
                              .member_list = member_list_of(subset->pes, subset->count)};
    struct weft_team *team = NULL;
    unsigned first = (unsigned)weft_hash(WEFT_HASH_BASIS, subset->pes,
                                         (size_t)subset->count * sizeof *subset->pes);
    int result;
    *new_team = SHMEM_TEAM_INVALID;
    do
        result = create_try(&team_subset, &shape, first++, &team);
    while (result == -EAGAIN);
    if (result == 0)
        *new_team = handle_of(team);
    return result;
}

/* Messages sent to far members must not arrive when another team has their slot, and messages from
 * them must be processed. */
void weft_team_destroy(struct weft_team *team) {
    if (team->far)
        weft_far_settle();
    weft_sync_close(team);
    if (team->far)
        weft_far_leave_words();
    team_drop(team);
}
