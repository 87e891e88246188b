/* SPDX-License-Identifier: BSD-3-Clause */
/* Making a team takes two rounds of posts in its parent: the first finds a scratch slot that is
 * free on every member, the second says that all have their words ready. Who is no member takes
 * part in the rounds only. A slot is reused after a destroy whose barrier no late store can
 * outlive. */
#include "core/team.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "core/job.h"
#include "core/sync.h"
#include "core/window.h"

enum { WORLD_SLOT = 0, SHARED_SLOT = 1, HANDLE_SLOT_BITS = 9 };

_Static_assert(WEFT_TEAMS_MAX < 1 << HANDLE_SLOT_BITS, "a handle has room for every slot");
_Static_assert(sizeof(struct weft_team_words) <= WEFT_TEAM_WORDS_BYTES,
               "words fit before the workspace");

static struct weft_team *teams[WEFT_TEAMS_MAX];
static uint32_t generations[WEFT_TEAMS_MAX];

/* A handle is slot + 1 below and the generation above, so WORLD is 1, SHARED 2, INVALID 0. */
static shmem_team_t handle_of(const struct weft_team *team) {
    return (shmem_team_t)(((uintptr_t)team->generation << HANDLE_SLOT_BITS) |
                          (uintptr_t)(team->slot + 1));
}

struct weft_team *weft_team_find(shmem_team_t handle) {
    uintptr_t number = (uintptr_t)handle;
    uintptr_t slot = (number & ((1u << HANDLE_SLOT_BITS) - 1)) - 1;
    if (slot >= WEFT_TEAMS_MAX || !teams[slot])
        return NULL;
    return teams[slot]->generation == number >> HANDLE_SLOT_BITS ? teams[slot] : NULL;
}

int weft_team_member(const struct weft_team *team, int world_pe) {
    if (team->stride == 0)
        return world_pe == team->start ? 0 : -1;
    int distance = world_pe - team->start, member = distance / team->stride;
    return distance % team->stride == 0 && member >= 0 && member < team->npes ? member : -1;
}

void *weft_team_workspace_of(const struct weft_team *team, int member) {
    return weft_team_slot_of(team->slot, weft_team_world_pe(team, member)) + WEFT_TEAM_WORDS_BYTES;
}

size_t weft_team_workspace_capacity(void) {
    return weft_team_slot_bytes() - WEFT_TEAM_WORDS_BYTES;
}

int weft_team_workspace_commit(struct weft_team *team, size_t bytes) {
    if (bytes <= team->workspace_committed)
        return 0;
    if (bytes > weft_team_workspace_capacity())
        return weft_fail(-ENOMEM, "a workspace of %zu bytes is more than the %zu a team can have",
                         bytes, weft_team_workspace_capacity());
    size_t begin = (size_t)team->slot * weft_team_slot_bytes() + WEFT_TEAM_WORDS_BYTES;
    int result = weft_segment_commit_range(&weft_windows.scratch, begin, bytes);
    if (result < 0)
        return weft_fail(result, "cannot commit a workspace of %zu bytes: %s", bytes,
                         strerror(-result));
    team->workspace_committed = bytes;
    return 0;
}

/* Commits and clears this PE's words of a slot. */
static int prepare_words(int slot) {
    size_t begin = (size_t)slot * weft_team_slot_bytes();
    int result = weft_segment_commit_range(&weft_windows.scratch, begin, WEFT_TEAM_WORDS_BYTES);
    if (result == 0)
        memset(weft_team_slot_of(slot, weft_job.pe), 0, WEFT_TEAM_WORDS_BYTES);
    return result;
}

static struct weft_team *team_new(int slot, int my_pe, int npes, int start, int stride) {
    struct weft_team *team = calloc(1, sizeof *team);
    if (!team)
        return NULL;
    *team = (struct weft_team){.my_pe = my_pe,
                               .npes = npes,
                               .start = start,
                               .stride = stride,
                               .slot = slot,
                               .generation = generations[slot]};
    team->words = (struct weft_team_words *)weft_team_slot_of(slot, weft_job.pe);
    teams[slot] = team;
    return team;
}

static void team_drop(struct weft_team *team) {
    teams[team->slot] = NULL;
    generations[team->slot]++;
    free(team);
}

int weft_teams_open(void) {
    memset(generations, 0, sizeof generations);
    for (int slot = WORLD_SLOT; slot <= SHARED_SLOT; slot++) {
        /* Fresh scratch is zero, and a fast peer may have signalled here already: no clearing. */
        if (!team_new(slot, weft_job.pe, weft_job.npes, 0, 1))
            return -ENOMEM;
    }
    return 0;
}

