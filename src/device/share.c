/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks in GPU memory. After each follows a page that users never see, with a word for each PE:
 * links are tested there while users already work in the block.
 *
 * Memory is unmapped only when the GPU is idle, unless no work can be using it: a program's kernels
 * may access any block without notice. A block holds a reference to its GPU's context, so it
 * remains valid, and can be freed, after the end of the job. */
#include <errno.h>
#include <string.h>
#include "core/share.h"
#include "core/share_space.h"
#include "device/device.h"

enum { TRIED_MAX = 1024, TAIL_BYTES = TRIED_MAX * sizeof(uint32_t) };

struct device_block {
    struct weft_block block;
    struct weft_gpu *gpu; /* open as long as the block, also after shmem_finalize */
    struct weft_gpu_memory memory;
};

struct device_share {
    struct weft_share share;
    struct weft_gpu_window window;
};

static struct device_block *block_own(struct weft_block *block) {
    return (struct device_block *)block;
}

static struct weft_gpu_window *share_window(struct weft_share *share) {
    return &((struct device_share *)share)->window;
}

/* --- Blocks ----------------------------------------------------------------------------------- */

static int device_alloc(struct weft_block *block) {
    struct device_block *own = block_own(block);
    int error = weft_device_gpu_open(&own->gpu, block->device);
    if (error)
        return error;
    struct weft_gpu_scope scope = weft_gpu_enter(own->gpu);
    error = weft_gpu_memory_alloc(&own->memory, own->gpu, block->range.bytes + TAIL_BYTES);
    weft_gpu_leave(scope);
    block->range.at = own->memory.at;
    block->whole_bytes = own->memory.bytes;
    block->device = own->gpu->ordinal;
    memcpy(block->gpu, &own->gpu->uuid, sizeof block->gpu);
    if (error)
        weft_gpu_close(own->gpu);
    return error;
}

/* The block may have been made in an earlier job. */
static int device_show(struct weft_block *block, int *fd) {
    const struct device_block *own = block_own(block);
    int error = weft_device_gpu_use(own->gpu->ordinal);
    if (error)
        return error;
    struct weft_gpu_scope scope = weft_gpu_enter(own->gpu);
    error = weft_gpu_memory_export(own->memory.handle, fd);
    weft_gpu_leave(scope);
    return error;
}

/* Returns whether the job has ended for this PE: then nothing is waited for, because the process is
 * about to end. */
static bool job_is_over(void) {
    return weft_job.control && weft_job_aborted();
}

/* Waits for the GPU unless the block is marked idle. Returns false during stream capture, when the
 * driver does not wait. */
static bool block_is_idle(const struct weft_block *block) {
    return block->idle || weft_cuda.cuCtxSynchronize() == WEFT_CU_SUCCESS;
}

static int device_free(struct weft_block *block) {
    struct device_block *own = block_own(block);
    if (job_is_over())
        return 0;
    struct weft_gpu_scope scope = weft_gpu_enter(own->gpu);
    bool idle = block_is_idle(block);
    if (idle)
        weft_gpu_memory_free(&own->memory);
    weft_gpu_leave(scope);
    if (idle)
        weft_gpu_close(own->gpu);
    return idle ? 0 : -EAGAIN;
}

/* --- Shares ----------------------------------------------------------------------------------- */

static int access_check(const struct weft_share *share, const struct weft_block_facts *facts) {
    const struct device_block *own = block_own(share->block);
    int error = 0;
    for (int i = 0; i < share->count && error == 0; i++) {
        struct weft_cu_uuid uuid;
        memcpy(&uuid, facts[i].gpu, sizeof uuid);
        struct weft_gpu_peer peer = weft_gpu_peer_of(own->gpu, &uuid);
        error = weft_device_links_check(own->gpu, &peer, share->pes[i]);
    }
    return error;
}

static int slots_map(struct weft_share *share, const int *fds) {
    struct weft_gpu_window *window = share_window(share);
    size_t bytes = share->block->whole_bytes;
    *window = (struct weft_gpu_window){.gpu = block_own(share->block)->gpu,
                                       .mine = (uint32_t)share->member};
    int error = weft_gpu_window_alloc(window, (uint32_t)share->count, bytes);
    if (error)
        return error;
    weft_gpu_window_expect(window, bytes);
    for (int i = 0; i < share->count && error == 0; i++)
        error = weft_gpu_window_attach(window, (uint32_t)i, fds[i], NULL);
    return error;
}

static int device_map(struct weft_share *share, const struct weft_block_facts *facts,
                      const int *fds) {
    int error = access_check(share, facts);
    if (error)
        return error;
    struct weft_gpu_window *window = share_window(share);
    struct weft_gpu_scope scope = weft_gpu_enter(block_own(share->block)->gpu);
    error = slots_map(share, fds);
    weft_gpu_leave(scope);
    share->window = weft_window_make(weft_window_base(&window->window), window->window.stride,
                                     window->window.count, share->block->range.at);
    share->window.bytes = share->block->range.bytes;
    return error;
}

static int device_unmap(struct weft_share *share) {
    if (job_is_over())
        return 0;
    struct weft_gpu_scope scope = weft_gpu_enter(block_own(share->block)->gpu);
    bool idle = block_is_idle(share->block);
    if (idle)
        weft_gpu_window_free(share_window(share));
    weft_gpu_leave(scope);
    return idle ? 0 : -EAGAIN;
}

/* --- Testing links ---------------------------------------------------------------------------- */

/* The context of a test. */
struct trial {
    const struct weft_share *share;
    const struct weft_boot_subset *subset;
};

/* Returns the word of PE `from` after the block of a member. */
static void *trial_word(const void *context, int from, int member) {
    const struct trial *trial = context;
    char *block = weft_share_at(trial->share, member);
    size_t tail = trial->share->block->whole_bytes - TAIL_BYTES;
    return block + tail + (size_t)from * sizeof(uint32_t);
}

static int trial_agree(const void *context, int own) {
    const struct trial *trial = context;
    return weft_boot_agree_among(trial->subset, own);
}

static int device_prove(struct weft_share *share, const struct weft_boot_subset *subset) {
    struct trial trial = {share, subset};
    const struct weft_gpu *gpu = block_own(share->block)->gpu;
    struct weft_device_links links = {.gpu = gpu,
                                      .pes = subset->pes,
                                      .count = subset->count,
                                      .me = share->member,
                                      .word = trial_word,
                                      .agree = trial_agree,
                                      .context = &trial};
    if (weft_job.npes > TRIED_MAX)
        return 0;
    struct weft_gpu_scope scope = weft_gpu_enter(gpu);
    int error = weft_device_links_try(&links);
    weft_gpu_leave(scope);
    return error;
}

const struct weft_share_space weft_device_share = {
    .name = "device",
    .block_bytes = sizeof(struct device_block),
    .share_bytes = sizeof(struct device_share),
    .alloc = device_alloc,
    .show = device_show,
    .map = device_map,
    .prove = device_prove,
    .unmap = device_unmap,
    .free = device_free,
};
