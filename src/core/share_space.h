/* SPDX-License-Identifier: BSD-3-Clause */
/* The structs of blocks and shares, and the operations of each memory space on them: internals of
 * core/share.h. */
#ifndef WEFT_CORE_SHARE_SPACE_H
#define WEFT_CORE_SHARE_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "boot/boot.h"
#include "job/window.h"

struct weft_share_space;

struct weft_range {
    uintptr_t at;
    size_t bytes;
};

/* Each space extends these two structs, which are the first members of its own. */
struct weft_block {
    struct weft_range range; /* as requested */
    const struct weft_share_space *space;
    struct weft_share *shares; /* for further attaches; NULL once the block is freed */
    struct weft_block *next;   /* in the list of blocks without holders */
    unsigned holders;   /* the owner until it frees the block, its shares, and attaches under way */
    size_t whole_bytes; /* of its memory */
    int device; /* the GPU's ordinal; -1 in host memory, or, before alloc, for this PE's own GPU */
    bool idle;  /* the owner says that nothing uses it any more */
    unsigned char gpu[16]; /* the UUID; zeros in host memory */
};

struct weft_share {
    struct weft_window window;
    struct weft_block *block;
    struct weft_share *next; /* in the block's list, or in the list of shares without holders */
    unsigned holders;        /* the block counts as one while it lists the share */
    bool listed, ready;
    int member, count;
    uint64_t tag;
    int *pes; /* stored behind the struct */
};

/* Facts that members send each other about their blocks, besides a descriptor. */
struct weft_block_facts {
    char space[16];
    uint64_t bytes, whole_bytes;
    unsigned char gpu[16];
};

/* Functions return -errno with text on failure. All but `prove` are local. */
struct weft_share_space {
    const char *name;
    size_t block_bytes, share_bytes; /* the sizes of the space's own structs */

    /* Allocates zeroed memory of the block's size and sets its address. */
    int (*alloc)(struct weft_block *block);

    /* Returns in *fd a new descriptor of the block's memory, close-on-exec. */
    int (*show)(struct weft_block *block, int *fd);

    /* Maps the members' memory into a window whose own address is the block's. The caller keeps the
     * descriptors. After a failure, unmap frees what was mapped. */
    int (*map)(struct weft_share *share, const struct weft_block_facts *facts, const int *fds);

    /* May be NULL. Tests the mapped memory with data. Collective over the subset; returns the same
     * result on all members. */
    int (*prove)(struct weft_share *share, const struct weft_boot_subset *subset);

    /* Both return 0, or -EAGAIN if work under way may still need the memory. */
    int (*unmap)(struct weft_share *share);
    int (*free)(struct weft_block *block);
};
extern const struct weft_share_space weft_share_host;

#endif
