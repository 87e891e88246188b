/* SPDX-License-Identifier: BSD-3-Clause */
/* Extensions of OpenSHMEM, with the prefix that the specification gives them: shmemx_.
 * They return 0, or a negative errno with text in weft_last_error() (weft.h). */
#ifndef SHMEMX_H
#define SHMEMX_H

#include <shmem.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* --- Starting without a launcher of processing elements --------------------------------------- */

/* Names a job that is to be. Whoever knows it and runs under the same user can take part: pass it
 * on as carefully as a password. */
typedef struct {
    unsigned char bytes[128];
} shmemx_uniqueid_t;

/* Makes a new id. One process of the job to be calls it, and brings the id to the others by
 * whatever means it has: a broadcast, a pipe, a file. Local; may be called before shmem_init. */
int shmemx_get_uniqueid(shmemx_uniqueid_t *id);

/* How the PEs find each other: exactly one of these. */
#define SHMEMX_INIT_WITH_UNIQUEID  (1U << 0) /* uniqueid is meant */
#define SHMEMX_INIT_WITH_ALLGATHER (1U << 1) /* allgather and context are meant */

/* Fields that no flag speaks of are not read: later versions append fields. */
typedef struct {
    int pe, npes;  /* which PE this process is to be, of how many */
    int requested; /* thread level, as of shmem_init_thread */
    const shmemx_uniqueid_t *uniqueid;
    /* Collective over the PEs to be: each gives `bytes` of `mine`, and all receive what PE i gave
     * at all + i * bytes. 0, or the call of shmemx_init_attr fails. Called within it only. */
    int (*allgather)(const void *mine, void *all, size_t bytes, void *context);
    void *context;
} shmemx_init_attr_t;

/* shmem_init_thread for processes that no launcher of PEs started, or that want to be another job
 * than the one they were started as. Collective over the job, and the first initialisation of the
 * process; all later ones come back to the same job. */
int shmemx_init_attr(unsigned flags, const shmemx_init_attr_t *attr);

/* The network interface by which this host speaks to the job's others, such as "eth0", for
 * connections of the program's own; "" where it is not known, and NULL in a job of one host. Stays
 * as long as the process. Local. */
const char *shmemx_network(void);

/* --- The end of a job, for languages with exceptions ------------------------------------------ */

/* Has `handler` called where this process would end because a PE has died or failed, or this one
 * has misused a routine: by each thread whose call cannot come to its end, which may leave the call
 * by longjmp; and, at any time, by a thread of the library, to which it has to return: the program
 * knows its threads. reason names the culprit, or is the line that would have been written. Where
 * the handler returns to a call, the process ends as without one, as in exit(). The job is over all
 * the same: later calls that wait come here again, the process is ended half a second after the
 * failure unless it ends by itself, and its status is 70 then. Not called for shmem_global_exit.
 * NULL: none. Local; at any time. */
typedef void (*shmemx_end_handler_t)(const char *reason);
void shmemx_set_end_handler(shmemx_end_handler_t handler);

/* Has `handler` called by a thread whose call has waited for long (WEFT_HANG_SECONDS), once a wait:
 * it writes where in the program the call stands, "train.py:12" or "weft.barrier at train.py:12"
 * say, as text with its end into `bytes` at `where`. That appears beside the name of the call in
 * the lines that explain a hang, on this PE and others. It must return soon, since the call does
 * not go on meanwhile, and call nothing of this library. NULL: none. Local; at any time. */
typedef void (*shmemx_where_handler_t)(char *where, size_t bytes);
void shmemx_set_where_handler(shmemx_where_handler_t handler);

/* Has `handler` called with each line about an error before it is written on stderr, without what
 * says whose it is: by the thread whose call knows of the error. Where it returns another value
 * than 0 it has kept the line, which is not written. Lines that tell of no error, such as that a PE
 * waits for others, are written all the same. NULL: none. Local; at any time. */
