/* SPDX-License-Identifier: BSD-3-Clause */
/* Bookkeeping of blocks and shares: the lists of both, and their holders. An attach has these
 * steps: all members are ready; they show each other their blocks; all have mapped and tested
 * them. */
#include "core/share.h"
#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/hash.h"
#include "job/placement.h"
#include "job/space.h"
#include "core/share_space.h"

/* Held for moments only, never during a wait for other PEs. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t attached = PTHREAD_COND_INITIALIZER;

static void *blocks; /* a tree (tsearch) of disjoint ranges, each in its block */

/* Blocks and shares that have no holders but are still mapped. */
static struct weft_share *left_shares;
static struct weft_block *left_blocks;

/* In a forked child none of this memory is mapped, and another thread may have held the lock. */
static bool is_forked(void) {
    return weft_job.phase == WEFT_JOB_FORKED;
}

/* --- Releasing ------------------------------------------------------------------------------- */

static void add_left_block(struct weft_block *block) {
    block->next = left_blocks;
    left_blocks = block;
}

static void add_left_share(struct weft_share *share) {
    share->next = left_shares;
    left_shares = share;
}

/* leave_block and leave_share remove a holder; a block or share without holders is left to sweep.
 * Both are called under the lock, as are add_left_block and add_left_share. */
static void leave_block(struct weft_block *block) {
    if (--block->holders == 0)
        add_left_block(block);
}

static void leave_share(struct weft_share *share) {
    if (--share->holders == 0)
        add_left_share(share);
}

static void sweep_shares(struct weft_share *list) {
    for (struct weft_share *share = list, *next; share; share = next) {
        next = share->next;
        bool gone = share->block->space->unmap(share) == 0;
        pthread_mutex_lock(&changing);
        if (gone)
            leave_block(share->block);
        else
            add_left_share(share);
        pthread_mutex_unlock(&changing);
        if (gone)
            free(share);
    }
}

static void sweep_blocks(struct weft_block *list) {
    for (struct weft_block *block = list, *next; block; block = next) {
        next = block->next;
        if (block->space->free(block) == 0) {
            free(block);
            continue;
        }
        pthread_mutex_lock(&changing);
        add_left_block(block);
        pthread_mutex_unlock(&changing);
    }
}

/* Unmaps the shares and blocks without holders: shares first, since they hold blocks. A share or
 * block that cannot be unmapped now is left for the next call. */
static void sweep(void) {
    pthread_mutex_lock(&changing);
    struct weft_share *shares = left_shares;
    left_shares = NULL;
    pthread_mutex_unlock(&changing);
    sweep_shares(shares);
    pthread_mutex_lock(&changing);
    struct weft_block *unheld = left_blocks;
    left_blocks = NULL;
    pthread_mutex_unlock(&changing);
    sweep_blocks(unheld);
}

/* --- Blocks ----------------------------------------------------------------------------------- */

/* Overlapping ranges compare equal: an address is looked up as a range of one byte. */
static int compare(const void *a, const void *b) {
    const struct weft_range *left = a, *right = b;
    if (left->at + left->bytes <= right->at)
        return -1;
    return right->at + right->bytes <= left->at;
}

/* Adds the block to the tree; releases it if there is no memory. */
static int enlist(struct weft_block *block) {
    pthread_mutex_lock(&changing);
    bool listed = tsearch(block, &blocks, compare) != NULL;
    if (!listed)
        leave_block(block);
    pthread_mutex_unlock(&changing);
    return listed ? 0 : weft_fail(-ENOMEM, "no memory");
}

/* Returns NULL if this library has no such memory. */
static const struct weft_share_space *share_space_of(shmemx_space_t space) {
    if (space == SHMEMX_SPACE_HOST)
        return &weft_share_host;
    return weft_space_device ? weft_space_device->share : NULL;
}

int weft_block_alloc(struct weft_block **block, shmemx_space_t space, int device, size_t bytes) {
    sweep();
    const struct weft_share_space *of = share_space_of(space);
    if (!of)
        return weft_space_missing();
    struct weft_block *made = calloc(1, of->block_bytes);
    if (!made)
        return weft_fail(-ENOMEM, "no memory");
    made->range.bytes = bytes;
    made->space = of;
    made->device = device;
    made->holders = 1;
    int error = of->alloc(made);
    if (error) {
        free(made);
        return error;
    }
    if ((error = enlist(made)) == 0)
        *block = made;
    return error;
}

/* Removes the block's shares from its list: no attach returns them any more. */
static void unlist_shares(struct weft_block *block) {
    for (struct weft_share *share = block->shares, *next; share; share = next) {
        next = share->next;
        share->listed = false;
        leave_share(share);
    }
    block->shares = NULL;
}

