/* SPDX-License-Identifier: BSD-3-Clause */
/* Behind each block lies a page that no user sees, with a word for each PE: links are tried there
 * while users work in the blocks already. */
#include "core/device_share.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "core/device_links.h"
#include "core/job.h"
#include "transport/gpu_memory.h"

enum { TRIED_MAX = 1024, TAIL_BYTES = TRIED_MAX * sizeof(uint32_t) };

struct weft_device_block {
    struct weft_gpu_memory memory;
    size_t bytes; /* as asked for */
    struct weft_device_share *shares;
    struct weft_device_block *next;
};

struct weft_device_share {
    struct weft_gpu_window window;
    struct weft_device_block *block; /* NULL: freed */
    struct weft_device_share *next;  /* of the block's */
    unsigned holders;                /* the block is one, while it lives */
    int member, count;
    uint64_t tag;
    int pes[];
};

/* Held for moments: never while others are waited for. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static struct weft_device_block *blocks;

/* --- Left over -------------------------------------------------------------------------------- */

/* Whether anything can be unmapped: nothing is while the GPU works. When the job is over nothing is
 * waited for, and the process is about to end. */
static bool is_over(void) {
    return weft_job.phase == WEFT_JOB_FORKED || !weft_gpu.open ||
           (weft_job.control && weft_job_aborted());
}

/* What belongs to nobody any more and is mapped still. */
static struct {
    struct weft_device_block *blocks;
    struct weft_device_share *shares;
} left_over;

/* Either may be NULL. */
static void leave_over(struct weft_device_block *blocks, struct weft_device_share *shares) {
    pthread_mutex_lock(&changing);
    for (struct weft_device_block *block = blocks, *next; block; block = next) {
        next = block->next;
        block->next = left_over.blocks;
        left_over.blocks = block;
    }
    for (struct weft_device_share *share = shares, *next; share; share = next) {
        next = share->next;
        share->next = left_over.shares;
        left_over.shares = share;
    }
    pthread_mutex_unlock(&changing);
}

static void free_all(struct weft_device_block *blocks, struct weft_device_share *shares,
                     bool unmap) {
    for (struct weft_device_block *block = blocks, *next; block; block = next) {
        next = block->next;
        if (unmap)
            weft_gpu_memory_free(&block->memory);
        free(block);
    }
    for (struct weft_device_share *share = shares, *next; share; share = next) {
        next = share->next;
        if (unmap)
            weft_gpu_window_free(&share->window);
        free(share);
    }
}

/* While a stream is being captured the driver does not wait: what is left over then is for the next
 * call. */
static void clear_away(void) {
    pthread_mutex_lock(&changing);
    struct weft_device_block *old_blocks = left_over.blocks;
    struct weft_device_share *old_shares = left_over.shares;
    left_over.blocks = NULL;
    left_over.shares = NULL;
    pthread_mutex_unlock(&changing);
    if (!old_blocks && !old_shares)
        return;
    if (is_over()) {
        free_all(old_blocks, old_shares, false);
        return;
    }
    struct weft_gpu_scope scope = weft_gpu_enter();
    if (weft_cuda.cuCtxSynchronize() == WEFT_CU_SUCCESS)
        free_all(old_blocks, old_shares, true);
    else
        leave_over(old_blocks, old_shares);
    weft_gpu_leave(scope);
}

/* --- Blocks ----------------------------------------------------------------------------------- */

int weft_device_block_alloc(struct weft_device_block **block, size_t bytes, const char *call) {
    int error = weft_device_begin(call);
    if (error == 0)
        clear_away();
    struct weft_device_block *made = error ? NULL : calloc(1, sizeof *made);
    if (!made || bytes == 0 || bytes > SIZE_MAX / 4)
        error = error ? error : weft_fail(-ENOMEM, "%s: no block of %zu bytes", call, bytes);
    if (error == 0) {
        struct weft_gpu_scope scope = weft_gpu_enter();
        error = weft_gpu_memory_alloc(&made->memory, bytes + TAIL_BYTES, call);
        weft_gpu_leave(scope);
    }
    if (error) {
        free(made);
        return error;
    }
    made->bytes = bytes;
    pthread_mutex_lock(&changing);
    made->next = blocks;
    blocks = made;
    pthread_mutex_unlock(&changing);
    *block = made;
    return 0;
}

static void unlist(struct weft_device_block *block) {
    struct weft_device_block **at = &blocks;
    while (*at != block)
        at = &(*at)->next;
    *at = block->next;
}