void weft_teams_close(void) {
    for (int slot = 0; slot < WEFT_TEAMS_MAX; slot++)
        if (teams[slot])
            team_drop(teams[slot]);
}

/* What the members of a parent tell each other when they split it. */
struct split_post {
    uint64_t free_slots[WEFT_TEAMS_MAX / 64];
    int32_t start, stride, size;
    int32_t valid;
};

static const char split_call[] = "shmem_team_split_strided";

/* Whether start, start + stride, ... (size of them) are members of the parent. */
static bool split_is_valid(const struct weft_team *parent, int start, int stride, int size) {
    if (size < 1 || start < 0 || start >= parent->npes || (stride == 0 && size != 1))
        return false;
    int64_t last = start + (int64_t)stride * (size - 1);
    return last >= 0 && last < parent->npes;
}

/* Every member's arguments must be valid and the same; the slots free on all new members remain. */
static bool split_agree(struct weft_team *parent, struct split_post *mine) {
    struct split_post common = *mine;
    bool agreed = mine->valid;
    weft_sync_post(parent, mine, sizeof *mine);
    for (int member = 0; member < parent->npes; member++) {
        struct split_post theirs;
        memcpy(&theirs, weft_sync_peek(parent, member, split_call), sizeof theirs);
        if (!theirs.valid || theirs.start != mine->start || theirs.stride != mine->stride ||
            theirs.size != mine->size)
            agreed = false;
        int distance = member - mine->start, step = mine->stride ? mine->stride : 1;
        bool joins = distance % step == 0 && distance / step >= 0 && distance / step < mine->size;
        for (size_t i = 0; joins && i < sizeof common.free_slots / sizeof *common.free_slots; i++)
            common.free_slots[i] &= theirs.free_slots[i];
    }
    *mine = common;
    return agreed;
}

static int lowest_slot(const uint64_t *free_slots) {
    for (int slot = 0; slot < WEFT_TEAMS_MAX; slot++)
        if (free_slots[slot / 64] >> (slot % 64) & 1)
            return slot;
    return -1;
}

/* This PE's number in the new team, or -1. */
static int split_my_pe(const struct weft_team *parent, int start, int stride, int size) {
    int distance = parent->my_pe - start, step = stride ? stride : 1;
    int member = distance / step;
    return distance % step == 0 && member >= 0 && member < size ? member : -1;
}

/* The new team of a member, its words ready for the others; 0 or -errno. Local. */
static int split_create(const struct weft_team *parent, const struct split_post *post, int my_pe,
                        struct weft_team **team) {
    int slot = lowest_slot(post->free_slots);
    int result = slot < 0 ? -ENOSPC : prepare_words(slot);
    if (result < 0)
        return result;
    *team = team_new(slot, my_pe, post->size, weft_team_world_pe(parent, post->start),
                     parent->stride * post->stride);
    return *team ? 0 : -ENOMEM;
}

static void set_free_slots(struct split_post *post) {
    for (int slot = 0; slot < WEFT_TEAMS_MAX; slot++)
        if (!teams[slot])
            post->free_slots[slot / 64] |= UINT64_C(1) << (slot % 64);
}

int weft_team_split_strided(struct weft_team *parent, int start, int stride, int size,
                            const shmem_team_config_t *config, long config_mask,
                            shmem_team_t *new_team) {
    *new_team = SHMEM_TEAM_INVALID;
    struct split_post post = {.start = start, .stride = stride, .size = size};
    post.valid = split_is_valid(parent, start, stride, size);
    set_free_slots(&post);
    if (!split_agree(parent, &post))
        return -EINVAL;

    struct weft_team *team = NULL;
    int my_pe = split_my_pe(parent, start, stride, size);
    int result = my_pe < 0 ? 0 : split_create(parent, &post, my_pe, &team);
    bool all_ready = weft_sync_min(parent, result == 0, split_call);
    if (!all_ready) {
        if (team)
            team_drop(team);
        return -ENOMEM;
    }
    if (team) {
        team->config = config_mask ? *config : (shmem_team_config_t){0};
        team->config_mask = config_mask;
        *new_team = handle_of(team);
    }
    return 0;
}

void weft_team_destroy(struct weft_team *team) {
    weft_sync_barrier(team, "shmem_team_destroy");
    team_drop(team);
}
