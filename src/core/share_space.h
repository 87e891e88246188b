/* SPDX-License-Identifier: BSD-3-Clause */
/* What blocks and shares are made of, and what the memory of each space does for them: the inside
 * of core/share.h. */
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

/* Each space has its own of these two, which begins with it. */
struct weft_block {
    struct weft_range range; /* as asked for */
    const struct weft_share_space *space;
    struct weft_share *shares; /* those that it gives again: NULL when it is freed */
    struct weft_block *next;   /* of those that nobody holds any more */
    unsigned holders;          /* the one who has not freed it; its shares; who attaches it */
    size_t whole_bytes;        /* of its memory */
    int device;                /* the GPU's ordinal; -1: this PE's own until it is made, or none */
    bool idle;                 /* nothing uses it any more */
    unsigned char gpu[16];     /* the UUID; 0 in memory of the host */
};

struct weft_share {
    struct weft_window window;
    struct weft_block *block;
    struct weft_share *next; /* of the block's, or of those that nobody holds any more */
    unsigned holders;        /* the block is one, while it lists the share */
    bool listed, ready;
    int member, count;
    uint64_t tag;
    int *pes; /* behind it */
};

/* What members tell each other of their blocks, besides a descriptor. */
struct weft_block_facts {
    char space[16];
    uint64_t bytes, whole_bytes;
    unsigned char gpu[16];
};

/* Errors are -errno with text. All but `prove` are local. */
struct weft_share_space {
    const char *name;
    size_t block_bytes, share_bytes; /* of its own struct */

    /* Makes zeroed memory for the block's bytes, and says where it is. */
    int (*alloc)(struct weft_block *block);

    /* A new descriptor of the block's memory, close-on-exec. */
    int (*show)(struct weft_block *block, int *fd);

    /* Maps what the members have shown into a window, whose own addresses are the block's; the
     * descriptors stay the caller's. What a failure leaves is for unmap. */
    int (*map)(struct weft_share *share, const struct weft_block_facts *facts, const int *fds);

    /* May be NULL. Tries what has been mapped with data: collective over the subset, the same
     * result on all. */
    int (*prove)(struct weft_share *share, const struct weft_boot_subset *subset);

    /* 0; -EAGAIN: not now, because work is under way that may need it. */
    int (*unmap)(struct weft_share *share);
    int (*free)(struct weft_block *block);
};
extern const struct weft_share_space weft_share_host;

#endif