/* The shares of a block that goes, without those that somebody still holds. */
static struct weft_device_share *orphans_of(struct weft_device_block *block) {
    struct weft_device_share *orphans = NULL;
    for (struct weft_device_share *share = block->shares, *next; share; share = next) {
        next = share->next;
        share->block = NULL;
        share->next = NULL;
        if (--share->holders > 0)
            continue;
        share->next = orphans;
        orphans = share;
    }
    return orphans;
}

void weft_device_block_free(struct weft_device_block *block) {
    pthread_mutex_lock(&changing);
    unlist(block);
    struct weft_device_share *orphans = orphans_of(block);
    pthread_mutex_unlock(&changing);
    block->next = NULL;
    leave_over(block, orphans);
    clear_away();
}

void *weft_device_block_at(const struct weft_device_block *block) {
    return (void *)block->memory.at;
}

size_t weft_device_block_bytes(const struct weft_device_block *block) {
    return block->bytes;
}

struct weft_device_block *weft_device_block_of(const void *p) {
    pthread_mutex_lock(&changing);
    struct weft_device_block *block = blocks;
    while (block && (uintptr_t)p - block->memory.at >= block->bytes)
        block = block->next;
    pthread_mutex_unlock(&changing);
    return block;
}

/* --- Agreeing --------------------------------------------------------------------------------- */

/* One attach under way. */
struct attach {
    const struct weft_boot_circle *circle;
    struct weft_device_block *block;
    struct weft_device_share *share;
    const char *call;
};

/* Whether all members have come so far: 0, this PE's own error with its text, or another's. */
static int agree(const void *context, int own) {
    const struct attach *attach = context;
    const struct weft_boot_circle *circle = attach->circle;
    int all[circle->count];
    int error = weft_boot_exchange_among(circle, &own, sizeof own, all, NULL, 0, NULL);
    for (int i = 0; i < circle->count && error == 0; i++)
        if (all[i] != 0 && own == 0)
            return weft_fail(all[i], "%s: PE %d could not: %s", attach->call, circle->pes[i],
                             strerror(-all[i]));
    return error ? error : own;
}

/* What members tell each other of their blocks. */
struct facts {
    struct weft_cu_uuid uuid;
    uint64_t bytes, mapped_bytes;
};

static int check_facts(const struct attach *attach, const struct facts *all) {
    const struct facts *mine = &all[attach->share->member];
    for (int i = 0; i < attach->circle->count; i++) {
        int pe = attach->circle->pes[i];
        struct weft_gpu_peer peer = weft_gpu_peer_of(&all[i].uuid);
        if (all[i].bytes != mine->bytes || all[i].mapped_bytes != mine->mapped_bytes)
            return weft_fail(-EINVAL,
                             "%s: the block of PE %d has %llu bytes and that of this PE %llu: give "
                             "blocks of the same size",
                             attach->call, pe, (unsigned long long)all[i].bytes,
                             (unsigned long long)mine->bytes);
        int error = weft_device_links_check(&peer, pe, attach->call);
        if (error)
            return error;
    }
    return 0;
}

/* --- Mapping ---------------------------------------------------------------------------------- */

static int map_members(const struct attach *attach, const int *fds) {
    struct weft_device_share *share = attach->share;
    size_t bytes = attach->block->memory.bytes;
    int error = weft_gpu_window_alloc(&share->window, (uint32_t)share->count,
                                      (uint32_t)share->member, bytes, attach->call);
    if (error)
        return error;
    weft_gpu_window_expect(&share->window, bytes);
    for (int i = 0; i < share->count && error == 0; i++)
        error = weft_gpu_window_attach(&share->window, (uint32_t)i, fds[i], attach->call);
    return error;
}

static int exchange_blocks(const struct attach *attach, int fd) {
    int count = attach->circle->count, *fds = calloc((size_t)count, sizeof *fds);
    struct facts mine = {weft_gpu.uuid, attach->block->bytes, attach->block->memory.bytes};
    struct facts *all = calloc((size_t)count, sizeof *all);
    int error = fds && all ? 0 : weft_fail(-ENOMEM, "%s: no memory", attach->call);
    error = agree(attach, error);
    if (error == 0)
        error = weft_boot_exchange_among(attach->circle, &mine, sizeof mine, all, &fd, 1, fds);
    if (error == 0) {
        int own = check_facts(attach, all);
        own = own ? own : map_members(attach, fds);
        for (int i = 0; i < count; i++)
            close(fds[i]);
        error = agree(attach, own);
    }
    free(all);
    free(fds);
    return error;
}

