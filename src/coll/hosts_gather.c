/* SPDX-License-Identifier: BSD-3-Clause */
/* Each member pushes its block to one member of each other host, and the members near to that one
 * copy the block from it:
 *
 *     host a: 0, 1     host b: 2, 3      0 pushes to 2, 1 to 3, 2 to 0, 3 to 1
 *                                        1 copies 2's block from 0, and 0 3's from 1 */
#include <string.h>
#include "coll/hosts.h"

static void block_copy(void *dest, const void *source, size_t bytes, bool stream) {
    struct weft_pieces piece = {.bytes = bytes, .count = 1, .stream = stream};
    if (bytes > 0 && dest != source)
        weft_pieces_copy(dest, source, &piece);
}

/* Pushes to the next host first, so that not all hosts send to one host at once. */
static void push_own(const struct weft_host_push *push, char *dest,
                     const struct weft_hosts_block *own) {
    const struct weft_levels *levels = push->levels;
    int rank = weft_levels_rank(levels, push->group->me);
    for (int distance = 1; distance < levels->nleaders && own->bytes > 0; distance++) {
        int host = (levels->leader + distance) % levels->nleaders;
        weft_host_push_send(push, WEFT_PUSH_ACROSS, dest + own->offset, own->source, own->bytes, 1,
                            weft_host_push_taker(push, host, rank));
    }
}

/* Returns whether a member of this host receives the block that `from` pushes here. */
static bool takes(const struct weft_host_push *push, int taker, int from,
                  const struct weft_hosts_block *block) {
    const struct weft_levels *levels = push->levels;
    if (weft_host_push_is_near(push, from) || block->bytes == 0)
        return false;
    int rank = weft_levels_rank(levels, from);
    return weft_host_push_taker(push, levels->leader, rank) == taker;
}

static void copy_taken(const struct weft_host_push *push, char *dest,
                       const struct weft_hosts_block *blocks, int taker, bool stream) {
    const struct weft_group *group = push->group;
    uint32_t all = 0;
    for (int from = 0; from < group->npes; from++)
        all += takes(push, taker, from, &blocks[from]);
    for (int from = 0; from < group->npes; from++) {
        const struct weft_hosts_block *block = &blocks[from];
        if (!takes(push, taker, from, block))
            continue;
        weft_host_push_await(push, WEFT_PUSH_ACROSS, from, 1, all, taker);
        char *to = dest + block->offset;
        if (taker != group->me)
            block_copy(to, weft_group_near(group, to, block->bytes, taker), block->bytes, stream);
    }
}

void weft_hosts_gather(const struct weft_host_push *push, char *dest,
                       const struct weft_hosts_block *blocks) {
    const struct weft_group *group = push->group;
    size_t total = 0;
    for (int member = 0; member < group->npes; member++)
        total += blocks[member].bytes;
    bool stream = weft_stream_wanted(2 * total);
    int count = weft_host_push_count(push), rank = weft_levels_rank(push->levels, group->me);
    push_own(push, dest, &blocks[group->me]);
    for (int distance = 0; distance < count; distance++) {
        const struct weft_hosts_block *block =
            &blocks[weft_host_push_near(push, (rank + distance) % count)];
        block_copy(dest + block->offset, block->source, block->bytes, stream);
    }
    for (int distance = 0; distance < count; distance++)
        copy_taken(push, dest, blocks, weft_host_push_near(push, (rank + distance) % count),
                   stream);
}

void weft_hosts_fcollect(const struct weft_group *group, void *dest, const void *source,
                         size_t bytes) {
    struct weft_hosts_block blocks[group->npes];
    struct weft_host_push push = weft_host_push_of(group);
    bool in_place = source == (char *)dest + (size_t)group->me * bytes;
    weft_host_push_meet(&push, 1);
    for (int member = 0; member < group->npes; member++) {
        bool near = weft_host_push_is_near(&push, member);
        size_t offset = (size_t)member * bytes;
        const void *at = in_place ? (char *)dest + offset : source;
        if (member != group->me)
            at = near ? weft_group_near(group, at, bytes, member) : NULL;
        blocks[member] = (struct weft_hosts_block){offset, bytes, at};
    }
    weft_hosts_gather(&push, dest, blocks);
    weft_host_push_end(&push);
}
