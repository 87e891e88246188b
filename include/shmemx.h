/* SPDX-License-Identifier: BSD-3-Clause */
/* Weft's extensions of OpenSHMEM, with the prefix that the specification reserves for extensions:
 * shmemx_. Unless a comment says otherwise, a function that returns int returns 0, or a negative
 * errno with a text in weft_last_error() (weft.h). */
#ifndef SHMEMX_H
#define SHMEMX_H

#include <shmem.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* --- Starting without a launcher of processing elements --------------------------------------- */

/* Names a job that has not started yet. A process that knows the id and runs under the same user
 * can join the job, so pass it on as carefully as a password. */
typedef struct {
    unsigned char bytes[128];
} shmemx_uniqueid_t;

/* Makes a new id. One process of the future job calls it and sends the id to the others by any
 * means: a broadcast, a pipe, a file. If PEs are on several hosts, PE 0 must make the id. Local;
 * may be called before shmem_init. */
int shmemx_get_uniqueid(shmemx_uniqueid_t *id);

/* How the PEs find each other: exactly one of these flags. */
#define SHMEMX_INIT_WITH_UNIQUEID  (1U << 0) /* read `uniqueid` */
#define SHMEMX_INIT_WITH_ALLGATHER (1U << 1) /* call `allgather` with `context` */

/* A field that no flag selects is not read, because later versions append fields. */
typedef struct {
    int pe, npes;  /* this process's PE number; number of PEs */
    int requested; /* thread level, as for shmem_init_thread */
    const shmemx_uniqueid_t *uniqueid;
    /* Gathers over all PEs of the future job: sends `bytes` bytes of `mine`, and stores the bytes
     * of PE i at all + i * bytes. Returns 0 for success; any other value makes shmemx_init_attr
     * fail. Only called during shmemx_init_attr. */
    int (*allgather)(const void *mine, void *all, size_t bytes, void *context);
    void *context;
} shmemx_init_attr_t;

/* Does what shmem_init_thread does, for processes that were not started as PEs, or that join
 * another job than the one they were started in. Collective over the job. Must be the first
 * initialisation in the process; later initialisations return to the same job. Blocks until all PEs
 * have called it, at most five minutes. */
int shmemx_init_attr(unsigned flags, const shmemx_init_attr_t *attr);

/* Returns the name of the network interface that this host uses to reach the other hosts of the
 * job, such as "eth0", for connections that the program opens itself. Returns "" if the interface
 * is unknown, and NULL if the job has one host. The string lives as long as the process. Local. */
const char *shmemx_network(void);

/* --- The end of a job, for languages with exceptions ------------------------------------------ */

/* Registers a handler that is called where this process would otherwise end because a PE died or
 * failed, or because this PE misused a routine. `reason` names the culprit, or is the error line
 * that would have been printed.
 *
 * Each thread whose call cannot complete calls the handler, which may leave the call by longjmp. A
 * thread of the library may call it at any time, too; there the handler must return, so it has to
 * know which threads are the program's. If the handler returns to a call of the program, the
 * process ends as it would without a handler, as in exit().
 *
 * The job is over in any case. Later calls that wait reach the handler again. Half a second after
 * the failure the process is ended unless it ends by itself; its status is then 70. The handler is
 * not called for shmem_global_exit. NULL removes the handler. Local; may be called at any time. */
typedef void (*shmemx_end_handler_t)(const char *reason);
void shmemx_set_end_handler(shmemx_end_handler_t handler);

/* Registers a handler that names the caller's place in the program, for the lines that explain a
 * hang. A thread whose call has waited for long (WEFT_HANG_SECONDS) calls it once per wait. The
 * handler writes a NUL-terminated text of at most `bytes` bytes to `where`, such as "train.py:12"
 * or "weft.barrier at train.py:12". The text appears beside the name of the call, on this PE and on
 * others. The handler must return soon, because the call does not proceed meanwhile, and must not
 * call this library. NULL removes the handler. Local; may be called at any time. */
typedef void (*shmemx_where_handler_t)(char *where, size_t bytes);
void shmemx_set_where_handler(shmemx_where_handler_t handler);

/* Registers a handler for error lines. The thread whose call found the error calls it before the
 * line is written to stderr; `line` lacks the prefix that names the PE. If the handler returns a
 * value other than 0 it has taken the line, and the library does not write it. Lines that report no
 * error, such as a line about a long wait, are written in any case. NULL removes the handler.
 * Local; may be called at any time. */
typedef int (*shmemx_log_handler_t)(const char *line);
void shmemx_set_log_handler(shmemx_log_handler_t handler);

/* --- Waits of the program's own --------------------------------------------------------------- */

