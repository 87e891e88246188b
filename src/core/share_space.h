/* SPDX-License-Identifier: BSD-3-Clause */
/* What blocks and shares are made of, and what the memory of each space does for them: the inside
 * of core/share.h. */
#ifndef WEFT_CORE_SHARE_SPACE_H
#define WEFT_CORE_SHARE_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/window.h"

struct weft_share_space;

struct weft_range {
    uintptr_t at;
    size_t bytes;
};

struct weft_block {
    struct weft_range range; /* as asked for */
    const struct weft_share_space *space;
    struct weft_share *shares; /* those that it gives again: NULL when it is freed */
    unsigned holders;          /* the one who has not freed it; its shares; who attaches it */
    struct weft_segment host;  /* of one slot */
};

struct weft_share {
    struct weft_window window;
    struct weft_block *block;
    struct weft_share *next; /* of the block's */
    unsigned holders;        /* the block is one, while it lists the share */
    bool listed, ready;
    struct weft_segment host;
    int member, count;
    uint64_t tag;
    int pes[];
};

/* All are local. Errors are -errno with text. */
struct weft_share_space {
    const char *name;

    /* Makes zeroed memory for the block's bytes, and says where it is. */
    int (*alloc)(struct weft_block *block, const char *call);
    void (*free)(struct weft_block *block);

    /* A new descriptor of the block's memory, close-on-exec. */
    int (*show)(const struct weft_block *block, int *fd, const char *call);

    /* Maps what the members have shown into a window; the descriptors stay the caller's. */
    int (*map)(struct weft_share *share, const int *fds, const char *call);
    void (*unmap)(struct weft_share *share);
};
extern const struct weft_share_space weft_share_host;

#endif