static int share_blocks(const struct attach *attach) {
    int fd = -1;
    int error =
        agree(attach, weft_gpu_memory_export(attach->block->memory.handle, &fd, attach->call));
    if (error == 0)
        error = exchange_blocks(attach, fd);
    if (fd >= 0)
        close(fd);
    return error;
}

/* --- Trying ----------------------------------------------------------------------------------- */

/* The word of PE `from` in the tail of a member. */
static void *word_of(const void *context, int from, int member) {
    const struct attach *attach = context;
    char *block = weft_device_share_at(attach->share, member);
    return block + attach->block->memory.bytes - TAIL_BYTES + (size_t)from * sizeof(uint32_t);
}

static int try_pairs(const struct attach *attach) {
    struct weft_device_links links = {.pes = attach->circle->pes,
                                      .count = attach->circle->count,
                                      .me = attach->share->member,
                                      .word = word_of,
                                      .agree = agree,
                                      .context = attach,
                                      .call = attach->call};
    return weft_job.npes > TRIED_MAX ? 0 : weft_device_links_try(&links);
}

/* --- Shares ----------------------------------------------------------------------------------- */

static bool is_of(const struct weft_device_share *share, const struct weft_boot_circle *circle) {
    return share->tag == circle->tag && share->count == circle->count &&
           memcmp(share->pes, circle->pes, (size_t)circle->count * sizeof *circle->pes) == 0;
}

static struct weft_device_share *find_share(struct weft_device_block *block,
                                            const struct weft_boot_circle *circle) {
    pthread_mutex_lock(&changing);
    struct weft_device_share *share = block->shares;
    while (share && !is_of(share, circle))
        share = share->next;
    if (share)
        share->holders++;
    pthread_mutex_unlock(&changing);
    return share;
}

static struct weft_device_share *new_share(struct weft_device_block *block,
                                           const struct weft_boot_circle *circle) {
    size_t list = (size_t)circle->count * sizeof *circle->pes;
    struct weft_device_share *share = calloc(1, sizeof *share + list);
    if (!share)
        return NULL;
    share->block = block;
    share->count = circle->count;
    share->tag = circle->tag;
    memcpy(share->pes, circle->pes, list);
    while (share->member < share->count && share->pes[share->member] != weft_job.pe)
        share->member++;
    return share;
}

/* The own addresses are those of the block. */
static void publish(struct weft_device_share *share) {
    struct weft_device_block *block = share->block;
    struct weft_window *window = &share->window.window;
    window->local = block->memory.at;
    window->shift = share->window.base - block->memory.at;
    window->bytes = block->bytes;
    share->holders = 2;
    pthread_mutex_lock(&changing);
    share->next = block->shares;
    block->shares = share;
    pthread_mutex_unlock(&changing);
}

static int build(const struct attach *attach) {
    int error =
        agree(attach, attach->share ? 0 : weft_fail(-ENOMEM, "%s: no memory", attach->call));
    if (error)
        return error;
    struct weft_gpu_scope scope = weft_gpu_enter();
    error = share_blocks(attach);
    if (error == 0)
        error = try_pairs(attach);
    if (error)
        weft_gpu_window_free(&attach->share->window);
    weft_gpu_leave(scope);
    return error;
}

int weft_device_share_attach(struct weft_device_share **share, struct weft_device_block *block,
                             const struct weft_boot_circle *circle, const char *call) {
    struct weft_device_share *known = find_share(block, circle);
    if (known) {
        *share = known;
        return 0;
    }
    struct attach attach = {circle, block, new_share(block, circle), call};
    int error = build(&attach);
    if (error) {
        free(attach.share);
        return error;
    }
    publish(attach.share);
    *share = attach.share;
    return 0;
}

void weft_device_share_release(struct weft_device_share *share) {
    pthread_mutex_lock(&changing);
    bool last = --share->holders == 0;
    pthread_mutex_unlock(&changing);
    if (!last)
        return;
    share->next = NULL;
    leave_over(NULL, share);
    clear_away();
}

void *weft_device_share_at(const struct weft_device_share *share, int member) {
    if (member == share->member && share->block)
        return weft_device_block_at(share->block);
    return (void *)(share->window.base + (size_t)member * share->window.slot_bytes);
}

const struct weft_window *weft_device_share_window(const struct weft_device_share *share) {
    return &share->window.window;
}