/* State of a loop in the program that waits for a condition that no shmem_..._wait_until can
 * express. Each call of shmemx_wait_turn waits a moment as the library's own waits do: it spins,
 * yields or sleeps, ends the process if the job is over, and reports a long wait under the name in
 * `call`. Set `call`; all other bytes are zero at first and belong to the library. After the loop
 * call shmemx_wait_end. Both calls are local; one shmemx_wait_t belongs to one thread. */
typedef struct {
    const char *call;
    uint64_t reserved[15];
} shmemx_wait_t;
void shmemx_wait_turn(shmemx_wait_t *wait);
void shmemx_wait_end(shmemx_wait_t *wait);

/* --- Teams of any PEs ------------------------------------------------------------------------- */

/* Creates a team of the listed PEs of SHMEM_TEAM_WORLD, in the order of the list. Collective over
 * the listed PEs only, in any thread; they pass the same list and the same tag. The tag
 * distinguishes calls that run at the same time with the same list. Returns 0, or a negative errno
 * with a text on all listed PEs, and then *team is SHMEM_TEAM_INVALID. A list that names a PE
 * twice, or not the calling PE, is reported to the caller alone: -EINVAL. shmem_team_destroy frees
 * the team. */
int shmemx_team_create(const int *pes, int npes, uint64_t tag, shmem_team_t *team);

/* --- Memory of GPUs --------------------------------------------------------------------------- */

/* The place of symmetric memory: in host memory, as for shmem_malloc, or in the memory of each PE's
 * GPU. A PE's GPU is the one that SHMEMX_DEVICE names; otherwise the GPU whose context is current
 * in the calling thread; otherwise the one whose number is the PE's number among the PEs of its
 * host, modulo the number of GPUs. The first call that needs a GPU makes the choice. */
typedef enum { SHMEMX_SPACE_HOST, SHMEMX_SPACE_DEVICE } shmemx_space_t;

/* Do what shmem_malloc, shmem_calloc and shmem_align do, in either space. Collective over all PEs.
 * Return NULL on all PEs if one PE fails, with a text in weft_last_error(). GPU memory reads as
 * zero when the heap first gets it; the memory of a freed object keeps its contents. shmem_free
 * frees the object. Puts, gets, atomics, signals, waits and collectives accept addresses of either
 * space. */
void *shmemx_malloc(shmemx_space_t space, size_t size);
void *shmemx_calloc(shmemx_space_t space, size_t count, size_t size);
void *shmemx_align(shmemx_space_t space, size_t alignment, size_t size);

/* Returns the address at which `asker` (the host, or this PE's GPU) can load from and store to pe's
 * copy of the symmetric object at `p`, or NULL if it cannot. shmem_ptr(p, pe) is the same for the
 * host. */
void *shmemx_ptr(shmemx_space_t asker, const void *p, int pe);

/* Selects the engine for copies of GPU memory in later calls of this PE: multiprocessors, a copy
 * engine, or the faster of both for the size and direction (`weft info` prints the thresholds).
 * SHMEMX_ENGINE=auto, sm or copy sets the engine at the start. Returns 0, or -EINVAL for any other
 * value. */
typedef enum { SHMEMX_ENGINE_AUTO, SHMEMX_ENGINE_SM, SHMEMX_ENGINE_COPY } shmemx_engine_t;
int shmemx_set_engine(shmemx_engine_t engine);
shmemx_engine_t shmemx_get_engine(void);

/* Stores the number that CUDA has for this PE's GPU in this process. Opens the GPU if no call has
 * needed it yet. Local. */
int shmemx_device(int *device);

/* --- Memory that some PEs share --------------------------------------------------------------- */

/* Allocates a block: memory of one PE, in either space, that other PEs may share later. New blocks
 * read as zero. Local; any thread may allocate and free blocks at any time. */
typedef struct shmemx_block *shmemx_block_t;
int shmemx_block_alloc(shmemx_space_t space, size_t bytes, shmemx_block_t *block);

/* Allocates a block in the memory of any GPU that this process sees; `gpu` is CUDA's number. So a
 * process may have blocks on several GPUs. For a signal pad in such a block, pass a stream of that
 * GPU, with the stream's context current. */
int shmemx_block_alloc_on(int gpu, size_t bytes, shmemx_block_t *block);

/* Invalidates the handle at once; the memory is freed when its last share is released. Does nothing
 * for NULL. */
void shmemx_block_free(shmemx_block_t block);

/* Return the block's address, its size and space as they were requested, and CUDA's number of its
 * GPU (-1 for host memory). */
void *shmemx_block_ptr(shmemx_block_t block);
size_t shmemx_block_bytes(shmemx_block_t block);
shmemx_space_t shmemx_block_space(shmemx_block_t block);
int shmemx_block_gpu(shmemx_block_t block);

/* Returns the block of this PE that contains `p`, or NULL if there is none or the block has been
 * freed. Local and cheap; `p` may be any pointer. */
