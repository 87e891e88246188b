/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains of hosts: pieces of an array go from one host to the next, and results come back.
 *
 *     host a: 0, 1         host b: 2, 3         host c: 4, 5
 *     0: s0+s1     ---->   2: +s2+s3    ---->   4: +s4+s5         lane 0, the first half
 *          r       <----        r       <----        r
 *     1: the other half    3                    5                 lane 1
 *
 * Of each host as many members have a lane as the smallest host has. A piece comes into the dest of
 * the member that has it, is folded there with the sources of that host's members, in the order of
 * members, and goes on: so a result has the bits of one host, and a link carries the array once in
 * each direction. Members near to a lane's get results from it.
 *
 * A member passes pieces on, and passes results back as many pieces later as it takes those to come
 * at the earliest; so it waits for one thing at a time, and none of them waits for it. */
#include <stdlib.h>
#include <string.h>
#include "coll/hosts.h"
#include "coll/split.h"

enum { PIECE_BYTES = 60 << 10 /* goes in one letter */, LEAD = 2 /* on each link */ };

struct chain_lane {
    const struct weft_crossing *crossing;
    int position, length;       /* of this host, in hosts */
    int before, after;          /* members, or -1 */
    size_t first, nelems;       /* of the array */
    size_t elem_bytes, npieces; /* the last piece may be short */
    char *dest;                 /* of this member, where the lane begins */
    char **near;                /* the same of others of this host; of nnear */
    int nnear;
};

/* So many pieces go over a link at most: the same on all members. */
static uint32_t pieces_most(size_t nelems, size_t elem_bytes) {
    return (uint32_t)(nelems / (PIECE_BYTES / elem_bytes) + 1);
}

static bool has_lane(const struct weft_crossing *crossing) {
    return weft_levels_rank(crossing->levels, crossing->group->me) < crossing->levels->least;
}

/* This member's lane of a chain that begins at a host. near: room for the others' dests. */
static struct chain_lane lane_of(const struct weft_crossing *crossing, int host, void *dest,
                                 size_t nelems, size_t elem_bytes, char **near) {
    const struct weft_levels *levels = crossing->levels;
    const struct weft_group *group = crossing->group;
    int rank = weft_levels_rank(levels, group->me), n = levels->nleaders;
    size_t grain = weft_split_grain(elem_bytes), step = PIECE_BYTES / elem_bytes;
    struct chain_lane lane = {.crossing = crossing,
                              .position = (levels->leader - host + n) % n,
                              .length = n,
                              .before = -1,
                              .after = -1,
                              .first = weft_split_begin(nelems, grain, rank, levels->least),
                              .elem_bytes = elem_bytes,
                              .near = near};
    lane.nelems = weft_split_begin(nelems, grain, rank + 1, levels->least) - lane.first;
    lane.npieces = (lane.nelems + step - 1) / step;
    lane.dest = (char *)dest + lane.first * elem_bytes;
    if (lane.position > 0)
        lane.before = weft_crossing_taker(crossing, (levels->leader + n - 1) % n, rank);
    if (lane.position + 1 < n)
        lane.after = weft_crossing_taker(crossing, (levels->leader + 1) % n, rank);
    for (int i = 0; i < levels->near && lane.nelems > 0; i++) {
        int member = weft_crossing_near(crossing, i);
        if (member != group->me)
            near[lane.nnear++] =
                weft_group_near(group, lane.dest, lane.nelems * elem_bytes, member);
    }
    return lane;
}

/* Elements of a piece, from the lane's first one on. */
static struct weft_chunk piece_of(const struct chain_lane *lane, size_t piece) {
    size_t step = PIECE_BYTES / lane->elem_bytes, first = piece * step;
    size_t left = lane->nelems - first;
    return (struct weft_chunk){.first = first, .nelems = left < step ? left : step};
}

static size_t piece_bytes(const struct chain_lane *lane, const struct weft_chunk *piece) {
    return piece->nelems * lane->elem_bytes;
}

static void lane_await(const struct chain_lane *lane, enum weft_push why, size_t piece) {
    uint32_t number = (uint32_t)piece + 1;
    weft_crossing_await(lane->crossing, why, why == WEFT_PUSH_ON ? lane->before : lane->after,
                        number, number, lane->crossing->group->me);
}