void weft_block_free(struct weft_block *block) {
    if (is_forked())
        return;
    pthread_mutex_lock(&changing);
    tdelete(block, &blocks, compare);
    unlist_shares(block);
    leave_block(block);
    pthread_mutex_unlock(&changing);
    sweep();
}

void weft_block_set_idle(struct weft_block *block) {
    block->idle = true;
}

void *weft_block_at(const struct weft_block *block) {
    return (void *)block->range.at;
}

size_t weft_block_bytes(const struct weft_block *block) {
    return block->range.bytes;
}

shmemx_space_t weft_block_space(const struct weft_block *block) {
    return block->space == &weft_share_host ? SHMEMX_SPACE_HOST : SHMEMX_SPACE_DEVICE;
}

int weft_block_gpu(const struct weft_block *block) {
    return block->device;
}

/* Returns the block that contains the address, or NULL. Called under the lock. */
static struct weft_block *block_find(const void *p) {
    struct weft_range byte = {(uintptr_t)p, 1};
    struct weft_block **found = tfind(&byte, &blocks, compare);
    return found ? *found : NULL;
}

struct weft_block *weft_block_of(const void *p) {
    if (is_forked())
        return NULL;
    pthread_mutex_lock(&changing);
    struct weft_block *block = block_find(p);
    pthread_mutex_unlock(&changing);
    return block;
}

/* --- Attaching -------------------------------------------------------------------------------- */

static struct weft_block_facts facts_of(const struct weft_block *block) {
    struct weft_block_facts facts = {.bytes = block->range.bytes,
                                     .whole_bytes = block->whole_bytes};
    strncpy(facts.space, block->space->name, sizeof facts.space - 1);
    memcpy(facts.gpu, block->gpu, sizeof facts.gpu);
    return facts;
}

/* Fails with the same text on all members, which names the first block that differs. */
static int check_facts(const struct weft_boot_subset *subset, const struct weft_block_facts *all) {
    for (int i = 1; i < subset->count; i++)
        if (memcmp(&all[i], &all[0], offsetof(struct weft_block_facts, gpu)) != 0)
            return weft_fail(-EINVAL,
                             "the block of PE %d has %llu bytes of %s memory and that of PE %d "
                             "%llu of %s memory: pass blocks of the same size and space",
                             subset->pes[i], (unsigned long long)all[i].bytes, all[i].space,
                             subset->pes[0], (unsigned long long)all[0].bytes, all[0].space);
    return 0;
}

static int exchange_blocks(struct weft_share *share, const struct weft_boot_subset *subset,
                           int fd) {
    const struct weft_share_space *space = share->block->space;
    struct weft_block_facts mine = facts_of(share->block), all[subset->count];
    int fds[subset->count];
    struct weft_exchange exchange = {
        .mine = &mine, .bytes = sizeof mine, .all = all, .fds = &fd, .nfds = 1, .all_fds = fds};
    int own = weft_boot_exchange_among(subset, &exchange);
    bool exchanged = own == 0;
    if (exchanged && (own = check_facts(subset, all)) == 0)
        own = space->map(share, all, fds);
    for (int i = 0; i < subset->count && exchanged; i++)
        weft_descriptor_close(fds[i]);
    int error = weft_boot_agree_among(subset, own);
    return error == 0 && space->prove ? space->prove(share, subset) : error;
}

/* `share` is NULL if there was no memory for it: then build reports that to the other members. */
static int build(struct weft_share *share, const struct weft_boot_subset *subset) {
    int fd = -1;
    int own =
        share ? share->block->space->show(share->block, &fd) : weft_fail(-ENOMEM, "no memory");
    int error = weft_boot_agree_among(subset, own);
    if (error == 0)
        error = exchange_blocks(share, subset, fd);
    weft_descriptor_close(fd);
    return error;
}

/* --- Shares ----------------------------------------------------------------------------------- */

static bool is_of(const struct weft_share *share, const struct weft_boot_subset *subset) {
    return share->tag == subset->tag && share->count == subset->count &&
           memcmp(share->pes, subset->pes, (size_t)subset->count * sizeof *subset->pes) == 0;
}

static struct weft_share *share_new(struct weft_block *block,
                                    const struct weft_boot_subset *subset) {
    size_t list = (size_t)subset->count * sizeof *subset->pes, own = block->space->share_bytes;
    struct weft_share *share = calloc(1, own + list);
    if (!share)
        return NULL;
    share->pes = (int *)((char *)share + own);
    share->block = block;
    share->count = subset->count;
    share->tag = subset->tag;
    memcpy(share->pes, subset->pes, list);
    while (share->pes[share->member] != weft_job.pe)
        share->member++;
    return share;
}

