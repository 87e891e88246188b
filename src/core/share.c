/* SPDX-License-Identifier: BSD-3-Clause */
/* The books: which blocks there are, which shares each has, who holds what. And how members attach:
 * all are ready; they show each other their blocks; all have mapped them. */
#include "core/share.h"
#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/hash.h"
#include "base/log.h"
#include "core/job.h"
#include "core/share_space.h"

/* Held for moments: never while other PEs are waited for. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t attached = PTHREAD_COND_INITIALIZER;

static void *blocks; /* a tree (tsearch) of ranges that do not overlap; each begins its block */

/* In a forked child nothing of this is there, and the lock may be another thread's for ever. */
static bool is_forked(void) {
    return weft_job.phase == WEFT_JOB_FORKED;
}

/* --- Blocks ----------------------------------------------------------------------------------- */

/* Ranges that overlap are equal: an address is looked for as a range of one byte. */
static int compare(const void *a, const void *b) {
    const struct weft_range *left = a, *right = b;
    if (left->at + left->bytes <= right->at)
        return -1;
    return right->at + right->bytes <= left->at;
}

static const struct weft_share_space *space_of(shmemx_space_t space) {
    return space == SHMEMX_SPACE_HOST ? &weft_share_host : NULL;
}

static int enlist(struct weft_block *block, const char *call) {
    pthread_mutex_lock(&changing);
    bool listed = tsearch(block, &blocks, compare) != NULL;
    pthread_mutex_unlock(&changing);
    return listed ? 0 : weft_fail(-ENOMEM, "%s: no memory", call);
}

static int block_open(struct weft_block *block, const char *call) {
    int error = block->space->alloc(block, call);
    if (error == 0 && (error = enlist(block, call)) != 0)
        block->space->free(block);
    return error;
}

int weft_block_alloc(struct weft_block **block, shmemx_space_t space, size_t bytes,
                     const char *call) {
    struct weft_block *made = calloc(1, sizeof *made);
    if (!made)
        return weft_fail(-ENOMEM, "%s: no memory", call);
    made->range.bytes = bytes;
    made->space = space_of(space);
    made->holders = 1;
    int error = made->space ? block_open(made, call)
                            : weft_fail(-ENOTSUP, "%s: no blocks in GPU memory yet", call);
    if (error)
        free(made);
    else
        *block = made;
    return error;
}

static void let_go(struct weft_block *block) {
    pthread_mutex_lock(&changing);
    bool last = --block->holders == 0;
    pthread_mutex_unlock(&changing);
    if (!last)
        return;
    block->space->free(block);
    free(block);
}

static void drop(struct weft_share *share) {
    share->block->space->unmap(share);
    let_go(share->block);
    free(share);
}

/* Takes its shares from a block that goes; a list of those that nobody holds any more. */
static struct weft_share *unlist_shares(struct weft_block *block) {
    struct weft_share *orphans = NULL;
    for (struct weft_share *share = block->shares, *next; share; share = next) {
        next = share->next;
        share->listed = false;
        if (--share->holders > 0)
            continue;
        share->next = orphans;
        orphans = share;
    }
    block->shares = NULL;
    return orphans;
}

void weft_block_free(struct weft_block *block) {
    if (is_forked())
        return;
    pthread_mutex_lock(&changing);
    tdelete(block, &blocks, compare);
    struct weft_share *orphans = unlist_shares(block);
    pthread_mutex_unlock(&changing);
    for (struct weft_share *next; orphans; orphans = next) {
        next = orphans->next;
        drop(orphans);
    }
    let_go(block);
}

void *weft_block_at(const struct weft_block *block) {
    return (void *)block->range.at;
}

size_t weft_block_bytes(const struct weft_block *block) {
    return block->range.bytes;
}

struct weft_block *weft_block_of(const void *p) {
    struct weft_range byte = {(uintptr_t)p, 1};
    if (is_forked())
        return NULL;
    pthread_mutex_lock(&changing);
    struct weft_block **found = tfind(&byte, &blocks, compare);
    struct weft_block *block = found ? *found : NULL;
    pthread_mutex_unlock(&changing);
    return block;
}

/* --- Attaching -------------------------------------------------------------------------------- */

/* What members tell each other of their blocks. */
struct facts {
    uint64_t bytes;
    char space[16];
};

/* The same on all members: whose block differs from that of the first one. */
static int check_facts(const struct weft_boot_circle *circle, const struct facts *all,
                       const char *call) {
    for (int i = 1; i < circle->count; i++)
        if (memcmp(&all[i], &all[0], sizeof *all) != 0)
            return weft_fail(-EINVAL,
                             "%s: the block of PE %d has %llu bytes of %s memory and that of PE %d "
                             "%llu of %s memory: give blocks of the same size and space",
                             call, circle->pes[i], (unsigned long long)all[i].bytes, all[i].space,
                             circle->pes[0], (unsigned long long)all[0].bytes, all[0].space);
    return 0;
}

