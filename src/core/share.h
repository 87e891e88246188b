/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that one PE allocates and some PEs attach, as PyTorch's symmetric tensors need it;
 * allocation from the heaps is collective over all PEs.
 *
 * A block is local: it is allocated and freed at any time, without communication. A share is a
 * group's mapping of its members' blocks: one window with a slot for each member. Members attach
 * together, and each releases the share when it likes. The memory mapped by a share stays mapped as
 * long as the share exists, even if a member frees its block meanwhile, so addresses stay valid.
 * All functions may be called from any thread. Those that release or free may also be called after
 * shmem_finalize. */
#ifndef WEFT_CORE_SHARE_H
#define WEFT_CORE_SHARE_H

#include <stdbool.h>
#include <shmemx.h>
#include "weft/addr.h"
#include "boot/boot.h"
#include "job/member_list.h"

struct weft_block;
struct weft_share;

/* Allocates a block of `bytes` (not 0) of zeroed memory. GPU memory is allocated on this PE's GPU
 * or, if `device` is not negative, on that one, which is opened if necessary. Returns 0 or -errno
 * with text. */
int weft_block_alloc(struct weft_block **block, shmemx_space_t space, int device, size_t bytes);

/* Frees the block: it is not found any more. Its memory is freed when the last share of it is gone,
 * here and at the peers; GPU memory only after the GPU has finished its work. */
void weft_block_free(struct weft_block *block);

/* Promises that nothing uses the block any more, or will. Its memory and that of its shares is then
 * freed without waiting for other work of the GPU. */
void weft_block_set_idle(struct weft_block *block);

void *weft_block_at(const struct weft_block *block);
size_t weft_block_bytes(const struct weft_block *block);
shmemx_space_t weft_block_space(const struct weft_block *block);
int weft_block_gpu(const struct weft_block *block);

/* Returns the block that contains p, or NULL. Local and cheap: it is called for arbitrary
 * pointers. */
struct weft_block *weft_block_of(const void *p);

/* Maps each member's block into one window. Collective over the members of the subset, whose blocks
 * must have the same size and space, and who must be near to each other (-ENOTSUP). Another attach
 * of the same block with the same subset returns the same share, without communication, as long as
 * the block exists; so members must keep their blocks equally long. Each attach needs a release.
 * Returns 0, or the same -errno on all members, with text. */
int weft_share_attach(struct weft_share **share, struct weft_block *block,
                      const struct weft_boot_subset *subset);

/* Releases one attach. The peers' memory is unmapped after the last one, once the block is freed.
 * Local. */
void weft_share_release(struct weft_share *share);

/* Returns the address of member i's block for the host or for this PE's GPU; for this PE itself the
 * block's own address. Returns NULL if there is no such member. */
void *weft_share_at(const struct weft_share *share, int member);

/* Returns the PE whose block contains p, an address in a share of the block that contains `own`; -1
 * if no share of that block contains p or the block was freed. Local. */
int weft_share_pe_of(const void *own, const void *p);

/* Sets *all to [own, own + bytes), which lies in a block, and the same parts of the blocks of
 * these `npes` members. Returns false if this PE has attached no share of the block with exactly
 * these members, in this order. Local. */
bool weft_share_array(struct weft_array *all, const void *own, size_t bytes,
                      const struct weft_member_list *members, int npes);

/* Returns the window for weft/addr.h. Slots are members in the order of the subset. This PE's slot
 * is a second mapping of its block: a kernel must not use both mappings without a proxy fence. */
const struct weft_window *weft_share_window(const struct weft_share *share);

#endif
