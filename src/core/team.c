/* SPDX-License-Identifier: BSD-3-Clause */
/* Making a team takes two rounds: the first finds a scratch slot that is free on every member, the
 * second says that all have their words ready. A split makes them with posts in its parent, and who
 * is no member takes part in the rounds only; PEs that have no team yet make them by exchanges
 * among themselves. A slot is reused after a destroy whose barrier no late store or message can
 * outlive. */
#include "core/team.h"
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/size.h"
#include "far/far.h"

enum { WORLD_SLOT = 0, SHARED_SLOT = 1, HANDLE_SLOT_BITS = 9 };

_Static_assert(WEFT_TEAMS_MAX < 1 << HANDLE_SLOT_BITS, "a handle has room for every slot");

/* Changed under the lock, read without. */
static struct weft_team *_Atomic teams[WEFT_TEAMS_MAX];
static uint32_t generations[WEFT_TEAMS_MAX];
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool workspace_is_open[WEFT_TEAMS_MAX]; /* by slot: here, on all PEs near */

/* A handle is slot + 1 below and the generation above, so WORLD is 1, SHARED 2, INVALID 0. */
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

/* Which member of start, start + stride, ... (size of them) a PE is, or -1. */
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

/* With a signal of each PE: all slots look alike. */
static size_t words_bytes(void) {
    return weft_page_up(sizeof(struct weft_team_words) + (size_t)weft_job.npes * sizeof(long));
}

/* Of the scratch slot. */
static size_t workspace_begin(const struct weft_team *team) {
    return (size_t)team->slot * weft_team_slot_bytes() + words_bytes();
}

/* A member may have more in its workspace than this PE: all of it is made accessible here when a
 * peer's is first asked for. */
static void workspace_open(const struct weft_team *team) {
    int error = weft_segment_open(&weft_windows.scratch, workspace_begin(team),
                                  weft_team_workspace_capacity());
    if (error)
        weft_job_panic("cannot reach the workspaces of %d PEs: %s; allow more mappings "
                       "(vm.max_map_count)",
                       team->npes, strerror(-error));
    atomic_store(&workspace_is_open[team->slot], true);
}

void *weft_team_workspace_of(const struct weft_team *team, int member) {
    if (member != team->my_pe && !atomic_load(&workspace_is_open[team->slot]))
        workspace_open(team);
    return weft_team_slot_of(team->slot, weft_team_world_pe(team, member)) + words_bytes();
}

/* Of a team of all PEs: where the entries of others begin, too. */
static size_t inbox_bytes(void) {
    return weft_job.far ? (size_t)weft_job.npes * sizeof(struct weft_inbox) : 0;
}

static struct weft_inbox *inbox_in(int slot) {
    return (struct weft_inbox *)(weft_team_slot_of(slot + 1, weft_job.pe) - inbox_bytes());
}

/* In front of it, likewise, a word of each other one, and for each packet one of each host. */
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

/* Of packets, in front of that: for an epoch; a quarter of what is left, at most, for all. */
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
        return weft_fail_bare(result, "cannot commit a workspace of %s: %s", weft_size(bytes).text,
                              strerror(-result));
    team->workspace_committed = bytes;
    return 0;
}

/* A list that is a progression becomes one. */
static struct weft_member_list member_list_of(const int *pes, int npes) {
    int stride = npes > 1 ? pes[1] - pes[0] : 1;
    for (int i = 0; i < npes; i++)
        if (pes[i] != pes[0] + i * stride)
            return (struct weft_member_list){.pes = pes};
    return (struct weft_member_list){.start = pes[0], .stride = stride};
}

/* With a list of its own. */
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

/* Makes the words of a team accessible on all PEs near, and what far PEs write. */
static int words_open(const struct weft_team *team) {
    size_t begin = (size_t)team->slot * weft_team_slot_bytes();
    int error = weft_segment_open(&weft_windows.scratch, begin, words_bytes());
    size_t rest = inbox_bytes() + receive_bytes() + WEFT_PACKETS * packets_room();
    if (error || !team->far)
        return error;
    return weft_segment_open(&weft_windows.scratch, begin + weft_team_slot_bytes() - rest, rest);
}

/* 0; -ENOMEM; -EAGAIN: another thread has taken the slot meanwhile. */
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

