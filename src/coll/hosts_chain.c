/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains of hosts: pieces of an array are passed from one host to the next, and results are passed
 * back.
 *
 *     host a: 0, 1         host b: 2, 3         host c: 4, 5
 *     0: s0+s1     ---->   2: +s2+s3    ---->   4: +s4+s5         lane 0, the first half
 *          r       <----        r       <----        r
 *     1: the other half    3                    5                 lane 1
 *
 * There are as many lanes as the smallest host has members, and each lane has one member on each
 * host. A piece arrives in the dest of the lane's member, is folded there with the sources of that
 * host's members, in the order of members, and is passed on: so a result has the bits of one host,
 * and a network link carries the array once in each direction. The other members of the host get
 * the results from the lane's member.
 *
 * A member passes pieces on, and passes each result back as many pieces later as the result takes
 * to return at least. So it waits for one thing at a time, and the members for which it waits do
 * not wait for it.
 *
 * A reduce-scatter has a block for each member, and each lane has a share of every block. The last
 * host pushes the results of a block to the block's member. */
#include <stdlib.h>
#include <string.h>
#include "coll/elements.h"
#include "coll/hosts.h"
#include "coll/split.h"

enum {
    PIECE_BYTES = 60 << 10, /* of one message */
    LEAD = 2,               /* pieces under way between two hosts */
};

/* The array that is passed along the hosts: contiguous blocks of nelems. Partial results arrive in
 * `partial`, which may be dest. */
struct chain_array {
    char *dest, *partial;
    size_t nelems, nblocks, elem_bytes, partial_bytes;
    size_t source_block; /* bytes between the blocks of a source */
};

struct chain_lane {
    const struct weft_host_push *push;
    const struct chain_array *array;
    int position, length; /* of this host in the chain, in hosts */
    int before, after;    /* the lane's members on the previous and the next host, or -1 */
    size_t first, nelems; /* the lane's elements of each block */
    size_t block_pieces;  /* of each block; the last piece may be short */
    size_t npieces;
    char *dest, *partial; /* of this member, from the beginning of the lane on */
    char **near;          /* dests of the nnear other members of this host */
    int nnear;
};

static size_t piece_nelems(const struct chain_array *array) {
    return PIECE_BYTES / array->partial_bytes;
}

/* Returns the most pieces that one member pushes to another: the same on all members. */
static uint32_t pieces_most(const struct chain_array *array) {
    return (uint32_t)(array->nblocks * (array->nelems / piece_nelems(array) + 1));
}

/* Sets *share to the elements of a block that are in the lane of members with this rank, and
 * returns the number of their pieces. */
static size_t pieces_of_lane(const struct chain_array *array, int rank, int nlanes,
                             struct weft_chunk *share) {
    size_t grain = weft_split_grain(array->elem_bytes), step = piece_nelems(array);
    share->first = weft_split_begin(array->nelems, grain, rank, nlanes);
    share->nelems = weft_split_begin(array->nelems, grain, rank + 1, nlanes) - share->first;
    return (share->nelems + step - 1) / step;
}

static bool has_lane(const struct weft_host_push *push) {
    return weft_levels_rank(push->levels, push->group->me) < push->levels->least;
}

/* Returns this member's lane of a chain that begins at `host`. near: room for the others' dests. */
static struct chain_lane lane_of(const struct weft_host_push *push, int host,
                                 const struct chain_array *array, char **near) {
    const struct weft_levels *levels = push->levels;
    const struct weft_group *group = push->group;
    int rank = weft_levels_rank(levels, group->me), n = levels->nleaders;
    struct weft_chunk share;
    size_t pieces = pieces_of_lane(array, rank, levels->least, &share);
    struct chain_lane lane = {.push = push,
                              .array = array,
                              .position = (levels->leader - host + n) % n,
                              .length = n,
                              .before = -1,
                              .after = -1,
                              .first = share.first,
                              .nelems = share.nelems,
                              .block_pieces = pieces,
                              .npieces = pieces * array->nblocks,
                              .dest = array->dest + share.first * array->elem_bytes,
                              .partial = array->partial + share.first * array->partial_bytes,
                              .near = near};
    if (lane.position > 0)
        lane.before = weft_host_push_taker(push, (levels->leader + n - 1) % n, rank);
    if (lane.position + 1 < n)
        lane.after = weft_host_push_taker(push, (levels->leader + 1) % n, rank);
    for (int i = 0; i < levels->near && lane.nelems > 0; i++) {
        int member = weft_host_push_near(push, i);
        if (member != group->me)
            near[lane.nnear++] =
                weft_group_near(group, lane.dest, lane.nelems * array->elem_bytes, member);
    }
    return lane;
}

