/* SPDX-License-Identifier: BSD-3-Clause */
/* GPU memory that each PE makes for itself and some PEs attach, as PyTorch's symmetric tensors want
 * it: the device heap's malloc is for all PEs together.
 *
 * A block is local: made and freed at any time, without a word to anyone. A share is what a group
 * of PEs has of each other's blocks: one window with a slot for each member. Its members attach
 * together, and drop it each at its own time. What a share has mapped lives as long as the share,
 * whoever frees the block meanwhile. All functions may be called from any thread. */
#ifndef WEFT_CORE_DEVICE_SHARE_H
#define WEFT_CORE_DEVICE_SHARE_H

#include "boot/boot.h"
#include "core/device.h"

struct weft_device_block;
struct weft_device_share;

/* Makes a block of `bytes` of zeroed memory and opens this PE's GPU for it. 0 or -errno with text.
 */
int weft_device_block_alloc(struct weft_device_block **block, size_t bytes, const char *call);

/* The address is gone when this returns, once the GPU has come to the end of its work; but that
 * wait ends a capture which is under way, and then a later call comes to it. Peers that share the
 * block keep what they have mapped, and so does this PE's own slot in shares that are still held.
 */
void weft_device_block_free(struct weft_device_block *block);

void *weft_device_block_at(const struct weft_device_block *block);
size_t weft_device_block_bytes(const struct weft_device_block *block);

/* The live block that p lies in, or NULL. Local, and cheap: it is asked of any pointer. */
struct weft_device_block *weft_device_block_of(const void *p);

/* Each member's block in one window. Collective over the members of the circle, who give blocks of
 * the same size; every pair is tried with data. A second attach of the same block with the same
 * circle returns the same share, without a message, for as long as the block is there: so members
 * have to keep their blocks as long as each other. *share is released as often as it was attached.
 * 0 or -errno with text, the same on all members. */
int weft_device_share_attach(struct weft_device_share **share, struct weft_device_block *block,
                             const struct weft_boot_circle *circle, const char *call);

/* When the last one is gone and the block is freed, the peers' memory is unmapped. Local. */
void weft_device_share_release(struct weft_device_share *share);

/* Where this PE's GPU finds member i's block; its own where the block itself is, while that lives.
 * The own slot of the window is a second mapping of it: one kernel must not use both without a
 * proxy fence. */
void *weft_device_share_at(const struct weft_device_share *share, int member);

/* The window of the formula. Slots are members, in the order of the circle. */
const struct weft_window *weft_device_share_window(const struct weft_device_share *share);

#endif