typedef int (*shmemx_log_handler_t)(const char *line);
void shmemx_set_log_handler(shmemx_log_handler_t handler);

/* --- Waits of the program's own --------------------------------------------------------------- */

/* A loop of the program's that waits for what no shmem_..._wait_until can say. Each turn waits a
 * moment as those do: it spins, yields or sleeps, ends the process when the job is over, and takes
 * part in the lines about calls that wait for long, under the name in `call`. All else is zero at
 * first, and the library's. End what has had a turn. Both local; not for two threads at once. */
typedef struct {
    const char *call;
    uint64_t reserved[15];
} shmemx_wait_t;
void shmemx_wait_turn(shmemx_wait_t *wait);
void shmemx_wait_end(shmemx_wait_t *wait);

/* --- Teams of any PEs ------------------------------------------------------------------------- */

/* A team of these PEs of WORLD in this order, made by them alone: collective over the listed PEs,
 * which give the same list and the same tag, in any thread. Tags tell calls apart that are under
 * way at once with the same list. 0, or a negative errno with text on all of them, and *team is
 * SHMEM_TEAM_INVALID; -EINVAL for a list that names a PE twice, or not this one, is local. Ended by
 * shmem_team_destroy. */
int shmemx_team_create(const int *pes, int npes, uint64_t tag, shmem_team_t *team);

/* --- Memory of GPUs --------------------------------------------------------------------------- */

/* Where symmetric memory lies: in the host's memory, as shmem_malloc's, or in the memory of the
 * GPU of each PE. A PE's GPU is that of SHMEMX_DEVICE, or the one whose context is current in the
 * calling thread, or PE modulo the number of GPUs; it is chosen by the first call that needs it. */
typedef enum { SHMEMX_SPACE_HOST, SHMEMX_SPACE_DEVICE } shmemx_space_t;

/* shmem_malloc, _calloc and _align in either space: collective over all PEs, NULL on all of them
 * when one cannot, with text in weft_last_error(). GPU memory reads as zero when it is new. Any of
 * them is freed by shmem_free. Every call of this library takes addresses of either space. */
void *shmemx_malloc(shmemx_space_t space, size_t size);
void *shmemx_calloc(shmemx_space_t space, size_t count, size_t size);
void *shmemx_align(shmemx_space_t space, size_t alignment, size_t size);

/* Where `asker` - the host, or this PE's GPU - finds pe's copy of the symmetric object at p by load
 * and store; NULL where it cannot. shmem_ptr(p, pe) is the host's. */
void *shmemx_ptr(shmemx_space_t asker, const void *p, int pe);

/* What copies of a GPU's memory are made by: multiprocessors, a copy engine, or whichever is faster
 * for the size and direction (`weft info` prints the thresholds). For the calls of this PE from now
 * on; SHMEMX_ENGINE=auto, sm or copy is the setting at the start. -EINVAL for any other value. */
typedef enum { SHMEMX_ENGINE_AUTO, SHMEMX_ENGINE_SM, SHMEMX_ENGINE_COPY } shmemx_engine_t;
int shmemx_set_engine(shmemx_engine_t engine);
shmemx_engine_t shmemx_get_engine(void);

/* CUDA's number of this PE's GPU, as this process counts GPUs. Opens it if need be; local. */
int shmemx_device(int *device);

/* --- Memory that some PEs share --------------------------------------------------------------- */

/* A block is memory of one PE, in either space, that others may come to share: made and freed
 * locally, at any time, by any thread. It reads as zero when it is new. */
typedef struct shmemx_block *shmemx_block_t;
int shmemx_block_alloc(shmemx_space_t space, size_t bytes, shmemx_block_t *block);

/* The same in the memory of any GPU that this process sees, by CUDA's number: a process may have
 * blocks on several. Calls on signal pads take streams of each then: with the context of the stream
 * current. */
int shmemx_block_alloc_on(int gpu, size_t bytes, shmemx_block_t *block);

