/* SPDX-License-Identifier: BSD-3-Clause */
/* Extension: blocks of memory that several PEs share. Calls that free something accept NULL, and
 * may be made at any time. */
#include <errno.h>
#include "base/log.h"
#include "base/size.h"
#include "core/share.h"
#include "api/refuse.h"

static struct weft_block *inside_block(shmemx_block_t block) {
    return (struct weft_block *)block;
}

static struct weft_share *inside_share(shmemx_share_t share) {
    return (struct weft_share *)share;
}

/* --- Blocks ----------------------------------------------------------------------------------- */

static int check_wish(shmemx_space_t space, size_t bytes) {
    if (space != SHMEMX_SPACE_HOST && space != SHMEMX_SPACE_DEVICE)
        return weft_fail(-EINVAL,
                         "argument space is %d: pass SHMEMX_SPACE_HOST or SHMEMX_SPACE_DEVICE",
                         (int)space);
    if (bytes == 0)
        return weft_fail(-EINVAL, "argument bytes is 0: pass 1 or more");
    if (bytes > SIZE_MAX / 4)
        return weft_fail_bare(-ENOMEM, "%s of %s: no machine has that much memory",
                              weft_current_call, weft_size(bytes).text);
    return 0;
}

static int make_block(shmemx_space_t space, int gpu, size_t bytes, shmemx_block_t *block) {
    struct weft_block *made = NULL;
    int result = weft_refuse_null("block", block);
    result = result ? result : weft_refuse_phase();
    result = result ? result : check_wish(space, bytes);
    result = result ? result : weft_block_alloc(&made, space, gpu, bytes);
    if (block)
        *block = (shmemx_block_t)made;
    return result;
}

int shmemx_block_alloc(shmemx_space_t space, size_t bytes, shmemx_block_t *block) {
    WEFT_IN_CALL(__func__);
    return make_block(space, -1, bytes, block);
}

int shmemx_block_alloc_on(int gpu, size_t bytes, shmemx_block_t *block) {
    WEFT_IN_CALL(__func__);
    if (gpu < 0)
        return weft_fail(-EINVAL, "argument gpu is %d: pass the number of a CUDA device, 0 or more",
                         gpu);
    return make_block(SHMEMX_SPACE_DEVICE, gpu, bytes, block);
}

void shmemx_block_free(shmemx_block_t block) {
    if (block)
        weft_block_free(inside_block(block));
}

void *shmemx_block_ptr(shmemx_block_t block) {
    return block ? weft_block_at(inside_block(block)) : NULL;
}

size_t shmemx_block_bytes(shmemx_block_t block) {
    return block ? weft_block_bytes(inside_block(block)) : 0;
}

shmemx_space_t shmemx_block_space(shmemx_block_t block) {
    return block ? weft_block_space(inside_block(block)) : SHMEMX_SPACE_HOST;
}

int shmemx_block_gpu(shmemx_block_t block) {
    return block ? weft_block_gpu(inside_block(block)) : -1;
}

shmemx_block_t shmemx_block_find(const void *p) {
    return (shmemx_block_t)weft_block_of(p);
}

/* --- Shares ----------------------------------------------------------------------------------- */

int shmemx_share_attach(shmemx_block_t block, const int *pes, int npes, uint64_t tag,
                        shmemx_share_t *share) {
    WEFT_IN_CALL(__func__);
    struct weft_share *attached = NULL;
    struct weft_boot_subset subset;
    int result = weft_refuse_null("share", share);
    result = result ? result : weft_refuse_null("block", block);
    result = result ? result : weft_refuse_phase();
    result = result ? result : weft_refuse_list(pes, npes, tag, &subset);
    result = result ? result : weft_share_attach(&attached, inside_block(block), &subset);
    if (share)
        *share = (shmemx_share_t)attached;
    return result;
}

void shmemx_share_release(shmemx_share_t share) {
    if (share)
        weft_share_release(inside_share(share));
}

void *shmemx_share_ptr(shmemx_share_t share, int member) {
    return share ? weft_share_at(inside_share(share), member) : NULL;
}