/* Returns the elements of a piece, counted from the lane's first element. */
static struct weft_chunk piece_of(const struct chain_lane *lane, size_t piece) {
    size_t step = piece_nelems(lane->array), block = piece / lane->block_pieces;
    size_t first = piece % lane->block_pieces * step, left = lane->nelems - first;
    return (struct weft_chunk){.first = block * lane->array->nelems + first,
                               .nelems = left < step ? left : step};
}

static void lane_await(const struct chain_lane *lane, enum weft_push why, size_t piece) {
    uint32_t number = (uint32_t)piece + 1;
    weft_host_push_await(lane->push, why, why == WEFT_PUSH_ON ? lane->before : lane->after, number,
                         number, lane->push->group->me);
}

/* Pushes a piece at `from`: a partial result to the next host, or a result to the previous host. */
static void lane_push(const struct chain_lane *lane, enum weft_push why, size_t piece,
                      const void *from) {
    struct weft_chunk chunk = piece_of(lane, piece);
    bool on = why == WEFT_PUSH_ON;
    size_t bytes = on ? lane->array->partial_bytes : lane->array->elem_bytes;
    weft_host_push_send(lane->push, why, (on ? lane->partial : lane->dest) + chunk.first * bytes,
                        from, chunk.nelems * bytes, (uint32_t)piece + 1,
                        on ? lane->after : lane->before);
}

static void share_piece(const struct chain_lane *lane, size_t piece) {
    struct weft_chunk chunk = piece_of(lane, piece);
    size_t elem = lane->array->elem_bytes, offset = chunk.first * elem;
    for (int i = 0; i < lane->nnear; i++)
        memcpy(lane->near[i] + offset, lane->dest + offset, chunk.nelems * elem);
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
    struct weft_host_push push = weft_host_push_of(group);
    int host = push.levels->hosts[root];
    bool near = host == push.levels->leader;
    const char *from =
        near && group->me != root ? weft_group_near(group, source, bytes, root) : source;
    struct chain_array array = {dest, dest, bytes, 1, 1, 1, 0};
    weft_host_push_meet(&push, pieces_most(&array));
    if (has_lane(&push)) {
        char *dests[group->npes];
        struct chain_lane lane = lane_of(&push, host, &array, dests);
        lane_broadcast(&lane, from + lane.first);
    }
    struct weft_pieces all = {.bytes = bytes, .count = 1, .stream = weft_stream_wanted(2 * bytes)};
    if (near && dest != from && (writes || group->me != root))
        weft_pieces_copy(dest, from, &all);
    weft_host_push_end(&push);
}

/* --- Reductions and scans -------------------------------------------------------------------- */

/* The arrays that a lane folds: the partial result of the previous hosts, if any, and the sources
 * of this host's members. */
struct lane_fold {
    const struct weft_folding *folding;
    const void **sources;
    void **dests; /* of a scan, in the same order */
    int n;
    char *room; /* for a piece: of an exclusive scan, which is passed on; of a reduce-scatter, the
                   result for another host */
};

