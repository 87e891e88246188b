/* SPDX-License-Identifier: BSD-3-Clause */
/* Links between the GPUs of a group of PEs, tried with data before anybody relies on them: each
 * member writes a word in the memory of every member, and reads what it got, and what it wrote. */
#ifndef WEFT_DEVICE_LINKS_H
#define WEFT_DEVICE_LINKS_H

#include "transport/gpu.h"

/* The group. Both functions are given `context`; agree says whether all members have come so far:
 * 0, this PE's own error with its text, or that of another. */
struct weft_device_links {
    const struct weft_gpu *gpu; /* who tries */
    const int *pes;             /* of members; NULL: member i is PE i */
    int count, me;
    bool staged; /* members are PEs of WORLD, and may be staged */
    /* The word of PE `from` in the memory of a member, 4 bytes, as this PE's GPU finds it. */
    void *(*word)(const void *context, int from, int member);
    int (*agree)(const void *context, int own);
    const void *context;
};

/* Collective over the group. 0 or -errno with text, the same on all members. */
int weft_device_links_try(const struct weft_device_links *links);

/* Whether a GPU of this PE can map the memory of pe's: 0 or -ENOTSUP with text. */
int weft_device_links_check(const struct weft_gpu *gpu, const struct weft_gpu_peer *peer, int pe);

/* Finds out by trying which GPUs that are hidden here this PE's GPU has atomics on. Collective over
 * WORLD, with its words 0, as they are again behind it. */
int weft_device_try_atomics(void);

#endif