static int map_members(struct weft_share *share, const struct weft_boot_circle *circle,
                       const int *fds, const char *call) {
    const struct weft_share_space *space = share->block->space;
    int own = space->map(share, fds, call), error = weft_boot_agree_among(circle, own, call);
    if (error && own == 0)
        space->unmap(share);
    return error;
}

static int exchange_blocks(struct weft_share *share, const struct weft_boot_circle *circle, int fd,
                           const char *call) {
    struct facts mine = {.bytes = share->block->range.bytes}, all[circle->count];
    int fds[circle->count];
    strncpy(mine.space, share->block->space->name, sizeof mine.space - 1);
    int error = weft_boot_exchange_among(circle, &mine, sizeof mine, all, &fd, 1, fds);
    if (error)
        return error;
    error = check_facts(circle, all, call);
    error = error ? error : map_members(share, circle, fds, call);
    for (int i = 0; i < circle->count; i++)
        close(fds[i]);
    return error;
}

/* `share` is NULL where there was no memory for it: then the others hear of it. */
static int build(struct weft_share *share, const struct weft_boot_circle *circle,
                 const char *call) {
    int fd = -1;
    int own = share ? share->block->space->show(share->block, &fd, call)
                    : weft_fail(-ENOMEM, "%s: no memory", call);
    int error = weft_boot_agree_among(circle, own, call);
    if (error == 0)
        error = exchange_blocks(share, circle, fd, call);
    if (fd >= 0)
        close(fd);
    return error;
}

/* --- Shares ----------------------------------------------------------------------------------- */

static bool is_of(const struct weft_share *share, const struct weft_boot_circle *circle) {
    return share->tag == circle->tag && share->count == circle->count &&
           memcmp(share->pes, circle->pes, (size_t)circle->count * sizeof *circle->pes) == 0;
}

static struct weft_share *share_new(struct weft_block *block,
                                    const struct weft_boot_circle *circle) {
    size_t list = (size_t)circle->count * sizeof *circle->pes;
    struct weft_share *share = calloc(1, sizeof *share + list);
    if (!share)
        return NULL;
    share->block = block;
    share->count = circle->count;
    share->tag = circle->tag;
    memcpy(share->pes, circle->pes, list);
    while (share->pes[share->member] != weft_job.pe)
        share->member++;
    return share;
}

/* Under the lock. What another thread builds is waited for. */
static struct weft_share *find(const struct weft_block *block,
                               const struct weft_boot_circle *circle) {
    for (;;) {
        struct weft_share *share = block->shares;
        while (share && !is_of(share, circle))
            share = share->next;
        if (!share || share->ready)
            return share;
        pthread_cond_wait(&attached, &changing);
    }
}

/* The share that the block has already, held once more; NULL, and `made` is listed, for others to
 * wait for. It holds the block, which so outlives the attach. */
static struct weft_share *find_or_list(struct weft_block *block, struct weft_share *made,
                                       const struct weft_boot_circle *circle) {
    pthread_mutex_lock(&changing);
    struct weft_share *known = find(block, circle);
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
}

static void conclude(struct weft_share *share, int error) {
    pthread_mutex_lock(&changing);
    share->ready = true;
    if (error && share->listed)
        unlist(share);
    pthread_cond_broadcast(&attached);
    pthread_mutex_unlock(&changing);
    if (error) {
        let_go(share->block);
        free(share);
    }
}

int weft_share_attach(struct weft_share **share, struct weft_block *block,
                      const struct weft_boot_circle *circle, const char *call) {
    struct weft_boot_circle shares_circle = *circle;
    shares_circle.tag = weft_hash(circle->tag, "share", 5); /* no call of another kind is met */
    struct weft_share *made = share_new(block, &shares_circle);
    struct weft_share *known = find_or_list(block, made, &shares_circle);
    if (known) {
        free(made);
        *share = known;
        return 0;
    }
    int error = build(made, &shares_circle, call);
    if (made)
        conclude(made, error);
    if (error == 0)
        *share = made;
    return error;
}

void weft_share_release(struct weft_share *share) {
    if (is_forked())
        return;
    pthread_mutex_lock(&changing);
    bool last = --share->holders == 0;
    pthread_mutex_unlock(&changing);
    if (last)
        drop(share);
}

void *weft_share_at(const struct weft_share *share, int member) {
    if (member < 0 || member >= share->count)
        return NULL;
    void *own = weft_block_at(share->block);
    return member == share->member ? own : weft_window_at(&share->window, own, (uint32_t)member);
}

const struct weft_window *weft_share_window(const struct weft_share *share) {
    return &share->window;
}