/* What lies at `from`, to the same place of the dest before or behind. */
static void lane_push(const struct chain_lane *lane, enum weft_push why, size_t piece,
                      const void *from) {
    struct weft_chunk chunk = piece_of(lane, piece);
    weft_crossing_push(lane->crossing, why, lane->dest + chunk.first * lane->elem_bytes, from,
                       piece_bytes(lane, &chunk), (uint32_t)piece + 1,
                       why == WEFT_PUSH_ON ? lane->after : lane->before);
}

static void share_piece(const struct chain_lane *lane, size_t piece) {
    struct weft_chunk chunk = piece_of(lane, piece);
    size_t offset = chunk.first * lane->elem_bytes;
    for (int i = 0; i < lane->nnear; i++)
        memcpy(lane->near[i] + offset, lane->dest + offset, piece_bytes(lane, &chunk));
}

/* --- Broadcast ------------------------------------------------------------------------------- */

static void lane_broadcast(const struct chain_lane *lane, const char *source) {
    for (size_t piece = 0; piece < lane->npieces; piece++) {
        size_t offset = piece * PIECE_BYTES;
        if (lane->before >= 0)
            lane_await(lane, WEFT_PUSH_ON, piece);
        if (lane->after >= 0)
            lane_push(lane, WEFT_PUSH_ON, piece,
                      (lane->before >= 0 ? lane->dest : source) + offset);
        if (lane->before >= 0)
            share_piece(lane, piece);
    }
}

void weft_hosts_broadcast(const struct weft_group *group, void *dest, const void *source,
                          size_t bytes, int root, bool writes) {
    struct weft_crossing crossing = weft_crossing_of(group);
    int host = crossing.levels->hosts[root];
    bool near = host == crossing.levels->leader;
    const char *from =
        near && group->me != root ? weft_group_near(group, source, bytes, root) : source;
    weft_crossing_meet(&crossing, pieces_most(bytes, 1));
    if (has_lane(&crossing)) {
        char *dests[group->npes];
        struct chain_lane lane = lane_of(&crossing, host, dest, bytes, 1, dests);
        lane_broadcast(&lane, from + lane.first);
    }
    struct weft_pieces all = {.bytes = bytes, .count = 1, .stream = weft_stream_wanted(2 * bytes)};
    if (near && dest != from && (writes || group->me != root))
        weft_pieces_copy(dest, from, &all);
    weft_crossing_end(&crossing);
}

/* --- Reductions and scans -------------------------------------------------------------------- */

/* What a lane folds: what has come before, if any, and the sources of this host's members. */
struct lane_fold {
    const struct weft_folding *folding;
    const void **sources;
    void **dests; /* of a scan, likewise */
    int n;
    char *room; /* of a scan without the own element: for a piece that goes on */
};

/* Folds a piece, and lets it go on. */
static void reduce_piece(const struct chain_lane *lane, const struct lane_fold *fold,
                         size_t piece) {
    struct weft_chunk chunk = piece_of(lane, piece);
    chunk.sources = fold->sources;
    chunk.n = fold->n;
    char *at = lane->dest + chunk.first * lane->elem_bytes;
    if (lane->before >= 0)
        lane_await(lane, WEFT_PUSH_ON, piece);
    weft_fold_all(fold->folding->fold, at, &chunk);
    if (lane->after >= 0)
        lane_push(lane, WEFT_PUSH_ON, piece, at);
}

static void return_piece(const struct chain_lane *lane, size_t piece) {
    if (lane->after >= 0)
        lane_await(lane, WEFT_PUSH_BACK, piece);
    if (lane->before >= 0)
        lane_push(lane, WEFT_PUSH_BACK, piece,
                  lane->dest + piece_of(lane, piece).first * lane->elem_bytes);
    share_piece(lane, piece);
}