/* Called under the lock. Waits if another thread is building the share. */
static struct weft_share *find(const struct weft_block *block,
                               const struct weft_boot_subset *subset) {
    for (;;) {
        struct weft_share *share = block->shares;
        while (share && !is_of(share, subset))
            share = share->next;
        if (!share || share->ready)
            return share;
        pthread_cond_wait(&attached, &changing);
    }
}

/* Returns the block's share for the subset, with one more holder, or NULL after listing `made`,
 * for which other threads then wait. The new share holds the block, so the block outlives the
 * attach. */
static struct weft_share *find_or_list(struct weft_block *block, struct weft_share *made,
                                       const struct weft_boot_subset *subset) {
    pthread_mutex_lock(&changing);
    struct weft_share *known = find(block, subset);
    if (known) {
        known->holders++;
    } else if (made) {
        made->listed = true;
        made->holders = 2;
        made->next = block->shares;
        block->shares = made;
        block->holders++;
    }
    pthread_mutex_unlock(&changing);
    return known;
}

static void unlist(struct weft_share *share) {
    struct weft_share **at = &share->block->shares;
    while (*at != share)
        at = &(*at)->next;
    *at = share->next;
    share->listed = false;
    leave_share(share);
}

/* Marks the share as ready or, after an error, removes it with what was mapped. */
static void conclude(struct weft_share *share, int error) {
    pthread_mutex_lock(&changing);
    share->ready = true;
    if (error && share->listed)
        unlist(share);
    if (error)
        leave_share(share);
    pthread_cond_broadcast(&attached);
    pthread_mutex_unlock(&changing);
}

/* Fails on all members or none: if one PE is near to all, all are near to each other. */
static int check_near(const struct weft_boot_subset *subset) {
    for (int i = 0; i < subset->count; i++)
        if (weft_is_far(subset->pes[i]))
            return weft_fail(-ENOTSUP,
                             "PE %d is far from PE %d: blocks are shared by PEs that are near to "
                             "each other, as those of SHMEM_TEAM_SHARED are",
                             subset->pes[i], weft_job.pe);
    return 0;
}

int weft_share_attach(struct weft_share **share, struct weft_block *block,
                      const struct weft_boot_subset *subset) {
    int error = check_near(subset);
    if (error)
        return error;
    struct weft_boot_subset share_subset = *subset;
    share_subset.tag = weft_hash(subset->tag, "share", 5); /* for this kind of call only */
    struct weft_share *made = share_new(block, &share_subset);
    struct weft_share *known = find_or_list(block, made, &share_subset);
    if (known) {
        free(made);
        *share = known;
        return 0;
    }
    error = build(made, &share_subset);
    if (made)
        conclude(made, error);
    if (error == 0)
        *share = made;
    else
        sweep();
    return error;
}

void weft_share_release(struct weft_share *share) {
    if (is_forked())
        return;
    pthread_mutex_lock(&changing);
    leave_share(share);
    pthread_mutex_unlock(&changing);
    sweep();
}

void *weft_share_at(const struct weft_share *share, int member) {
    if (member < 0 || member >= share->count)
        return NULL;
    void *own = weft_block_at(share->block);
    return member == share->member ? own : weft_window_at(&share->window, own, (uint32_t)member);
}

int weft_share_pe_of(const void *own, const void *p) {
    int pe = -1;
    if (is_forked())
        return pe;
    pthread_mutex_lock(&changing);
    const struct weft_block *block = block_find(own);
    for (struct weft_share *share = block ? block->shares : NULL; share && pe < 0;
         share = share->next) {
        size_t offset;
        uint32_t slot = share->ready ? weft_window_slot_of(&share->window, p, &offset) : UINT32_MAX;
        if (slot < share->window.count)
            pe = share->pes[slot];
    }
    pthread_mutex_unlock(&changing);
    return pe;
}

static bool has_members(const struct weft_share *share, const struct weft_member_list *members,
                        int npes) {
    bool same = share->ready && share->count == npes;
    for (int i = 0; same && i < npes; i++)
        same = share->pes[i] == weft_member_pe(members, i);
    return same;
}

bool weft_share_array(struct weft_array *all, const void *own, size_t bytes,
                      const struct weft_member_list *members, int npes) {
    bool found = false;
    if (is_forked())
        return found;
    pthread_mutex_lock(&changing);
    const struct weft_block *block = block_find(own);
    struct weft_share *share = block ? block->shares : NULL;
    while (share && !has_members(share, members, npes))
        share = share->next;
    if (share && weft_window_holds(&share->window, own, bytes)) {
        *all = weft_window_array(&share->window, own, 0, 1, NULL);
        found = true;
    }
    pthread_mutex_unlock(&changing);
    return found;
}

const struct weft_window *weft_share_window(const struct weft_share *share) {
    return &share->window;
}
