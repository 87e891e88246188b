/* SPDX-License-Identifier: BSD-3-Clause */
/* Weft's tensor operators: collectives, and matrix products that overlap their communication with
 * computation.
 *
 * Rules for every call:
 *  - Collective over the team: every member calls, in the same order. Calls on different teams are
 *    independent. Buffers may be reused from call to call without synchronisation by the caller.
 *  - Inputs and outputs may be any memory of the process. Peers read symmetric inputs
 *    (shmem_malloc, statics) in place; other inputs are copied once into the team's workspace.
 *  - On return (host) the outputs are complete and the inputs may be overwritten: no peer reads
 *    them any more. Inputs and outputs must not overlap unless a call says so.
 *  - Returns 0, or a negative errno with a text in weft_last_error(). A wrong argument on one
 *    member gives -EINVAL on every member, missing memory -ENOMEM and a missing matmul library
 *    -ENOTSUP, before any output is written. If a member passes an invalid team handle, members
 *    that wait for it get -EINVAL, too; if none does within a second, only the caller gets it.
 *    -EIO: another member failed during the call.
 *  - With a CUDA stream the call enqueues its work and returns; graphs can capture it. All-reduce,
 *    reduce-scatter, all-gather, broadcast, all-to-all, all products, norms, exchanges of rows,
 *    dispatches and combines support streams; the other calls return -ENOTSUP. An error (a wrong
 * argument, missing memory, no cuBLASLt) is then one of this member alone: it enqueues nothing, and
 * the other members wait. Either all members pass streams, or none does. Calls of a team run in the
 * order in which they are made, even on different streams. The program orders captured calls,
 * within their graph and against the team's other calls.
 *  - Memory of collectives on streams: `dest` must be symmetric, in GPU or host memory, and so must
 *    the source of a reduction; another source may be any memory that CUDA can copy. For sizes for
 *    which `weft info` shows packets or marked words, `dest` and the source of a reduction may be
 *    any memory of this PE's GPU, chosen by each member.
 *  - Products on streams: cuBLASLt, opened at run time, or Weft's kernels multiply. Matrices may be
 *    any memory that kernels of this PE's GPU reach, and a_shard any memory that CUDA can copy. All
 *    members' shards have the same number of rows and orientation, and their a_scales the same
 *    shape; all c_shards have the same number of rows. Each member's product is rounded to the type
 *    of c before it is reduced. All members capture the same products in the same graphs, and
 *    capture the team's first calls at the same place in the order of calls. The first call of a
 *    size allocates GPU memory, several times the size of A or of the whole c (the manual has the
 *    numbers).
 *  - Reductions run in PE order, with float accumulation for 16-bit types: the result has the same
 *    bits on every PE and in every run. */
#ifndef WEFT_H
#define WEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shmem.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Element types. Every type can be moved; move a type that is not listed as the unsigned integer of
 * its size. Matrix products take F32, F64, BF16 and F16, and with scales F8E4M3 and F8E5M2. */
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

/* Reduction operations. F32, F64, BF16 and F16 have all of them; integers all except AVG, with
 * wrap-around; complex numbers SUM, AVG and PROD. For BOOL, SUM and MAX are "or", PROD and MIN are
 * "and". F8 types have none. */
typedef enum weft_op {
    WEFT_SUM = 1,
    WEFT_AVG = 2, /* the sum divided by the team's size */
    WEFT_MAX = 3,
    WEFT_MIN = 4,
    WEFT_PROD = 5,
} weft_op;

/* Row-major: element (i, j) is at data + (i * ld + j) elements, ld >= cols. Transposed: it is at
 * data + (j * ld + i) elements, ld >= rows. ld counts elements. The factors of products (a_shard, a
 * and b) may be transposed, each on each member as it likes unless a call restricts it; all other
 * matrices are row-major. A matrix of zero rows or columns may have NULL data. */
typedef struct weft_matrix {
    void *data;
    size_t rows, cols, ld;
    weft_dtype dtype;
    bool transposed;
} weft_matrix;

/* A cudaStream_t or CUstream; NULL is CUDA's default stream. WEFT_STREAM_HOST is the calling
 * thread. */
typedef struct weft_stream_handle *weft_stream;
#define WEFT_STREAM_HOST ((weft_stream)-1)

/* Returns the text of the calling thread's last failed call, or "" if no call failed. Never returns
 * NULL. */
const char *weft_last_error(void);

/* Returns the bytes of one element, or 0 for an unknown type. */
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

/* dest[i] = source[i] of team member `root`, on every member. Only the root's source is read; on
 * other members it may be NULL. dest == source is allowed. */