/* Folds a piece on the last host, and stores it at, or pushes it to, the member of its block. */
static void scatter_piece(const struct chain_lane *lane, const struct lane_fold *fold, size_t piece,
                          const struct weft_chunk *chunk) {
    const struct weft_host_push *push = lane->push;
    size_t elem = lane->array->elem_bytes, number = piece % lane->block_pieces;
    int member = (int)(piece / lane->block_pieces);
    bool near = weft_host_push_is_near(push, member);
    char *at = lane->dest + number * piece_nelems(lane->array) * elem;
    size_t bytes = chunk->nelems * elem;
    char *to = near ? weft_group_near(push->group, at, bytes, member) : fold->room;
    weft_elements_fold(fold->folding, WEFT_FOLD_FROM_PARTIAL, to, chunk);
    if (!near)
        weft_host_push_send(push, WEFT_PUSH_BACK, at, to, bytes, (uint32_t)number + 1, member);
}

/* Folds a piece with the sources of this host, and passes the partial result on. */
static void reduce_piece(const struct chain_lane *lane, const struct lane_fold *fold,
                         size_t piece) {
    const struct chain_array *array = lane->array;
    struct weft_chunk all = piece_of(lane, piece);
    const void *sources[fold->n];
    struct weft_chunk chunk = {.sources = sources, .n = fold->n, .nelems = all.nelems};
    size_t block = piece / lane->block_pieces;
    size_t offset = (all.first - block * array->nelems) * array->elem_bytes;
    char *partial = lane->partial + all.first * array->partial_bytes;
    for (int i = 0; i < fold->n; i++)
        sources[i] = (const char *)fold->sources[i] + block * array->source_block + offset;
    int step = WEFT_FOLD_WHOLE;
    if (lane->before >= 0) {
        lane_await(lane, WEFT_PUSH_ON, piece);
        step = WEFT_FOLD_FROM_PARTIAL;
        sources[0] = partial;
    }
    if (lane->after >= 0) {
        weft_elements_fold(fold->folding, step | WEFT_FOLD_TO_PARTIAL, partial, &chunk);
        lane_push(lane, WEFT_PUSH_ON, piece, partial);
    } else if (array->nblocks > 1) {
        scatter_piece(lane, fold, piece, &chunk);
    } else {
        weft_elements_fold(fold->folding, step, lane->dest + offset, &chunk);
    }
}

static void return_piece(const struct chain_lane *lane, size_t piece) {
    if (lane->after >= 0)
        lane_await(lane, WEFT_PUSH_BACK, piece);
    if (lane->before >= 0)
        lane_push(lane, WEFT_PUSH_BACK, piece,
                  lane->dest + piece_of(lane, piece).first * lane->array->elem_bytes);
    share_piece(lane, piece);
}

static void lane_reduce(const struct chain_lane *lane, const struct lane_fold *fold) {
    bool returns = lane->array->nblocks == 1;
    size_t late = returns ? LEAD * (size_t)(lane->length - 1 - lane->position) : 0;
    for (size_t piece = 0; piece < lane->npieces + late; piece++) {
        if (piece < lane->npieces)
            reduce_piece(lane, fold, piece);
        if (returns && piece >= late)
            return_piece(lane, piece - late);
    }
}

/* Blocks until all lanes of the last host have pushed their share of this member's block. */
static void await_block(const struct weft_host_push *push, const struct chain_array *array) {
    const struct weft_levels *levels = push->levels;
    int last = levels->nleaders - 1;
    for (int rank = 0; levels->leader != last && rank < levels->least; rank++) {
        struct weft_chunk share;
        uint32_t pieces = (uint32_t)pieces_of_lane(array, rank, levels->least, &share);
        if (pieces > 0)
            weft_host_push_await(push, WEFT_PUSH_BACK, weft_host_push_taker(push, last, rank),
                                 pieces, pieces, push->group->me);
    }
}

/* Passes the last member's result on. An exclusive scan lacks that member's own elements, so it
 * folds the piece to pass on before it writes dests, which may be sources. */
