/* SPDX-License-Identifier: BSD-3-Clause */
/* Weft's tensor operators: collectives and matmuls whose communication hides behind computation.
 *
 * Contract, the same for every call:
 *  - Collective over the team: every member calls, in the same order. Calls on different teams are
 *    independent. Buffers may be reused call after call without any synchronisation by the caller.
 *  - Inputs and outputs may be any memory of the process. Symmetric inputs (shmem_malloc, statics)
 *    are read in place by the peers; others are copied once into the team's workspace.
 *  - On return (host) the outputs are complete and the inputs may be overwritten: no peer reads
 *    them any more. Inputs and outputs must not overlap unless a call says so.
 *  - Result: 0, or a negative errno with text in weft_last_error(). A wrong argument on one member
 *    gives -EINVAL on every member, missing memory -ENOMEM and a missing matmul library -ENOTSUP,
 *    before any output is written. Only a team handle that is none is reported to its caller alone:
 *    nobody knows whom else to tell. -EIO: another member failed on the way.
 *  - With a stream of CUDA's the call enqueues its work and returns; graphs can capture it. There
 *    are all-reduce, reduce-scatter, all-gather, broadcast and all-to-all; the others say -ENOTSUP.
 *    dest is symmetric, and so is what is reduced, in memory of GPUs or of the host; other sources
 *    are any that CUDA copies. Where `weft info` says packets or marked words, by size, dest and
 *    what is reduced may be any memory of this PE's GPU, each member its own. What is wrong then is
 * an error of this member alone, which has enqueued nothing, and the others wait. All members pass
 * streams, or none does. Calls of a team run in the order in which they are made, also on different
 * streams; what a capture has of them the program orders, within it and against other calls.
 *  - Reductions run in PE order with float accumulation for 16-bit types: the same bits on every
 *    PE and in every run. */
#ifndef WEFT_H
#define WEFT_H

#include <stddef.h>
#include <stdint.h>
#include <shmem.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Every type can be moved; one that is not here moves as the unsigned integer of its size.
 * Multiplied are F32, F64, BF16, F16, and with scales F8E4M3 and F8E5M2. */
typedef enum weft_dtype {
    WEFT_F32 = 1,
    WEFT_F64 = 2,
    WEFT_BF16 = 3,
    WEFT_F16 = 4,
    WEFT_F8E4M3 = 5, /* sign, 4 bits of exponent, 3 of mantissa; no infinities ("e4m3fn") */
    WEFT_F8E5M2 = 6, /* the upper half of an F16 */
    WEFT_I8 = 7,
    WEFT_I16 = 8,
    WEFT_I32 = 9,
    WEFT_I64 = 10,
    WEFT_U8 = 11,
    WEFT_U16 = 12,
    WEFT_U32 = 13,
    WEFT_U64 = 14,
    WEFT_BOOL = 15, /* a byte, 0 or 1 */
    WEFT_C64 = 16,  /* complex: two F32 */
    WEFT_C128 = 17, /* complex: two F64 */
} weft_dtype;

/* F32, F64, BF16 and F16 have all of them; integers all but AVG, and wrap around; complex numbers
 * SUM, AVG and PROD; for BOOL, SUM and MAX are "or", PROD and MIN "and"; F8 types have none. */
typedef enum weft_op {
    WEFT_SUM = 1,
    WEFT_AVG = 2, /* the sum divided by the team's size */
    WEFT_MAX = 3,
    WEFT_MIN = 4,
    WEFT_PROD = 5,
} weft_op;

/* Row-major: element (i, j) is at data + (i * ld + j) elements; ld >= cols, ld counted in elements.
 * A matrix of zero rows or columns may have NULL data. */
typedef struct weft_matrix {
    void *data;
    size_t rows, cols, ld;
    weft_dtype dtype;
} weft_matrix;

/* A cudaStream_t or CUstream; NULL is CUDA's default stream. WEFT_STREAM_HOST is the calling
 * thread. */
typedef struct weft_stream_handle *weft_stream;
#define WEFT_STREAM_HOST ((weft_stream)-1)

/* Text of the calling thread's last failed weft_ call; "" when there was none. Never NULL. */
const char *weft_last_error(void);

/* Bytes of one element; 0 for an unknown type. */
size_t weft_dtype_bytes(weft_dtype dtype);

/* dest[i] = op over members of their source[i]. dest == source is allowed. */
int weft_all_reduce(shmem_team_t team, void *dest, const void *source, size_t nelems,
                    weft_dtype dtype, weft_op op, weft_stream stream);

/* dest[r * nelems + i] = source[i] of team member r; dest holds n_pes * nelems elements.
 * source may be this member's own part of dest. */
int weft_all_gather(shmem_team_t team, void *dest, const void *source, size_t nelems,
                    weft_dtype dtype, weft_stream stream);

/* dest[i] = op over members of their source[me * nelems + i]; source holds n_pes * nelems. */
int weft_reduce_scatter(shmem_team_t team, void *dest, const void *source, size_t nelems,
                        weft_dtype dtype, weft_op op, weft_stream stream);

/* dest[i] = source[i] of team member `root`, on every member. Only root's source is read; elsewhere
 * it may be NULL. dest == source is allowed. */
