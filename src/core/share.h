/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that one PE makes and some PEs attach, as PyTorch's symmetric tensors want it: the heaps'
 * malloc is for all PEs together.
 *
 * A block is local: made and freed at any time, without a word to anyone. A share is what a group
 * of PEs has of each other's blocks: one window with a slot for each member. Its members attach
 * together, and drop it each at its own time. What a share has mapped lives as long as the share,
 * whoever frees the block meanwhile, and an address keeps its meaning as long. All functions may be
 * called from any thread; those that end something, behind shmem_finalize, too. */
#ifndef WEFT_CORE_SHARE_H
#define WEFT_CORE_SHARE_H

#include <shmemx.h>
#include "weft/addr.h"
#include "boot/boot.h"

struct weft_block;
struct weft_share;

/* Makes a block of `bytes` (not 0) of zeroed memory. One of a device lies on this PE's own, or, if
 * `device` is not negative, on that one; it is opened if need be. 0 or -errno with text. */
int weft_block_alloc(struct weft_block **block, shmemx_space_t space, int device, size_t bytes);

/* The block is not found any more. Its memory goes when no share of it is left, here and at the
 * peers; a GPU's once the GPU has come to the end of its work. */
void weft_block_free(struct weft_block *block);

/* The caller knows that nothing uses the block, nor will: its memory goes, and that of its shares,
 * without a wait for whatever else a GPU does. */
void weft_block_set_idle(struct weft_block *block);

void *weft_block_at(const struct weft_block *block);
size_t weft_block_bytes(const struct weft_block *block);
shmemx_space_t weft_block_space(const struct weft_block *block);
int weft_block_gpu(const struct weft_block *block);

/* The block that p lies in, or NULL. Local, and cheap: it is asked of any pointer. */
struct weft_block *weft_block_of(const void *p);

/* Each member's block in one window. Collective over the members of the subset, who give blocks of
 * the same size and space, and are near to each other (-ENOTSUP). A second attach of the same block
 * with the same subset returns the same share, without a message, for as long as the block is
 * there: so members have to keep their blocks as long as each other. *share is released as often as
 * it was attached. 0 or the same -errno on all members, with text. */
int weft_share_attach(struct weft_share **share, struct weft_block *block,
                      const struct weft_boot_subset *subset);

/* When the last holder is gone, and the block is freed, the peers' memory is unmapped. Local. */
void weft_share_release(struct weft_share *share);

/* Where member i's block is found from here, by the host or by this PE's GPU; the own one where the
 * block itself is. NULL: there is no such member. */
void *weft_share_at(const struct weft_share *share, int member);

/* The PE whose block holds p, as a share of the block around `own` maps it; -1 if no share of that
 * block does, or the block has been freed. Local. */
int weft_share_pe_of(const void *own, const void *p);

/* The window of the formula. Slots are members, in the order of the subset. The own slot is a
 * second mapping of the own block: one kernel must not use both without a proxy fence. */
const struct weft_window *weft_share_window(const struct weft_share *share);

#endif