shmemx_block_t shmemx_block_find(const void *p);

/* Attaches a block, so that a group of PEs can access each other's blocks; the share is the handle
 * for this access. Collective over the listed PEs, in any thread: they pass the same list and tag,
 * and blocks of the same size and space. The tag distinguishes calls that run at the same time
 * with the same list.
 *
 * A second attach of a block with the same list and tag returns the same share without
 * communication, as long as the block has not been freed. So members must keep their blocks equally
 * long, or all use a new tag. Returns 0, or a negative errno with a text on all members. */
typedef struct shmemx_share *shmemx_share_t;
int shmemx_share_attach(shmemx_block_t block, const int *pes, int npes, uint64_t tag,
                        shmemx_share_t *share);

/* Releases a share; call it as often as the share was attached. Members may release at different
 * times, in any thread. Until its own release a member can access all members' blocks, even if an
 * owner has freed its block meanwhile. Does nothing for NULL. */
void shmemx_share_release(shmemx_share_t share);

/* Returns the address at which this PE (for a host block) or its GPU (for a device block) can
 * access the block of a member; `member` is an index into the list. For this PE's own block it is
 * the address of shmemx_block_ptr. Returns NULL if there is no such member. */
void *shmemx_share_ptr(shmemx_share_t share, int member);

/* --- Calls in the order of a CUDA stream ------------------------------------------------------ */

/* A cudaStream_t or CUstream; NULL is CUDA's default stream. Each call enqueues work and returns; a
 * graph may capture it. PEs are numbered as in SHMEM_TEAM_WORLD. A symmetric argument may lie in
 * any space; a source or destination on this PE may be any memory that CUDA can copy.
 *
 * All members call the operations of a team in the same order, and the operations run in that
 * order, even on different streams. Work of one team must never run concurrently: the program
 * orders a captured operation within its graph and against the team's other operations.
 *
 * Each call returns 0 or a negative errno. After an error nothing has been enqueued, unless the
 * driver failed. */
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

/* Blocks the stream until `signal cmp cmp_value` holds for this PE's signal (SHMEM_CMP_*). */
int shmemx_signal_wait_until_on_stream(uint64_t *sig_addr, int cmp, uint64_t cmp_value,
                                       shmemx_stream_t stream);

/* After quiet (fence) on the stream, the operations that this PE started before, by host calls and
 * on this stream, are complete (ordered). */
int shmemx_quiet_on_stream(shmemx_stream_t stream);
int shmemx_fence_on_stream(shmemx_stream_t stream);

/* A barrier also completes the operations that the members have started on their streams; a sync
 * only synchronises. */
int shmemx_barrier_on_stream(shmem_team_t team, shmemx_stream_t stream);
int shmemx_barrier_all_on_stream(shmemx_stream_t stream);
int shmemx_sync_on_stream(shmem_team_t team, shmemx_stream_t stream);

/* Stream versions of shmem_broadcastmem, shmem_fcollectmem and shmem_alltoallmem. */
int shmemx_broadcastmem_on_stream(shmem_team_t team, void *dest, const void *source, size_t nelems,
                                  int PE_root, shmemx_stream_t stream);
int shmemx_fcollectmem_on_stream(shmem_team_t team, void *dest, const void *source, size_t nelems,
                                 shmemx_stream_t stream);
int shmemx_alltoallmem_on_stream(shmem_team_t team, void *dest, const void *source, size_t nelems,
                                 shmemx_stream_t stream);

/* clang-format off */
/* shmemx_<type>_<op>_reduce_on_stream is shmem_<type>_<op>_reduce on a stream, for the standard's
 * types except long double (-ENOTSUP). Results have the same bits on every PE.
 *
 * shmemx_<type>_<op>_reducescatter_on_stream: dest[i] on member m is the reduction of source[m *
 * nreduce + i] over all members; source has nreduce elements for each member. */
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

/* --- Stream calls with numbers that the GPU reads --------------------------------------------- */

/* A numeric argument. If `at` is NULL it is `value`. Otherwise the GPU loads it from `at` when the
 * stream reaches the call, so that every replay of a graph may use another number. `at` is an
 * int32_t (bytes: 4) or int64_t (bytes: 8) in memory that the GPU can access. */
typedef struct {
    const void *at;
    size_t bytes;
    int64_t value;
} shmemx_number_t;

/* The elements of an array of `nelems` elements, from index `begin` on. The elements that a call
 * uses must lie in the array. A call returns -EINVAL if the host can see that they do not;
 * otherwise the kernel prints an error and traps. */
typedef struct {
    void *array;
    size_t nelems;
    shmemx_number_t begin;
} shmemx_slice_t;

