/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks in host memory: each is a segment of one slot with a memfd of its own. All pages are
 * committed when the block is allocated, so that peers with a share of it never get a SIGBUS. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include "base/machine.h"
#include "base/size.h"
#include "core/heap.h"
#include "core/share_space.h"

struct host_block {
    struct weft_block block;
    struct weft_segment segment; /* of one slot */
};

struct host_share {
    struct weft_share share;
    struct weft_segment segment;
};

static struct weft_segment *segment_of(struct weft_block *block) {
    return &((struct host_block *)block)->segment;
}

static struct weft_segment *share_segment(struct weft_share *share) {
    return &((struct host_share *)share)->segment;
}

enum { STEP = 32 << 20, LITTLE = 2 << 20 };

static _Atomic size_t held; /* bytes of all blocks, including those being allocated */

/* Checks whether the machine has `left` more bytes, and a step for each of its other PEs, besides
 * the memory reserved by the heaps. This PE does not know the other PEs' heaps, so it assumes that
 * they are as large as its own. */
static int check_room(const struct weft_block *block, size_t left) {
    const char *limit;
    size_t others = (size_t)weft_boot_npes_here() - 1,
           promised = weft_heap_promised() * (others + 1);
    size_t room = weft_machine_memory_room(LITTLE, atomic_load(&held), &limit);
    room -= promised < room ? promised : room;
    if (left <= room && others * (left < STEP ? left : STEP) <= room - left)
        return 0;
    return weft_fail_bare(
        -ENOMEM,
        "%s of %s: %s more are needed, and the machine has %s (%s, less a reserve, "
        "and %s that the heaps have reserved but not allocated yet)",
        weft_current_call, weft_size(block->range.bytes).text, weft_size(left).text,
        weft_size(room).text, limit, weft_size(promised).text);
}

/* The kernel kills processes when memory runs out, and other PEs may be committing memory, too, so
 * free memory is checked before each step. */
static int commit(struct weft_block *block) {
    struct weft_segment *segment = segment_of(block);
    size_t bytes = segment->slot_bytes, done = 0;
    int error = 0;
    while (done < bytes && error == 0) {
        size_t step = bytes - done < STEP ? bytes - done : STEP;
        error = weft_segment_commit_range(segment, done, step);
        if (error)
            return weft_fail_bare(error, "%s of %s: cannot commit them: %s%s", weft_current_call,
                                  weft_size(block->range.bytes).text, strerror(-error),
                                  weft_remedy(error).text);
        done += step;
        error = done < bytes ? check_room(block, bytes - done) : 0;
    }
    return error;
}

static int make_segment(struct weft_segment *segment, size_t bytes) {
    static const struct weft_slots alone = {.step = 1, .count = 1};
    int error = weft_segment_alloc(segment, "weft-block", &alone, bytes, bytes);
    if (error != -EMFILE)
        return error;
    weft_machine_raise_descriptors();
    return weft_segment_alloc(segment, "weft-block", &alone, bytes, bytes);
}

static int block_make(struct weft_block *block, size_t bytes) {
    struct weft_segment *segment = segment_of(block);
    int error = check_room(block, bytes);
    if (error)
        return error;
    error = make_segment(segment, bytes);
    if (error)
        return weft_fail_bare(error, "%s of %s: cannot make the block (memfd_create, mmap): %s%s",
                              weft_current_call, weft_size(block->range.bytes).text,
                              strerror(-error), weft_remedy(error).text);
    block->range.at = segment->window.local;
    block->whole_bytes = segment->slot_bytes;
    madvise((void *)block->range.at, bytes, MADV_DODUMP);
    if ((error = commit(block)) != 0)
        weft_segment_free(segment);
    return error;
}

static int host_alloc(struct weft_block *block) {
    size_t bytes = weft_page_up(block->range.bytes);
    atomic_fetch_add(&held, bytes);
    int error = block_make(block, bytes);
    if (error)
        atomic_fetch_sub(&held, bytes);
    return error;
}

static int host_free(struct weft_block *block) {
    atomic_fetch_sub(&held, block->whole_bytes);
    weft_segment_free(segment_of(block));
    return 0;
}

static int host_show(struct weft_block *block, int *fd) {
    int own = segment_of(block)->fd;
    if (!weft_descriptor_is_ours(own))
        return weft_fail(-EBADF,
                         "the program has closed descriptor %d, by which other PEs map this block: "
                         "close only descriptors that the program has opened",
                         own);
    *fd = fcntl(own, F_DUPFD_CLOEXEC, 0);
    if (*fd < 0 && errno == EMFILE) {
        weft_machine_raise_descriptors();
        *fd = fcntl(own, F_DUPFD_CLOEXEC, 0);
    }
    return *fd >= 0 ? 0
                    : weft_fail(-errno, "no descriptor for the block: %s%s", strerror(errno),
                                weft_remedy(-errno).text);
}

static int host_map(struct weft_share *share, const struct weft_block_facts *facts,
                    const int *fds) {
    (void)facts;
    const struct weft_segment *own = segment_of(share->block);
    struct weft_segment *segment = share_segment(share);
    struct weft_slots members = {
        .step = 1, .count = (uint32_t)share->count, .mine = (uint32_t)share->member};
    struct weft_backing memory = {
        .local = own->window.local, .bytes = own->slot_bytes, .fd = own->fd};
    int error = weft_segment_alloc_at(segment, &members, &memory);
    if (error == 0)
        error = weft_segment_attach(segment, fds, own->slot_bytes);
    if (error)
        return weft_fail(error, "cannot map %d blocks of %s: %s%s", share->count,
                         weft_size(share->block->range.bytes).text, strerror(-error),
                         weft_remedy(error).text);
    share->window = segment->window;
    share->window.bytes = share->block->range.bytes;
    return 0;
}

static int host_unmap(struct weft_share *share) {
    weft_segment_free(share_segment(share));
    return 0;
}

const struct weft_share_space weft_share_host = {
    .name = "host",
    .block_bytes = sizeof(struct host_block),
    .share_bytes = sizeof(struct host_share),
    .alloc = host_alloc,
    .show = host_show,
    .map = host_map,
    .unmap = host_unmap,
    .free = host_free,
};
