/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics, signals, waits and barriers on words, by a GPU in stream order.
 *
 * Kernels do this for users' words, because they can check the abort word meanwhile. Stream memory
 * operations, which use no multiprocessor, wait only for the library's own words in this GPU's
 * memory, which the rescue (transport/gpu_rescue.h) can set. */
#ifndef WEFT_TRANSPORT_GPU_WORD_H
#define WEFT_TRANSPORT_GPU_WORD_H

#include "weft/addr.h"
#include "base/amo.h"
#include "base/pad.h"
#include "base/signal.h"
#include "transport/gpu.h"

/* Enqueues an atomic operation with system scope. The GPU must be able to access its addresses. */
int weft_gpu_amo(const struct weft_amo *amo, weft_cu_stream stream);

/* Sets the word, or adds to it, after all earlier work of the stream. */
int weft_gpu_signal(uint64_t *word, uint64_t value, bool add, weft_cu_stream stream);

/* Tests whether atomics over a link are atomic. The owner of `trial`, which must be 0 at first,
 * adds to its word until the other GPU, which adds over the link, has seen enough of these
 * additions. Both run at the same time. If the atomics are, then word == made + added at the end,
 * and added is not 0. */
struct weft_gpu_trial {
    uint32_t word, begun, stop, made, added;
};
int weft_gpu_try_atomics(struct weft_gpu_trial *trial, bool owner, weft_cu_stream stream);

/* Copies at most WEFT_GPU_SMALL bytes with one block, and then signals, in one kernel. The GPU must
 * be able to access all addresses. */
enum { WEFT_GPU_SMALL = 32 << 10 };
int weft_gpu_put_signal(const struct weft_put_signal *put, weft_cu_stream stream);

/* Holds the stream until the word of this PE satisfies the comparison (SHMEM_CMP_*), as unsigned
 * 64-bit numbers. */
int weft_gpu_wait(const uint64_t *word, int cmp, uint64_t value, weft_cu_stream stream);

/* Returns how long a kernel rests between two polls of a word, without other reasons:
 * WEFT_GPU_REST_NS for a word in host memory, otherwise 0. */
uint32_t weft_gpu_rest_ns(const void *word);

/* weft_gpu_barrier enqueues a barrier of n members; this PE is member `me`. No stream continues
 * before all members have arrived, and memory written before the barrier is visible after it.
 * `words` are the members' words. */
#define WEFT_GPU_MEMBERS_MAX 1024
struct weft_gpu_team_words {
    uint64_t epoch; /* of the barrier; kept in this GPU's memory so that captured graphs can replay;
                       never wraps */
    uint32_t generation; /* of this slot's teams; this GPU's own */
    uint32_t busy;       /* in checked mode: a call is under way */
    uint64_t pad[14];
    uint64_t arrived[WEFT_GPU_MEMBERS_MAX]; /* set by member i: the epoch that it has reached */
    uint32_t ready[WEFT_GPU_MEMBERS_MAX];   /* 1: member i has begun its call; reset by the owner */
    uint32_t done[WEFT_GPU_MEMBERS_MAX];    /* 1: member i has ended its part */
    uint16_t places[WEFT_GPU_MEMBERS_MAX];  /* for arrays that need places; this GPU's own */
};

/* A kernel's description of the team of its call. A graph may replay the kernel after that team has
 * ended, when another team has its words. Then the generation there is different, and the kernel
 * leaves the words alone and reports WEFT_GPU_STALE. */
struct weft_gpu_call {
    struct weft_gpu_team_words *mine;
    uint32_t slot, generation;
};
int weft_gpu_barrier(struct weft_array words, int me, int n, struct weft_gpu_call call,
                     weft_cu_stream stream);

/* Enqueues one half of a meeting, as weft_gpu_meet does, but by a kernel; `words` are those of the
 * half. */
int weft_gpu_meet_by_kernel(struct weft_array words, int me, int n, struct weft_gpu_call call,
                            weft_cu_stream stream);

/* Marks in checked mode that a call of the team begins or ends. Detects two calls that are under
 * way at the same time (WEFT_GPU_BUSY), and a call of a team that has ended. */
int weft_gpu_mark_call(struct weft_gpu_call call, bool begins, weft_cu_stream stream);

/* Enqueues one half of a meeting, which needs no multiprocessor: stream memory operations write 1
 * to all members' words, wait for 1 from all, and reset. A call has two halves. words[i] is the
 * address of member i's words for the half, ready or done, aligned to 8 bytes. The stream must be
 * one of this GPU. */
enum weft_gpu_half {
    WEFT_GPU_READY, /* before a call's work: all members' arrays may be accessed */
    WEFT_GPU_DONE,  /* after it: all members have ended their parts */
};
int weft_gpu_meet(const struct weft_gpu *gpu, uint32_t *const *words, int me, int n,
                  weft_cu_stream stream);

/* Tests, in a stream and in a graph, whether the driver accepts writes without a fence: NVIDIA
 * documents them only for an older form of the call. The word, which the GPU must be able to
 * access, becomes 0. The context must be current. Waits for the stream of host calls. */
int weft_gpu_try_writes(struct weft_gpu *gpu, uint32_t *word);

/* Enqueues an operation on signal pads, with system scope; the array `pads` is in GPU memory. A
 * kernel that waits longer than timeout_ms prints that and traps, as PyTorch's kernels do. A
 * barrier, which has no `peer`, puts to all and waits for all. */
int weft_gpu_pad(enum weft_pad_op op, const struct weft_pad *pad, int peer, weft_cu_stream stream);

#endif
