/* SPDX-License-Identifier: BSD-3-Clause */
/* The task of the kernel that sends blocks of caches, shared with the kernel. */
#ifndef WEFT_FUSED_KV_SHUFFLE_H
#define WEFT_FUSED_KV_SHUFFLE_H

#include "weft/device/team.cuh"

enum {
    WEFT_KV_CACHES_MAX = 64, /* of one kernel */
    WEFT_KV_THREADS = 512    /* of a block */
};

struct weft_kv_task {
    int n, me;
    uint32_t caches, parts; /* of a block, which warps copy one by one */
    size_t blocks, block_bytes, part_bytes;
    size_t count;        /* entries of the tables */
    const int32_t *pair; /* the peer and this member's role */
    const int64_t *from, *to;
    const char *own[WEFT_KV_CACHES_MAX];
    struct weft_array all[WEFT_KV_CACHES_MAX];
};

#endif