int weft_broadcast(shmem_team_t team, void *dest, const void *source, size_t nelems,
                   weft_dtype dtype, int root, weft_stream stream);

/* dest[r * nelems + i] = source[me * nelems + i] of team member r. Both hold n_pes * nelems. */
int weft_all_to_all(shmem_team_t team, void *dest, const void *source, size_t nelems,
                    weft_dtype dtype, weft_stream stream);

/* Any number of elements from any member to any other, in nparts parts each; nparts is 1 for what
 * MPI_Alltoallv does, and the same on all members. Part k for (or of) member r is entry
 * r * nparts + k of the four arrays, which have n_pes * nparts entries and count in elements:
 *   to r:    source_nelems[] elements, which begin at source[source_offsets[]]
 *   from r:  dest_nelems[] elements, which go to dest[dest_offsets[]] and what follows
 * Offsets that are NULL say that the parts lie one behind the other in the order of the entries.
 * dest_nelems[r * nparts + k] must be what r's source_nelems[me * nparts + k] is; if one is not,
 * on any member, that is -EINVAL on all. Parts of dest must not overlap, parts of source may. */
int weft_all_to_allv(shmem_team_t team, void *dest, const size_t *dest_nelems,
                     const size_t *dest_offsets, const void *source, const size_t *source_nelems,
                     const size_t *source_offsets, size_t nparts, weft_dtype dtype,
                     weft_stream stream);

/* c[j] = A x b[j] for j < nb, where A is the members' a_shards, stacked by rows in team order.
 * a_shard: rows_me x K; members may have different numbers of rows, also none.
 * b[j]: K x N_j, any N_j, each member its own. c[j]: (sum of rows) x N_j.
 * a_full: NULL, or (sum of rows) x K that receives A. All of one dtype; K the same on all members.
 * A shard is multiplied where it lies as soon as its owner has arrived: own first, then rank+1, ...
 */
int weft_all_gather_matmul(shmem_team_t team, const weft_matrix *a_shard, const weft_matrix *b,
                           size_t nb, weft_matrix *c, weft_matrix *a_full, weft_stream stream);

/* The same with 8-bit factors, multiplied and added in F32, and scales:
 *     c[j] = (A x b[j]) * scale of A * scale of b[j] + bias[j]
 * a_shard, b[j]: WEFT_F8E4M3 or WEFT_F8E5M2. c[j]: WEFT_F32, WEFT_BF16 or WEFT_F16, each its own.
 * a_scale, F32, is about this member's shard: 1 x 1, or one for each row, rows_me x 1.
 * b_scale[j], F32: 1 x 1, or one for each column, 1 x N_j.
 * bias: NULL, or nb matrices 1 x N_j of F32, BF16 or F16; one that has no columns is none.
 * a_full receives A as it is, without scales. */
int weft_all_gather_scaled_matmul(shmem_team_t team, const weft_matrix *a_shard,
                                  const weft_matrix *a_scale, const weft_matrix *b,
                                  const weft_matrix *b_scale, size_t nb, const weft_matrix *bias,
                                  weft_matrix *c, weft_matrix *a_full, weft_stream stream);

/* c_shard = rows of (op over members of a x b) that belong to this member, op WEFT_SUM or WEFT_AVG.
 * a: M x K_me, b: K_me x N; M and N the same on all members, K_me each member its own.
 * c_shard: rows_me x N, where the members' rows add up to M in team order.
 * The peers' chunks are produced first, rank+1, rank+2, ..., and this member's own last, in turns
 * of some rows of each; chunks so small that cutting the product costs more than overlap saves are
 * made in one product. */
int weft_matmul_reduce_scatter(shmem_team_t team, const weft_matrix *a, const weft_matrix *b,
                               weft_op op, weft_matrix *c_shard, weft_stream stream);

/* The same with 8-bit factors, and scales and bias as above: of each member's own product,
 *     (a x b) * a_scale * b_scale + bias
 * a_scale: 1 x 1 or M x 1; b_scale: 1 x 1 or 1 x N; bias: 1 x N, or NULL. Biases are summed like
 * all else: for one bias in all, one member brings it and the others bring none. */
int weft_scaled_matmul_reduce_scatter(shmem_team_t team, const weft_matrix *a,
                                      const weft_matrix *a_scale, const weft_matrix *b,
                                      const weft_matrix *b_scale, const weft_matrix *bias,
                                      weft_op op, weft_matrix *c_shard, weft_stream stream);

/* c = op over members of a x b, on every member; op WEFT_SUM or WEFT_AVG.
 * a: M x K_me, b: K_me x N, c: M x N; M and N the same on all members. */
int weft_matmul_all_reduce(shmem_team_t team, const weft_matrix *a, const weft_matrix *b,
                           weft_op op, weft_matrix *c, weft_stream stream);

/* Commits `bytes` of the team's workspace ahead of time, and makes what its collectives on streams
 * work with, where GPUs are up: so that no later call has to. Collective. */
int weft_reserve(shmem_team_t team, size_t bytes);

/* What the calling thread spent waiting for peers inside weft_ operators since its last call of
 * this function, in seconds. */
double weft_wait_seconds(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
