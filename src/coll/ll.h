/* SPDX-License-Identifier: BSD-3-Clause */
/* Small collectives by packets (coll/ll.cuh): one kernel each, without a meeting.
 *
 * Blocks of `bytes` are at most weft_ll_bytes_max, and not empty; source and dest are any memory
 * that this member's kernels reach, at any address, and the call may be in place. Channels are
 * those of WEFT_FORM_LL, and of WEFT_FORM_DIRECTED for a broadcast. All members call alike. */
#ifndef WEFT_COLL_LL_H
#define WEFT_COLL_LL_H

#include "base/cuda.h"
#include "transport/gpu_channel.h"
#include "transport/gpu_fold.h"
#include "coll/number.h"

/* Sums of numbers of 32 and 64 bits, and of 16-bit floats, have a kernel each: they are frequent,
 * and sums of 16-bit floats are floats until they are complete. Another kernel has all the rest but
 * products of 16-bit floats and complex numbers. Lists as transport/gpu_fold.h has them. */
/* clang-format off */
#define WEFT_LL_SUMS(Y, X, family)                                                                 \
    Y(X, family, sum, u32, SUM, U32)   Y(X, family, sum, u64, SUM, U64)                            \
    Y(X, family, sum, f32, SUM, FLOAT) Y(X, family, sum, f64, SUM, DOUBLE)                         \
    Y(X, family, sum, bf16, SUM, BF16) Y(X, family, sum, f16, SUM, F16)
#define WEFT_LL_FOLDS(Y, X, family)                                                                \
    WEFT_GPU_FOLDS_AND(Y, X, family) WEFT_GPU_FOLDS_OR(Y, X, family)                               \
    WEFT_GPU_FOLDS_XOR(Y, X, family)                                                               \
    WEFT_GPU_FOLDS_MAX(Y, X, family) WEFT_GPU_FOLDS_MIN(Y, X, family)                              \
    Y(X, family, sum, u8, SUM, U8)     Y(X, family, sum, u16, SUM, U16)                            \
    WEFT_GPU_FOLDS_UNSIGNED(Y, X, family, prod, PROD)                                              \
    Y(X, family, prod, f32, PROD, FLOAT) Y(X, family, prod, f64, PROD, DOUBLE)
/* clang-format on */

/* What a kernel gets: whatever can be computed before it is launched. The units of a member's
 * block, of 8 bytes each, are cut into shares, one for each block of threads. A share is cut into
 * tiles of 2^tile_shift units, which have a thread for each unit and, as far as there are as many,
 * each member. Addresses are those of channel 0 and of even epochs. Shared with kernels. */
struct weft_ll_work {
    const char *source;
    char *dest;
    size_t source_step, dest_step;
    uint64_t *epoch; /* this member's word */
    uint64_t
        *started;    /* of a broadcast: the root's row; elsewhere this member's word at the root */
    char *out;       /* the slot for this member's packets in the inbox of member 0 */
    size_t out_step; /* from a member's inbox to the next one's */
    char *in;        /* the slot of member 0 in this member's inbox */
    uint32_t head_bytes, slot_bytes, half_bytes; /* from a channel's words, a slot, a parity on */
    uint32_t bytes, units;                       /* of a block */
    uint32_t words; /* the units before this one are 8 bytes at aligned addresses, everywhere */
    uint32_t share, tile_shift;
    uint32_t single; /* a share is one tile, which has threads for all members */
    uint32_t zero;   /* is 0, and no compiler knows it */
    int me, n, root, divisor;
    int op, number; /* of a reduction that has no kernel of its own */
};

/* The largest block of these channels. */
size_t weft_ll_bytes_max(const struct weft_gpu_channels *channels);

/* Whether weft_ll_reduce has a kernel for this operation on these numbers. */
bool weft_ll_takes(enum weft_fold_op op, enum weft_number number);

/* Each member's block, or its block for this member, to the place of that member in dest; the own
 * one too. All-gather and all-to-all. */
int weft_ll_exchange(const struct weft_gpu_channels *channels,
                     const struct weft_gpu_collective *task, weft_cu_stream stream);

/* Folds the members' blocks, or their blocks for this member, with the host's bits. All-reduce and
 * reduce-scatter. */
int weft_ll_reduce(const struct weft_gpu_channels *channels, const struct weft_gpu_collective *task,
                   weft_cu_stream stream);

/* The root's block to dest of all members. */
int weft_ll_broadcast(const struct weft_gpu_channels *channels,
                      const struct weft_gpu_collective *task, weft_cu_stream stream);

#endif