static void lane_reduce(const struct chain_lane *lane, const struct lane_fold *fold) {
    size_t late = LEAD * (size_t)(lane->length - 1 - lane->position);
    for (size_t piece = 0; piece < lane->npieces + late; piece++) {
        if (piece < lane->npieces)
            reduce_piece(lane, fold, piece);
        if (piece >= late)
            return_piece(lane, piece - late);
    }
}

/* What goes on is the last member's result, or, where that lacks its own elements, made before
 * dests, which may be sources, are written. */
static void scan_piece(const struct chain_lane *lane, const struct lane_fold *fold, size_t piece) {
    struct weft_chunk chunk = piece_of(lane, piece);
    chunk.sources = fold->sources;
    chunk.dests = fold->dests;
    chunk.n = fold->n;
    const char *on = (const char *)fold->dests[fold->n - 1] + chunk.first * lane->elem_bytes;
    if (lane->before >= 0)
        lane_await(lane, WEFT_PUSH_ON, piece);
    if (fold->room) {
        weft_fold_all(fold->folding->fold, fold->room, &chunk);
        on = fold->room;
    }
    weft_fold_scan(fold->folding, &chunk);
    if (lane->after >= 0)
        lane_push(lane, WEFT_PUSH_ON, piece, on);
}

/* Fills in the arrays of the host's members, and in front of them what comes before. `kept`: the
 * own source, where what comes would overwrite it. */
static void fold_arrays(struct lane_fold *fold, const struct chain_lane *lane, const void *source,
                        const char *kept) {
    const struct weft_group *group = lane->crossing->group;
    const char *from = (const char *)source + lane->first * lane->elem_bytes;
    size_t bytes = lane->nelems * lane->elem_bytes;
    if (lane->before >= 0) {
        fold->dests[0] = lane->dest;
        fold->sources[fold->n++] = lane->dest;
    }
    for (int rank = 0; rank < lane->crossing->levels->near; rank++) {
        int member = weft_crossing_near(lane->crossing, rank);
        bool own = member == group->me;
        fold->dests[fold->n] = own ? lane->dest : weft_group_near(group, lane->dest, bytes, member);
        fold->sources[fold->n++] = own && kept ? kept
                                   : own       ? from
                                               : weft_group_near(group, from, bytes, member);
    }
}

/* A copy, or NULL: none is needed. */
static char *keep_source(const struct chain_lane *lane, const void *source, void *dest) {
    size_t bytes = lane->nelems * lane->elem_bytes;
    if (source != dest || lane->before < 0 || bytes == 0)
        return NULL;
    char *kept = malloc(bytes);
    if (!kept)
        weft_job_panic("no memory for a copy of %zu bytes of source, which is dest", bytes);
    return memcpy(kept, lane->dest, bytes);
}

static void lane_fold(const struct chain_lane *lane, const struct weft_folding *folding,
                      const void *source, const char *kept) {
    const void *sources[lane->nnear + 2];
    void *dests[lane->nnear + 2];
    struct lane_fold fold = {.folding = folding, .sources = sources, .dests = dests};
    _Alignas(64) char room[PIECE_BYTES];
    fold.room = folding->of == WEFT_FOLD_BEFORE_OWN && lane->after >= 0 ? room : NULL;
    fold_arrays(&fold, lane, source, kept);
    if (folding->of == WEFT_FOLD_OF_ALL)
        lane_reduce(lane, &fold);
    for (size_t piece = 0; folding->of != WEFT_FOLD_OF_ALL && piece < lane->npieces; piece++)
        scan_piece(lane, &fold, piece);
}

void weft_hosts_fold_along(struct weft_crossing *crossing, void *dest, const void *source,
                           const struct weft_folding *folding) {
    const struct weft_group *group = crossing->group;
    size_t nelems = folding->nelems, elem = folding->fold->elem_bytes;
    bool works = has_lane(crossing);
    char *near[group->npes], *kept = NULL;
    struct chain_lane lane = {0};
    if (works) {
        lane = lane_of(crossing, 0, dest, nelems, elem, near);
        kept = keep_source(&lane, source, dest);
    }
    weft_crossing_meet(crossing, pieces_most(nelems, elem));
    if (works && lane.nelems > 0)
        lane_fold(&lane, folding, source, kept);
    weft_crossing_end(crossing);
    free(kept);
}