int weft_broadcast(shmem_team_t team, void *dest, const void *source, size_t nelems,
                   weft_dtype dtype, int root, weft_stream stream);

/* dest[r * nelems + i] = source[me * nelems + i] of team member r. Both hold n_pes * nelems. */
int weft_all_to_all(shmem_team_t team, void *dest, const void *source, size_t nelems,
                    weft_dtype dtype, weft_stream stream);

/* Moves any number of elements from any member to any other, in `nparts` parts for each pair of
 * members. With nparts = 1 it is MPI_Alltoallv; nparts is the same on all members. The four arrays
 * have n_pes * nparts entries and count in elements. Part k to (or from) member r is entry r *
 * nparts + k:
 *   to r:    source_nelems[] elements, starting at source[source_offsets[]]
 *   from r:  dest_nelems[] elements, stored from dest[dest_offsets[]] on
 * If an offset array is NULL, the parts are contiguous in the order of the entries. dest_nelems[r *
 * nparts + k] must equal r's source_nelems[me * nparts + k]; a mismatch on any member gives -EINVAL
 * on all. Parts of dest must not overlap; parts of source may. */
int weft_all_to_allv(shmem_team_t team, void *dest, const size_t *dest_nelems,
                     const size_t *dest_offsets, const void *source, const size_t *source_nelems,
                     const size_t *source_offsets, size_t nparts, weft_dtype dtype,
                     weft_stream stream);

/* c[j] = A x b[j] for j < nb; A is the members' a_shards, stacked by rows in team order.
 *   a_shard: rows_me x K; members may have different numbers of rows, including 0 (not on a
 *            stream).
 *   b[j]:    K x N_j; each member has its own b[j] and N_j. On a stream all members pass the same
 *            nb, and b[0] is transposed on all members or on none.
 *   c[j]:    (sum of rows) x N_j.
 *   a_full:  NULL, or (sum of rows) x K, which receives A.
 * All matrices have one dtype; K is the same on all members. A shard is multiplied in place as soon
 * as its owner has entered the call: first this member's shard, then rank+1's, ... */
int weft_all_gather_matmul(shmem_team_t team, const weft_matrix *a_shard, const weft_matrix *b,
                           size_t nb, weft_matrix *c, weft_matrix *a_full, weft_stream stream);

/* weft_all_gather_matmul with 8-bit factors, multiplied and added in F32, and scales:
 *     c[j] = (A x b[j]) * scale of A * scale of b[j] + bias[j]
 *   a_shard, b[j]: WEFT_F8E4M3 or WEFT_F8E5M2.
 *   c[j]:          WEFT_F32, WEFT_BF16 or WEFT_F16; they may differ.
 *   a_scale:       F32, for this member's shard: 1 x 1, or rows_me x 1 (one for each row).
 *   b_scale[j]:    F32: 1 x 1, or 1 x N_j (one for each column).
 *   bias:          NULL, or nb matrices 1 x N_j of F32, BF16 or F16; 0 columns: no bias.
 *   a_full:        receives A without scales. */
int weft_all_gather_scaled_matmul(shmem_team_t team, const weft_matrix *a_shard,
                                  const weft_matrix *a_scale, const weft_matrix *b,
                                  const weft_matrix *b_scale, size_t nb, const weft_matrix *bias,
                                  weft_matrix *c, weft_matrix *a_full, weft_stream stream);

/* c_shard = this member's rows of (op over members of a x b); op is WEFT_SUM or WEFT_AVG.
 *   a:       M x K_me, b: K_me x N; M and N are the same on all members, K_me may differ; on a
 *            stream b is transposed on all members or on none.
 *   c_shard: rows_me x N; the members' rows add up to M in team order (on a stream all have the
 *            same number).
 * The peers' chunks are computed first, rank+1, rank+2, ..., and this member's own chunk last, in
 * turns of a few rows of each chunk. If the chunks are so small that splitting the product costs
 * more than the overlap saves, one product computes them all. */
int weft_matmul_reduce_scatter(shmem_team_t team, const weft_matrix *a, const weft_matrix *b,
                               weft_op op, weft_matrix *c_shard, weft_stream stream);

/* weft_matmul_reduce_scatter with 8-bit factors. Each member's product is
 *     (a x b) * a_scale * b_scale + bias
 * a_scale: 1 x 1 or M x 1; b_scale: 1 x 1 or 1 x N; bias: 1 x N, or NULL. The members' biases are
 * reduced like the products: to add one bias once, one member passes it and the others pass NULL.
 */
