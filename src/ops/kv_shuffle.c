/* SPDX-License-Identifier: BSD-3-Clause */
/* weft_kv_shuffle: arguments and agreement. The sender of a pair writes to the receiver's caches
 * (coll/kv_blocks.h), or on a stream its GPU does (fused/kv_shuffle.c). */
#include <errno.h>
#include "core/share.h"
#include "coll/kv_blocks.h"
#include "coll/meeting.h"
#include "coll/on_stream.h"
#include "fused/fused.h"
#include "ops/check.h"

enum { COUNT, BLOCKS, BLOCK_BYTES }; /* indices of the facts of an offer */

/* The data of an offer. */
struct pair {
    int32_t peer, role;
};

/* --- Arguments -------------------------------------------------------------------------------- */

static int check_caches(const weft_kv_caches *caches) {
    if (!caches)
        return weft_fail_bare(-EINVAL, "caches is NULL");
    if (caches->count > 0 && !caches->at)
        return weft_fail_bare(-EINVAL, "caches->at is NULL");
    if (caches->block_bytes > 0 && caches->blocks > (size_t)PTRDIFF_MAX / caches->block_bytes)
        return weft_fail_bare(-EINVAL, "caches->blocks is %zu, more than memory has",
                              caches->blocks);
    for (size_t i = 0; i < caches->count && caches->blocks * caches->block_bytes > 0; i++)
        if (!caches->at[i])
            return weft_fail_bare(-EINVAL, "caches->at[%zu] is NULL", i);
    return 0;
}

static int check_tables(const int32_t *peer_and_role, const int64_t *from, const int64_t *to,
                        size_t nblocks) {
    if (!peer_and_role)
        return weft_fail_bare(-EINVAL, "peer_and_role is NULL");
    if (nblocks > 0 && (!from || !to))
        return weft_fail_bare(-EINVAL, "%s is NULL", from ? "to_blocks" : "from_blocks");
    return 0;
}

/* Checks that the other member of a pair can write to the caches. */
static int check_symmetric(const weft_kv_caches *caches, const struct weft_team *team) {
    size_t bytes = caches->blocks * caches->block_bytes;
    struct weft_array shared;
    for (size_t i = 0; i < caches->count && bytes > 0; i++)
        if (weft_place_of(caches->at[i], bytes).space == WEFT_SPACE_PRIVATE &&
            !weft_share_array(&shared, caches->at[i], bytes, &team->member_list, team->npes))
            return weft_fail_bare(-EINVAL,
                                  "caches->at[%zu] is %p: not symmetric over %zu bytes, nor in a "
                                  "block that the team's members share",
                                  i, caches->at[i], bytes);
    return 0;
}

/* --- Of the host ------------------------------------------------------------------------------ */

static struct pair pair_of(const struct weft_meeting *meeting, int member) {
    struct pair pair;
    memcpy(&pair, weft_meeting_offer(meeting, member)->data, sizeof pair);
    return pair;
}

/* Checks that both members of each pair name each other. Returns the same on all members. */
static int compare_pairs(const struct weft_meeting *meeting) {
    for (int member = 0; member < meeting->team->npes; member++) {
        struct pair one = pair_of(meeting, member);
        if (one.peer == -1)
            continue;
        struct pair other = pair_of(meeting, one.peer);
        if (other.peer != member || other.role == one.role)
            return weft_fail(-EINVAL,
                             "member %d %s member %d, which names peer %d and role %d: both "
                             "members of a pair must name each other, one to send and one to "
                             "receive",
                             member, one.role == WEFT_KV_SENDS ? "sends to" : "receives from",
                             one.peer, other.peer, other.role);
    }
    return 0;
}

static int check_all(const struct weft_meeting *meeting, const weft_kv_caches *caches,
                     const int32_t *peer_and_role, struct weft_kv_blocks *blocks) {
    int error = check_caches(caches);
    error = error ? error : check_tables(peer_and_role, blocks->from, blocks->to, blocks->count);
    error = error ? error : check_symmetric(caches, meeting->team);
    if (error)
        return error;
    blocks->caches = *caches;
    blocks->peer = peer_and_role[0];
    blocks->role = peer_and_role[1];
    return weft_kv_blocks_check(blocks, meeting->team->my_pe, meeting->team->npes);
}

static void offer(struct weft_meeting *meeting, const struct weft_kv_blocks *blocks) {
    struct pair pair = {blocks->peer, blocks->role};
    memcpy(meeting->mine.data, &pair, sizeof pair);
    meeting->data_bytes = sizeof pair;
    meeting->mine.facts[COUNT] = blocks->caches.count;
    meeting->mine.facts[BLOCKS] = blocks->caches.blocks;
    meeting->mine.facts[BLOCK_BYTES] = blocks->caches.block_bytes;
}

static int shuffle_here(shmem_team_t team, const weft_kv_caches *caches,
                        const int32_t *peer_and_role, struct weft_kv_blocks *blocks) {
    struct weft_meeting meeting;
    int error = weft_meeting_open(&meeting, team, WEFT_CALL_KV_SHUFFLE, WEFT_STREAM_HOST);
    error = error ? error : check_all(&meeting, caches, peer_and_role, blocks);
    if (!error)
        offer(&meeting, blocks);
    weft_meeting_post(&meeting, error);
    error = weft_meeting_agree(&meeting);
    error = error ? error : compare_pairs(&meeting);
    if (!error) {
        struct weft_group group = weft_group_of(meeting.team);
        const struct weft_mover *mover = weft_mover_of_any(&group);
        weft_kv_blocks_send(&group, mover, blocks);
        weft_mover_meet(mover, &group);
    }
    return weft_meeting_close(&meeting, error);
}

/* --- On a stream ------------------------------------------------------------------------------ */

static int shuffle_on_stream(shmem_team_t team, const struct weft_fused_kv *kv,
                             weft_stream stream) {
    struct weft_on_stream on = {.stream = (weft_cu_stream)stream};
    int error = check_caches(kv->caches);
    error = error ? error : check_tables(kv->peer_and_role, kv->from, kv->to, kv->count);
    if (error)
        return weft_check_fail_named(error);
    error = weft_on_stream_enter(&on, team);
    return error ? error : weft_on_stream_end(&on, weft_fused_kv_shuffle(&on, kv));
}

int weft_kv_shuffle(shmem_team_t team, const weft_kv_caches *caches, const int32_t *peer_and_role,
                    const int64_t *from_blocks, const int64_t *to_blocks, size_t nblocks,
                    weft_stream stream) {
    WEFT_IN_CALL(__func__);
    struct weft_fused_kv kv = {caches, peer_and_role, from_blocks, to_blocks, nblocks};
    struct weft_kv_blocks blocks = {.from = from_blocks, .to = to_blocks, .count = nblocks};
    return stream == WEFT_STREAM_HOST ? shuffle_here(team, caches, peer_and_role, &blocks)
                                      : shuffle_on_stream(team, &kv, stream);
}
