/* SPDX-License-Identifier: BSD-3-Clause */
/* Small collectives with packets (coll/ll.cuh): one kernel each, without a meeting of the members.
 *
 * Blocks have at least one byte and at most weft_ll_bytes_max. source and dest may be any memory
 * that this member's kernels can access, at any address, and the call may be in place. `channels`
 * are of WEFT_FORM_LL, or of WEFT_FORM_DIRECTED for a broadcast. All members make the same call. */
#ifndef WEFT_COLL_LL_H
#define WEFT_COLL_LL_H

#include "base/cuda.h"
#include "transport/gpu_channel.h"
#include "transport/gpu_fold.h"
#include "coll/number.h"

/* Sums of 32-bit and 64-bit numbers, and of 16-bit floats, have a kernel each: they are frequent,
 * and sums of 16-bit floats remain floats until they are complete. One more kernel does all other
 * reductions, except products of 16-bit floats and reductions of complex numbers. The lists have
 * the form of transport/gpu_fold.h. */
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

/* The argument of a kernel: all values that can be computed before its launch. The units of a
 * member's block, of 8 bytes each, are split into shares, one for each block of threads. A share is
 * split into tiles of 2^tile_shift units, which have a thread for each unit and, if there are
 * enough threads, for each member. Addresses are for channel 0 and even epochs. Shared with
 * kernels. */
struct weft_ll_work {
    const char *source;
    char *dest;
    size_t source_step, dest_step;
    uint64_t *epoch; /* this member's word */
    /* In a broadcast: on the root its row, elsewhere this member's word at the root. */
    uint64_t *started;
    char *out;       /* the slot for this member's packets in the inbox of member 0 */
    size_t out_step; /* between the members' inboxes */
    char *in;        /* the slot of member 0 in this member's inbox */
    uint32_t head_bytes, slot_bytes, half_bytes; /* between channels' words, slots, parities */
    uint32_t bytes, units;                       /* of a block */
    uint32_t words; /* units before this one are 8 bytes at aligned addresses, in all arrays */
    uint32_t share, tile_shift;
    uint32_t single; /* whether a share is one tile that has threads for all members */
    uint32_t zero;   /* always 0, but unknown to the compiler */
    int me, n, root, divisor;
    int op, number; /* of a reduction without a kernel of its own */
};

/* Returns the size of the largest block of these channels. */
size_t weft_ll_bytes_max(const struct weft_gpu_channels *channels);

/* Returns whether weft_ll_reduce has a kernel for this operation on these numbers. */
bool weft_ll_takes(enum weft_fold_op op, enum weft_number number);

/* All-gather and all-to-all: copies each member's block, or its block for this member, to that
 * member's place in dest, also this member's own. */
int weft_ll_exchange(const struct weft_gpu_channels *channels,
                     const struct weft_gpu_collective *task, weft_cu_stream stream);

/* All-reduce and reduce-scatter: folds the members' blocks, or their blocks for this member, with
 * the bits of the host's folds. */
int weft_ll_reduce(const struct weft_gpu_channels *channels, const struct weft_gpu_collective *task,
                   weft_cu_stream stream);

/* Copies the root's block to dest of all members. */
int weft_ll_broadcast(const struct weft_gpu_channels *channels,
                      const struct weft_gpu_collective *task, weft_cu_stream stream);

#endif