int weft_scaled_matmul_reduce_scatter(shmem_team_t team, const weft_matrix *a,
                                      const weft_matrix *a_scale, const weft_matrix *b,
                                      const weft_matrix *b_scale, const weft_matrix *bias,
                                      weft_op op, weft_matrix *c_shard, weft_stream stream);

/* c = op over members of a x b, on every member; op is WEFT_SUM or WEFT_AVG.
 *   a: M x K_me, b: K_me x N, c: M x N; M and N are the same on all members; on a stream b is
 *   transposed on all members or on none. */
int weft_matmul_all_reduce(shmem_team_t team, const weft_matrix *a, const weft_matrix *b,
                           weft_op op, weft_matrix *c, weft_stream stream);

/* What follows an all-reduce in each layer of a transformer. All arrays of numbers have one type:
 * F32, BF16 or F16. rows, cols and dtype are the same on all members, and so are the values of
 * bias, residual and weight, whose arrays only this member reads. */
typedef struct weft_norm {
    size_t rows, cols;
    weft_dtype dtype;
    const void *bias;     /* cols, or NULL */
    const void *residual; /* rows x cols, or NULL; may be residual_out */
    const void *weight;   /* cols, or NULL */
    float epsilon;
    void *residual_out; /* rows x cols */
    void *out;          /* rows x cols; may be the source */
    void *quantized;    /* rows x cols of F8E4M3, or NULL */
    float *scales; /* of quantized: one that is read, or if group > 0 rows x (cols / group) that
                      are written */
    size_t group;  /* of a row's numbers with one scale: a multiple of 8 that divides cols, or 0 */
} weft_norm;

/* Adds the members' sources, and normalises each row of the sum by its root mean square:
 *     z = all-reduce of source (WEFT_SUM, rounded as there) + bias + residual; residual_out = z
 *     y = z / sqrt(mean of z^2 over the row + epsilon) * weight;               out = y
 *     quantized = y / scale, at most 448 in magnitude; the scale of a group is its largest |y| /
 * 448 z and out are rounded to dtype; y is computed in float from the rounded z. Small sizes on a
 * stream are one kernel; larger ones are a weft_all_reduce to out, whose rules for dest out has
 * then, and a kernel. */
int weft_all_reduce_rms_norm(shmem_team_t team, const void *source, const weft_norm *norm,
                             weft_stream stream);

/* --- Rows whose places the data decide ----------------------------------------------------------
 */

/* Sizes of an exchange of rows; nparts, cols, dtype, dest_by_part and align are the same on all
 * members. */
typedef struct weft_row_exchange {
    size_t nparts; /* for each pair of members */
    size_t cols;   /* elements of a row */
    weft_dtype dtype;
    size_t source_rows, dest_rows; /* that this member's arrays have */
    /* Part k to (or from) member r is entry r * nparts + k, or if by part, entry k * n_pes + r. */
    bool source_by_part, dest_by_part;
    size_t align; /* dest by part: 0, or the rows of each k begin at a multiple of `align`, and take
                     `align` rows if there are none */
} weft_row_exchange;

/* weft_all_to_allv of rows whose numbers only the senders know. On a stream they are in memory that
 * the GPU reads when the call runs, so a graph can be replayed with other numbers.
 *   source_splits:  n_pes * nparts entries: the rows of each part that this member sends.
 *   source_offsets: where each part begins in source, in rows; NULL: the parts are contiguous.
 *   dest_splits, dest_offsets: as many entries; receive the rows of each part for this member, and
 *                   where the part begins in dest. Parts are stored in the order of the entries.
 * dest and source do not overlap. On a stream dest is symmetric. If a member has less room than it
 * receives, or a sender fewer rows than it sends, all members return -ENOSPC or -EINVAL with text
 * that names the member, and no row is written. On a stream the job ends. */
int weft_all_to_allv_on_device(shmem_team_t team, const weft_row_exchange *exchange, void *dest,
                               int64_t *dest_splits, int64_t *dest_offsets, const void *source,
                               const int64_t *source_splits, const int64_t *source_offsets,
                               weft_stream stream);

/* Arrays of blocks, such as the K and V caches of all layers. Symmetric, and of the same sizes on
 * all members. */
typedef struct weft_kv_caches {
    void *const *at; /* `count` arrays */
    size_t count;
    size_t blocks; /* of each array */
    size_t block_bytes;
} weft_kv_caches;

enum { WEFT_KV_SENDS = 0, WEFT_KV_RECEIVES = 1 };