/* Put and get on a stream, as shmemx_putmem_on_stream and shmemx_getmem_on_stream, for `nelems`
 * elements of elem_bytes each. The whole array on the other PE must be symmetric. If a number lies
 * in memory, the multiprocessors copy, and they must be able to access both arrays. */
int shmemx_put_slice_on_stream(const shmemx_slice_t *dest, const shmemx_slice_t *source,
                               shmemx_number_t nelems, size_t elem_bytes, int pe,
                               shmemx_stream_t stream);
int shmemx_get_slice_on_stream(const shmemx_slice_t *dest, const shmemx_slice_t *source,
                               shmemx_number_t nelems, size_t elem_bytes, int pe,
                               shmemx_stream_t stream);

/* Calls with 32-bit signals: the signal is the first element of a slice of an int32_t array. These
 * signals are signed numbers, used by streams and by the int32_t atomics. */
int shmemx_put_slice_signal_on_stream(const shmemx_slice_t *dest, const shmemx_slice_t *source,
                                      shmemx_number_t nelems, size_t elem_bytes,
                                      const shmemx_slice_t *signals, shmemx_number_t signal,
                                      int sig_op, int pe, shmemx_stream_t stream);
int shmemx_int32_signal_op_on_stream(const shmemx_slice_t *signals, shmemx_number_t signal,
                                     int sig_op, int pe, shmemx_stream_t stream);
int shmemx_int32_signal_wait_until_on_stream(const shmemx_slice_t *signals, int cmp,
                                             shmemx_number_t cmp_value, shmemx_stream_t stream);

/* Signal pads with the protocol of PyTorch's and Helion's kernels. pads[r] is the pad of rank r:
 * 32-bit words, 0 at first. The word for (channel, source) is pad[n * channel + source]. "put"
 * waits until the peer's word for this rank is 0 and sets it to 1. "wait" waits until this rank's
 * word from the peer is 1 and sets it to 0. "barrier" does both with all peers. `pads` is an array
 * of n addresses in GPU memory. A kernel that waits longer than timeout_ms (0: no limit) prints
 * which rank waited for which, and traps.
 *
 * With SHMEMX_STREAM_HOST, which no other call accepts, the calling thread does the work before it
 * returns; the pads and the array `pads` then lie in host memory. All its earlier stores are
 * visible to the peer that waits for the signal. Returns 0, or -ETIMEDOUT with a text. */
#define SHMEMX_STREAM_HOST ((shmemx_stream_t)-1)
int shmemx_pad_put_on_stream(uint32_t *const *pads, int rank, int n, int peer, int channel,
                             uint64_t timeout_ms, shmemx_stream_t stream);
int shmemx_pad_wait_on_stream(uint32_t *const *pads, int rank, int n, int peer, int channel,
                              uint64_t timeout_ms, shmemx_stream_t stream);
int shmemx_pad_barrier_on_stream(uint32_t *const *pads, int rank, int n, int channel,
                                 uint64_t timeout_ms, shmemx_stream_t stream);

/* --- Calls inside kernels --------------------------------------------------------------------- */

/* The handle that the program's kernels need to put, signal, wait and synchronise. weft/device.cuh
 * has the struct and the functions. Kernels take it by value; it belongs to this PE. */
struct weft_device_team;

/* Makes a device handle for a team, with signal words and inboxes of its own. It has 1 to 1024
 * `channels`; on each channel one block of every member's kernel synchronises with the blocks of
 * the others, and has slots of `slot_bytes` bytes for packets (a multiple of 16, at most 1 MiB; 0:
 * no packets).
 *
 * Collective over the team; all members pass the same numbers. Only hosts communicate, so the call
 * also works while a stream is being captured. For a team of all PEs it brings the GPUs up. A
 * handle that a smaller team makes before that cannot address the device heap.
 *
 * Returns 0, or a negative errno with a text on all members: -EINVAL, -ENODEV, -ENOTSUP, -ENOMEM.
 * Only an invalid team is reported to the caller alone. Members may have any number of handles. */
int shmemx_device_team(shmem_team_t team, uint32_t channels, uint32_t slot_bytes,
                       struct weft_device_team *handle);

/* Frees a handle and zeroes it; copies of it become invalid. No kernel of this PE that uses the
 * handle may be running. Collective over the members; the team may have been destroyed before.
 * shmem_finalize frees the handles that are left. Does nothing for NULL or a zeroed handle. Returns
 * 0; -EINVAL if `handle` is not a handle or has been freed; or another -errno, with text, if the
 * GPU or an exchange has failed: the handle is freed then, too. */
int shmemx_device_team_free(struct weft_device_team *handle);

/* Stores the address of a copy of the handle in this PE's GPU memory, for kernels that only take
 * numbers. The copy exists until the handle is freed. Local. Returns 0 or -EINVAL. */
int shmemx_device_team_address(const struct weft_device_team *handle,
                               const struct weft_device_team **address);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