/* The handle is gone at once, the memory when the last share of it is released. NULL: nothing. */
void shmemx_block_free(shmemx_block_t block);

/* Where the block begins, its bytes and space as they were asked for, and CUDA's number of the GPU
 * that it lies on, -1 for memory of the host. */
void *shmemx_block_ptr(shmemx_block_t block);
size_t shmemx_block_bytes(shmemx_block_t block);
shmemx_space_t shmemx_block_space(shmemx_block_t block);
int shmemx_block_gpu(shmemx_block_t block);

/* The block of this PE that p lies in, NULL when there is none or it has been freed. Local, and
 * cheap: it may be asked of any pointer. */
shmemx_block_t shmemx_block_find(const void *p);

/* A share is what a group of PEs has of each other's blocks. Attaching is collective over the
 * listed PEs, which give the same list and tag, and blocks of the same size and space, in any
 * thread. Tags tell calls apart that are under way at once with the same list. As long as a block
 * has not been freed, a second attach with the same list and tag gives the same share again without
 * a message: so members keep their blocks as long as each other, or all use a new tag. 0, or a
 * negative errno with text on all of them. */
typedef struct shmemx_share *shmemx_share_t;
int shmemx_share_attach(shmemx_block_t block, const int *pes, int npes, uint64_t tag,
                        shmemx_share_t *share);

/* Released as often as attached, each member at its own time, in any thread; the blocks of all
 * members can be accessed until then, whoever frees his meanwhile. NULL: nothing. */
void shmemx_share_release(shmemx_share_t share);

/* Where this PE (for a host block) or its GPU (for a device block) finds the block of a member, by
 * its place in the list; its own is where shmemx_block_ptr has said. NULL: there is no such member.
 */
void *shmemx_share_ptr(shmemx_share_t share, int member);

/* --- Calls in the order of a CUDA stream ------------------------------------------------------ */

/* A cudaStream_t or CUstream; NULL is CUDA's default stream. Each call enqueues work and returns;
 * it may be captured into a graph. PEs are numbers in WORLD. Symmetric arguments may lie in any
 * space; a source or destination of this PE may be any memory that CUDA can copy. Teams' calls are
 * made in the same order by all members, and run in that order, also on different streams; what a
 * capture has of them the program orders, within it and against other calls: work of one team never
 * runs side by side. 0 or a negative errno; nothing has been enqueued then, unless it is the driver
 * that fails. */
typedef struct CUstream_st *shmemx_stream_t;

int shmemx_putmem_on_stream(void *dest, const void *source, size_t nelems, int pe,
                            shmemx_stream_t stream);
int shmemx_getmem_on_stream(void *dest, const void *source, size_t nelems, int pe,
                            shmemx_stream_t stream);
int shmemx_putmem_signal_on_stream(void *dest, const void *source, size_t nelems,
                                   uint64_t *sig_addr, uint64_t signal, int sig_op, int pe,
                                   shmemx_stream_t stream);
int shmemx_signal_op_on_stream(uint64_t *sig_addr, uint64_t signal, int sig_op, int pe,
                               shmemx_stream_t stream);

/* The stream goes on when this PE's signal compares with cmp_value (SHMEM_CMP_*). */
int shmemx_signal_wait_until_on_stream(uint64_t *sig_addr, int cmp, uint64_t cmp_value,
                                       shmemx_stream_t stream);

/* What this PE has begun, by calls of the host and on this stream, is complete (ordered) behind. */
int shmemx_quiet_on_stream(shmemx_stream_t stream);
int shmemx_fence_on_stream(shmemx_stream_t stream);

/* barrier also completes what the members have begun on their streams; sync only synchronises. */
int shmemx_barrier_on_stream(shmem_team_t team, shmemx_stream_t stream);
int shmemx_barrier_all_on_stream(shmemx_stream_t stream);
int shmemx_sync_on_stream(shmem_team_t team, shmemx_stream_t stream);