/* Copies blocks of all caches between pairs of members: block to_blocks[i] of each cache of the
 * receiver <- block from_blocks[i] of the sender's, for i < nblocks.
 *   peer_and_role: the other member of this member's pair, and WEFT_KV_SENDS or WEFT_KV_RECEIVES; a
 *                  member whose peer is -1 has no pair.
 *   from_blocks, to_blocks: those of the senders are used; other members may pass NULL and 0. An
 *                  entry with from_blocks[i] == -1 is skipped.
 * On a stream the three arrays are in memory that the GPU reads when the call runs. A pair that its
 * members do not both name, and a number of a block that the caches do not have, are -EINVAL on all
 * members, before anything is written; on a stream a wrong number ends the job. */
int weft_kv_shuffle(shmem_team_t team, const weft_kv_caches *caches, const int32_t *peer_and_role,
                    const int64_t *from_blocks, const int64_t *to_blocks, size_t nblocks,
                    weft_stream stream);

/* --- Mixtures of experts -----------------------------------------------------------------------
 * A dispatch sends each token's row to the members that own the token's experts; a combine adds the
 * experts' results of each token and sends the sums back. Expert e belongs to member e / (experts /
 * n_pes) of the team. The gradient of a dispatch is a combine, and the reverse. */
typedef struct weft_moe_handle *weft_moe;

/* Sizes of all calls with one handle, the same on all members. */
typedef struct weft_moe_shape {
    size_t experts;    /* of the whole team, a multiple of its size */
    size_t top_k;      /* slots of a token, each for one expert: 1 to 16 */
    size_t cols;       /* elements of a row */
    size_t scale_cols; /* F32 scales that are sent with a row, or 0 */
    size_t tokens_max; /* of a member in a call; n_pes * tokens_max * top_k < 2^31 */
    size_t rows_max;   /* received by a member in a call; 0: enough for all tokens whose experts
                          are all different */
    weft_dtype dtype;  /* the widest type of rows */
} weft_moe_shape;

/* Rows for this member's experts, in arrays of the caller with room for rows_max rows. They are
 * sorted by expert, the rows of an expert by member, token and slot. */
typedef struct weft_moe_rows {
    void *data;       /* rows x cols */
    float *scales;    /* rows x scale_cols; may be NULL if no scales are sent */
    float *weights;   /* rows; may be NULL if no weights are sent */
    int32_t *sources; /* rows: (member * tokens_max + token) * top_k + slot */
    int32_t *offsets; /* experts of a member + 1: the first row of each, then the number of rows */
} weft_moe_rows;

/* Returns in *moe a handle for calls of this team. Collective, as is its end, which comes before
 * the team's. */
int weft_moe_create(shmem_team_t team, const weft_moe_shape *shape, weft_moe *moe);
int weft_moe_destroy(weft_moe moe);

/* Returns the most rows that a member receives: the shape's rows_max, or its default. */
size_t weft_moe_rows_max(weft_moe moe);

/* rows <- the members' tokens for this member's experts.
 *   dtype:   of the rows; all types can be moved.
 *   tokens:  ntokens x cols; members may have different numbers of tokens, including 0.
 *   scales:  ntokens x scale_cols, or NULL on all members that have tokens; so are weights.
 *   experts: ntokens x top_k; -1 for a slot without an expert.
 *   weights: ntokens x top_k, or NULL.
 * If a member would receive more than rows_max rows, all members return -ENOSPC with text that
 * names the member and its busiest expert, and nothing is written. On a stream the job ends. */
int weft_moe_dispatch(weft_moe moe, weft_dtype dtype, const void *tokens, const float *scales,
                      const int32_t *experts, const float *weights, size_t ntokens,
                      const weft_moe_rows *rows, weft_stream stream);

/* tokens <- for each token of this member the sum of its rows, which lie where a dispatch with the
 * same experts has put them. A token without experts gets zeros.
 *   dtype:   of the rows and tokens: F32, F64, BF16 or F16.
 *   rows:    data is the results; scales are not used.
 *   factors: NULL, or a factor for each row.
 *   weights: NULL, or ntokens x top_k, which receives rows->weights of each slot; 0 for a slot
 *            without an expert.
 * Each member adds its rows of a token in the order of slots and rounds the sum to dtype; these
 * sums are added in the order of members. The result has the same bits in every run. */
int weft_moe_combine(weft_moe moe, weft_dtype dtype, const weft_moe_rows *rows,
                     const float *factors, const int32_t *experts, size_t ntokens, void *tokens,
                     float *weights, weft_stream stream);

/* Commits `bytes` of the team's workspace ahead of time and, if the GPUs are up, allocates the
 * memory that the team's stream collectives need, so that no later call has to. Collective. */
int weft_reserve(shmem_team_t team, size_t bytes);

/* Returns the seconds that the calling thread has spent waiting for peers inside weft_ operators
 * since its last call of this function. */
double weft_wait_seconds(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
