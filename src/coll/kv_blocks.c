/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/kv_blocks.h"
#include <errno.h>
#include "core/share.h"

/* --- Checks ----------------------------------------------------------------------------------- */

static int check_block(const char *name, size_t i, int64_t block, size_t blocks) {
    if (block >= 0 && (size_t)block < blocks)
        return 0;
    return weft_fail_bare(-EINVAL, "%s[%zu] is %lld, but a cache has %zu blocks", name, i,
                          (long long)block, blocks);
}

int weft_kv_blocks_check(const struct weft_kv_blocks *blocks, int me, int npes) {
    if (blocks->peer == -1)
        return 0;
    if (blocks->peer < 0 || blocks->peer >= npes || blocks->peer == me)
        return weft_fail_bare(-EINVAL,
                              "the peer of member %d is %d: pass another member of the team of %d, "
                              "or -1",
                              me, blocks->peer, npes);
    if (blocks->role != WEFT_KV_SENDS && blocks->role != WEFT_KV_RECEIVES)
        return weft_fail_bare(-EINVAL,
                              "the role of member %d is %d, not WEFT_KV_SENDS or WEFT_KV_RECEIVES",
                              me, blocks->role);
    size_t count = blocks->role == WEFT_KV_SENDS ? blocks->count : 0;
    int error = 0;
    for (size_t i = 0; i < count && error == 0; i++)
        if (blocks->from[i] != -1) {
            error = check_block("from_blocks", i, blocks->from[i], blocks->caches.blocks);
            error =
                error ? error : check_block("to_blocks", i, blocks->to[i], blocks->caches.blocks);
        }
    return error;
}

/* --- Sending ---------------------------------------------------------------------------------- */

/* Returns the number of entries from i on whose blocks are adjacent on both sides. */
static size_t run_length(const struct weft_kv_blocks *blocks, size_t i) {
    size_t length = 1;
    while (i + length < blocks->count &&
           blocks->from[i + length] == blocks->from[i] + (int64_t)length &&
           blocks->to[i + length] == blocks->to[i] + (int64_t)length)
        length++;
    return length;
}

static void send_cache(const struct weft_group *group, const struct weft_mover *mover,
                       const struct weft_kv_blocks *blocks, char *cache) {
    size_t block = blocks->caches.block_bytes, length;
    struct weft_array shared;
    bool is_shared = weft_share_array(&shared, cache, blocks->caches.blocks * block,
                                      &group->member_list, group->npes);
    for (size_t i = 0; i < blocks->count; i += length) {
        length = run_length(blocks, i);
        if (blocks->from[i] == -1) {
            length = 1;
            continue;
        }
        const char *from = cache + (size_t)blocks->from[i] * block;
        size_t to = (size_t)blocks->to[i] * block;
        if (is_shared)
            weft_rma_copy(weft_array_of(&shared, blocks->peer) + to, from, length * block);
        else
            mover->push(group, cache + to, from, length * block, blocks->peer);
    }
}

void weft_kv_blocks_send(const struct weft_group *group, const struct weft_mover *mover,
                         const struct weft_kv_blocks *blocks) {
    bool sends = blocks->peer != -1 && blocks->role == WEFT_KV_SENDS;
    for (size_t i = 0; sends && i < blocks->caches.count; i++)
        send_cache(group, mover, blocks, blocks->caches.at[i]);
}