/* Commits [p, p + bytes) of this PE's scratch, and clears it. */
static int clear_words(void *p, size_t bytes) {
    size_t begin = (uintptr_t)p - weft_windows.scratch.window.local;
    int result = weft_segment_commit_range(&weft_windows.scratch, begin, bytes);
    if (result == 0)
        memset(p, 0, bytes);
    return result;
}

/* A new team in the slot of its shape, its words and inbox there and zero; 0 or -errno as team_new.
 * Local. */
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

/* An inbox has an entry for each PE, and small limits make small slots. */
static int check_slots(void) {
    size_t have = weft_team_slot_bytes(), need = words_bytes() + inbox_bytes() + receive_bytes();
    if (need <= have)
        return 0;
    weft_log("the words of a team of %d PEs take %s, and there are %s for each of %d teams: raise "
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
        /* Fresh scratch is zero, and a fast peer may have signalled here already: no clearing. */
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

/* The slots that are free, one bit each. */
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

/* The first one at or behind `first`: threads that make different teams at once begin apart. -1:
 * there is none. */
static int choose_slot(const struct slots *slots, unsigned first) {
    for (unsigned i = 0; i < WEFT_TEAMS_MAX; i++) {
        unsigned slot = (first + i) % WEFT_TEAMS_MAX;
        if (slots->bits[slot / 64] >> (slot % 64) & 1)
            return (int)slot;
    }
    return -1;
}

/* --- Splitting -------------------------------------------------------------------------------- */

/* What the members of a parent tell each other when they split it. */
struct split_post {
    struct slots free;
    int32_t start, stride, size;
    int32_t num_contexts; /* counts for who joins */
    int32_t valid;
};

/* Whether start, start + stride, ... (size of them) are members of the parent. */
static bool split_is_valid(const struct weft_team *parent, int start, int stride, int size) {
    if (size < 1 || start < 0 || start >= parent->npes || (stride == 0 && size != 1))
        return false;
    int64_t last = start + (int64_t)stride * (size - 1);
    return last >= 0 && last < parent->npes;
}

/* Every member's arguments must be valid and the same, and the configuration of all who join; the
 * slots free on all of these remain. */
static bool split_agree(struct weft_team *parent, struct split_post *mine) {
    struct split_post common = *mine;
    bool agreed = mine->valid;
    int32_t num_contexts = -1; /* of the first that joins */
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
        if (joins)
            num_contexts = theirs.num_contexts;
        if (joins)
            keep_common(&common.free, &theirs.free);
    }
    *mine = common;
    return agreed;
}

/* The new team of a member; 0 or -errno as team_new. Local. */
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
        weft_log("no memory for the words of a new team: %s", strerror(ENOMEM));
    return result;
}

/* One attempt: 0, -EAGAIN or another -errno, the same on all members of the parent. */
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
        weft_log("%s: the PEs of the new team have no team left in common, of %d: destroy some "
                 "first; no PE gets one",
                 weft_current_call, WEFT_TEAMS_MAX);
    return errors[verdict];
}

/* What a member wants of the team that it joins; negative: no such thing. */
static int wanted_contexts(const shmem_team_config_t *config, long config_mask) {
    if (config_mask & ~SHMEM_TEAM_NUM_CONTEXTS)
        return -1;
    return config_mask ? config->num_contexts : 0;
}

int weft_team_split_strided(struct weft_team *parent, int start, int stride, int size,
                            const shmem_team_config_t *config, long config_mask,
                            shmem_team_t *new_team) {
    *new_team = SHMEM_TEAM_INVALID;
    struct split_post post = {.start = start, .stride = stride, .size = size};
    post.valid = split_is_valid(parent, start, stride, size);
    bool joins = position(start, stride, size, parent->my_pe) >= 0;
    post.num_contexts = joins ? wanted_contexts(config, config_mask) : 0;
    post.valid = post.valid && post.num_contexts >= 0;
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

/* One attempt, as split_try. */
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
            "the PEs of the new team have no team left in common, of %d: destroy some first",
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
    team_subset.tag = weft_hash(subset->tag, "team", 4); /* no call of another kind is met */
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

/* What has gone to far members must not come when their slot has another team, and what has come
 * from them must be done with. */
void weft_team_destroy(struct weft_team *team) {
    if (team->far)
        weft_far_settle();
    weft_sync_close(team);
    if (team->far)
        weft_far_leave_words();
    team_drop(team);
}