static void scan_piece(const struct chain_lane *lane, const struct lane_fold *fold, size_t piece) {
    struct weft_chunk chunk = piece_of(lane, piece);
    chunk.sources = fold->sources;
    chunk.dests = fold->dests;
    chunk.n = fold->n;
    const char *on = (const char *)fold->dests[fold->n - 1] + chunk.first * lane->array->elem_bytes;
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

/* Fills in the arrays of the host's members and, before them, the partial result of the previous
 * hosts. `kept`: a copy of this member's source, if the partial result overwrites the source. */
static void fold_arrays(struct lane_fold *fold, const struct chain_lane *lane, const void *source,
                        const char *kept) {
    const struct weft_group *group = lane->push->group;
    const struct chain_array *array = lane->array;
    const char *from = (const char *)source + lane->first * array->elem_bytes;
    size_t dest_bytes = lane->nelems * array->elem_bytes;
    size_t bytes = dest_bytes + (array->nblocks - 1) * array->source_block;
    if (lane->before >= 0) {
        fold->dests[0] = lane->partial;
        fold->sources[fold->n++] = lane->partial;
    }
    for (int rank = 0; rank < lane->push->levels->near; rank++) {
        int member = weft_host_push_near(lane->push, rank);
        bool own = member == group->me;
        fold->dests[fold->n] =
            own ? lane->dest : weft_group_near(group, lane->dest, dest_bytes, member);
        fold->sources[fold->n++] = own && kept ? kept
                                   : own       ? from
                                               : weft_group_near(group, from, bytes, member);
    }
}

/* Returns a copy of the source, or NULL if no copy is needed. */
static char *keep_source(const struct chain_lane *lane, const void *source, void *dest) {
    size_t bytes = lane->nelems * lane->array->elem_bytes;
    if (source != dest || lane->partial != lane->dest || lane->before < 0 || bytes == 0)
        return NULL;
    char *kept = malloc(bytes);
    if (!kept)
        weft_job_panic(
            "no memory for a copy of the %zu bytes of source that dest would overwrite: run "
            "fewer PEs on this host, or pass another array as dest",
            bytes);
    return memcpy(kept, lane->dest, bytes);
}

static void lane_fold(const struct chain_lane *lane, const struct weft_folding *folding,
                      const void *source, const char *kept) {
    const void *sources[lane->nnear + 2];
    void *dests[lane->nnear + 2];
    struct lane_fold fold = {.folding = folding, .sources = sources, .dests = dests};
    _Alignas(64) char room[PIECE_BYTES];
    bool makes_room =
        folding->of == WEFT_FOLD_BEFORE_OWN ? lane->after >= 0 : lane->array->nblocks > 1;
    fold.room = makes_room ? room : NULL;
    fold_arrays(&fold, lane, source, kept);
    if (folding->of == WEFT_FOLD_OF_ALL)
        lane_reduce(lane, &fold);
    for (size_t piece = 0; folding->of != WEFT_FOLD_OF_ALL && piece < lane->npieces; piece++)
        scan_piece(lane, &fold, piece);
}

void weft_hosts_fold_along(struct weft_host_push *push, void *dest, const void *source,
                           const struct weft_folding *folding) {
    const struct weft_group *group = push->group;
    const struct weft_vector_folding *vector = folding->vector;
    size_t block = vector ? vector->source_block : 0;
    struct chain_array array = {.dest = dest,
                                .partial = vector && vector->partial ? vector->partial : dest,
                                .nelems = folding->nelems,
                                .nblocks = block > 0 ? (size_t)group->npes : 1,
                                .elem_bytes = folding->fold->elem_bytes,
                                .partial_bytes = weft_partial_bytes(folding->fold),
                                .source_block = block};
    bool works = has_lane(push);
    char *near[group->npes], *kept = NULL;
    struct chain_lane lane = {0};
    if (works) {
        lane = lane_of(push, 0, &array, near);
        kept = keep_source(&lane, source, dest);
    }
    weft_host_push_meet(push, pieces_most(&array));
    if (works && lane.nelems > 0)
        lane_fold(&lane, folding, source, kept);
    if (array.nblocks > 1)
        await_block(push, &array);
    weft_host_push_end(push);
    free(kept);
}