/* As shmem_broadcastmem, shmem_fcollectmem and shmem_alltoallmem. */
int shmemx_broadcastmem_on_stream(shmem_team_t team, void *dest, const void *source, size_t nelems,
                                  int PE_root, shmemx_stream_t stream);
int shmemx_fcollectmem_on_stream(shmem_team_t team, void *dest, const void *source, size_t nelems,
                                 shmemx_stream_t stream);
int shmemx_alltoallmem_on_stream(shmem_team_t team, void *dest, const void *source, size_t nelems,
                                 shmemx_stream_t stream);

/* clang-format off */
/* As shmem_<type>_<op>_reduce, over the types of the standard but long double (-ENOTSUP), with
 * results that have the same bits on every PE; and
 * shmemx_<type>_<op>_reducescatter_on_stream: dest[i] on member m is the reduction of
 * source[m * nreduce + i] over all members; source has nreduce elements for each member. */
#define SHMEMX_REDUCE_ON_STREAM(N, T, OP)                                                          \
    __extension__ int shmemx_##N##_##OP##_reduce_on_stream(                                        \
        shmem_team_t team, T *dest, const T *source, size_t nreduce, shmemx_stream_t stream);      \
    __extension__ int shmemx_##N##_##OP##_reducescatter_on_stream(                                 \
        shmem_team_t team, T *dest, const T *source, size_t nreduce, shmemx_stream_t stream);
#define SHMEMX_BITWISE(N, T, _)    SHMEMX_REDUCE_ON_STREAM(N, T, and)                              \
                                   SHMEMX_REDUCE_ON_STREAM(N, T, or)                               \
                                   SHMEMX_REDUCE_ON_STREAM(N, T, xor)
#define SHMEMX_ORDERED(N, T, _)    SHMEMX_REDUCE_ON_STREAM(N, T, max)                              \
                                   SHMEMX_REDUCE_ON_STREAM(N, T, min)
#define SHMEMX_ARITHMETIC(N, T, _) SHMEMX_REDUCE_ON_STREAM(N, T, sum)                              \
                                   SHMEMX_REDUCE_ON_STREAM(N, T, prod)
SHMEM_BITWISE_TYPES(SHMEMX_BITWISE, _)
SHMEM_RMA_TYPES(SHMEMX_ORDERED, _)
SHMEM_ARITHMETIC_TYPES(SHMEMX_ARITHMETIC, _)
#undef SHMEMX_BITWISE
#undef SHMEMX_ORDERED
#undef SHMEMX_ARITHMETIC
#undef SHMEMX_REDUCE_ON_STREAM
/* clang-format on */

/* --- The same with numbers that the GPU reads ------------------------------------------------- */

/* A number of a call: `value`; or, where `at` is not NULL, what lies there when the stream gets to
 * the call, so that every replay of a graph may have another. `at` is memory that the GPU reaches,
 * of an int32_t (bytes: 4) or an int64_t (8). */
typedef struct {
    const void *at;
    size_t bytes;
    int64_t value;
} shmemx_number_t;

/* Elements of an array of `nelems`, from number `begin` on. Those that a call names have to lie in
 * the array: -EINVAL as far as the host can tell; a kernel that finds out prints so, and traps. */
typedef struct {
    void *array;
    size_t nelems;
    shmemx_number_t begin;
} shmemx_slice_t;

/* As shmemx_putmem_on_stream and so on, for `nelems` elements of elem_bytes each. The array of the
 * other PE is symmetric, all of it. Where a number lies in memory, multiprocessors copy, and have
 * to reach both arrays. */
int shmemx_put_slice_on_stream(const shmemx_slice_t *dest, const shmemx_slice_t *source,
                               shmemx_number_t nelems, size_t elem_bytes, int pe,
                               shmemx_stream_t stream);
int shmemx_get_slice_on_stream(const shmemx_slice_t *dest, const shmemx_slice_t *source,
                               shmemx_number_t nelems, size_t elem_bytes, int pe,
                               shmemx_stream_t stream);

