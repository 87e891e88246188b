/* SPDX-License-Identifier: BSD-3-Clause */
/* Large reductions on a stream by one kernel that pushes: each member stores its part of the
 * others' chunks, tile by tile, into a ring in the owner's memory, and folds what comes into its
 * own rings.
 *
 * A reduce-scatter's chunk is the block for a member; an all-reduce's is its share of the array,
 * whose fold its owner stores at all members. */
#ifndef WEFT_COLL_RING_H
#define WEFT_COLL_RING_H

#include "base/cuda.h"
#include "transport/gpu_channel.h"
#include "coll/number.h"
#include "coll/split.h"

enum { WEFT_RING_THREADS = 512 };

/* How a call is cut, the same on all members. Shared with kernels. */
struct weft_ring_shape {
    uint32_t tile_bytes;  /* whole units of 16; a chunk's tiles are dealt to the blocks in turn */
    uint32_t tiles;       /* of a chunk for each block; those behind the chunk's end are empty */
    uint32_t depth;       /* of a ring, in places for a tile */
    uint32_t place_bytes; /* of such a place */
    uint32_t areas;       /* inboxes of so many channels are the rings of a block */
};

/* Where an owner's chunk lies. */
struct weft_ring_chunk {
    size_t from, to; /* bytes behind the members' sources, and behind dest */
    size_t bytes;
};
WEFT_ADDR struct weft_ring_chunk weft_ring_chunk(const struct weft_gpu_collective *task, int n,
                                                 int owner) {
    size_t grain = weft_split_grain(1), begin = weft_split_begin(task->bytes, grain, owner, n);
    size_t end = weft_split_begin(task->bytes, grain, owner + 1, n);
    struct weft_ring_chunk chunk = {begin, begin, end - begin};
    if (task->source_step != 0) {
        chunk.from = (size_t)owner * task->source_step;
        chunk.to = 0;
        chunk.bytes = task->bytes;
    }
    return chunk;
}

/* Whether there is a kernel for this operation on these numbers. */
bool weft_ring_takes(enum weft_fold_op op, enum weft_number number);

/* Folds the members' blocks for this one into dest, or, where source_step is 0, the members' blocks
 * into all dests; with the host's bits. dest may be what it folds of source. Elements lie aligned,
 * and the channels are those of WEFT_FORM_RING. 0 or -errno with text. */
int weft_ring_reduce(const struct weft_gpu_channels *channels,
                     const struct weft_gpu_collective *task, weft_cu_stream stream);

/* The shape that it takes, and a call of another one. */
struct weft_ring_shape weft_ring_shape_of(const struct weft_gpu_channels *channels,
                                          const struct weft_gpu_collective *task, unsigned *blocks,
                                          unsigned *threads);
int weft_ring_reduce_as(const struct weft_gpu_channels *channels,
                        const struct weft_gpu_collective *task, struct weft_ring_shape shape,
                        unsigned blocks, unsigned threads, weft_cu_stream stream);

#endif