/* Signals of 32 bits: the first word of a slice of an array of int32_t. They are numbers with a
 * sign; those who read and write them are streams, and atomics of int32_t. */
int shmemx_put_slice_signal_on_stream(const shmemx_slice_t *dest, const shmemx_slice_t *source,
                                      shmemx_number_t nelems, size_t elem_bytes,
                                      const shmemx_slice_t *signals, shmemx_number_t signal,
                                      int sig_op, int pe, shmemx_stream_t stream);
int shmemx_int32_signal_op_on_stream(const shmemx_slice_t *signals, shmemx_number_t signal,
                                     int sig_op, int pe, shmemx_stream_t stream);
int shmemx_int32_signal_wait_until_on_stream(const shmemx_slice_t *signals, int cmp,
                                             shmemx_number_t cmp_value, shmemx_stream_t stream);

/* Signal pads as PyTorch's and Helion's kernels use them: pads[r] is the pad of rank r, 32-bit
 * words, 0 at first; the word of (channel, source) is pad[n * channel + source]. put waits until
 * the peer's word for me is 0 and sets it to 1; wait waits until mine from the peer is 1 and sets
 * it to 0; barrier does both with all peers. `pads` is an array of n addresses in GPU memory. A
 * kernel that waits longer than timeout_ms (0: for ever) prints who waited for whom, and traps.
 *
 * On SHMEMX_STREAM_HOST, which no other call takes, the calling thread does it itself, on pads in
 * memory of the host that `pads` in memory of the host has the addresses of, and sees to it that
 * all its stores before are visible to who waits for it. It returns when it is done: 0, or
 * -ETIMEDOUT with text. */
#define SHMEMX_STREAM_HOST ((shmemx_stream_t)-1)
int shmemx_pad_put_on_stream(uint32_t *const *pads, int rank, int n, int peer, int channel,
                             uint64_t timeout_ms, shmemx_stream_t stream);
int shmemx_pad_wait_on_stream(uint32_t *const *pads, int rank, int n, int peer, int channel,
                              uint64_t timeout_ms, shmemx_stream_t stream);
int shmemx_pad_barrier_on_stream(uint32_t *const *pads, int rank, int n, int channel,
                                 uint64_t timeout_ms, shmemx_stream_t stream);

/* --- Calls inside kernels --------------------------------------------------------------------- */

/* What kernels of the program put, signal, wait and meet by (weft/device.cuh, which has the struct
 * and the functions). It is passed to kernels by value, and belongs to this PE. */
struct weft_device_team;

/* Makes a handle for the members of a team, with words and inboxes of its own: `channels` of them,
 * 1 to 1024, by each of which one block of every member's kernel meets those of the others, and
 * which have slots of `slot_bytes` for packets, a multiple of 16 up to 1 MiB; 0: there are none.
 * Collective over the team, whose members pass the same, by the host alone, so it works while a
 * stream is being captured, too; that of all PEs brings the GPUs up. One of fewer PEs that is made
 * before that knows no device heap. 0, or a negative errno with text on all of them: -EINVAL,
 * -ENODEV, -ENOTSUP, -ENOMEM; but of a wrong team the others do not hear. Members may have as many
 * handles as they like. */
int shmemx_device_team(shmem_team_t team, uint32_t channels, uint32_t slot_bytes,
                       struct weft_device_team *handle);

/* Frees a handle, and zeroes it; copies of it are worth nothing then. All kernels of this PE that
 * have it are done. Collective over the members, also when the team has been destroyed meanwhile.
 * shmem_finalize frees those that are left. NULL, or a handle that is zero: nothing. 0, or -EINVAL
 * for what is no handle, or one that has been freed. */
int shmemx_device_team_free(struct weft_device_team *handle);

/* Where a copy of the handle lies in this PE's GPU memory until it is freed, for kernels that take
 * numbers alone. Local. 0 or -EINVAL. */
int shmemx_device_team_address(const struct weft_device_team *handle,
                               const struct weft_device_team **address);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
