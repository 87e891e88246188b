/* SPDX-License-Identifier: BSD-3-Clause */
/* Words: atomics, signals, waits and barriers that a GPU makes, in stream order.
 *
 * Kernels do what users' words need, because they can look at the abort word meanwhile. Stream
 * memory operations, which use no multiprocessor, wait only for words of the library's own in this
 * GPU's memory, which the rescue (transport/gpu_rescue.h) can set. */
#ifndef WEFT_TRANSPORT_GPU_WORD_H
#define WEFT_TRANSPORT_GPU_WORD_H

#include "weft/addr.h"
#include "base/amo.h"
#include "base/pad.h"
#include "base/signal.h"
#include "transport/gpu.h"

/* An atomic of the whole system. Its addresses are within the GPU's reach. */
int weft_gpu_amo(const struct weft_amo *amo, weft_cu_stream stream);

/* Sets the word, or adds to it, behind all earlier work of the stream. */
int weft_gpu_signal(uint64_t *word, uint64_t value, bool add, weft_cu_stream stream);

/* Tries whether the atomics of a link are atomic: the owner of `trial`, which is 0 at first, adds
 * to its word until the other GPU, which adds over the link, has seen enough of it. They run at the
 * same time. At the end word == made + added, and added is not 0, if so. */
struct weft_gpu_trial {
    uint32_t word, begun, stop, made, added;
};
int weft_gpu_try_atomics(struct weft_gpu_trial *trial, bool owner, weft_cu_stream stream);

/* A copy of at most WEFT_GPU_SMALL bytes by one block, and then the signal: one kernel. Its
 * addresses are within the GPU's reach. */
enum { WEFT_GPU_SMALL = 32 << 10 };
int weft_gpu_put_signal(const struct weft_put_signal *put, weft_cu_stream stream);

/* Holds the stream until the word of this PE compares (SHMEM_CMP_*), as unsigned 64-bit numbers. */
int weft_gpu_wait(const uint64_t *word, int cmp, uint64_t value, weft_cu_stream stream);

/* How long a kernel rests between two looks at a word, if there are no other reasons: 0, or, of one
 * in memory of the host, WEFT_GPU_REST_NS. */
uint32_t weft_gpu_rest_ns(const void *word);

/* A barrier of n members, me among them: no stream goes on before all have come; memory written
 * before it is visible behind it. `words` are those of the members. */
#define WEFT_GPU_MEMBERS_MAX 1024
struct weft_gpu_team_words {
    uint64_t epoch;      /* of the barrier; this GPU's own, kept in its memory so
                            that captured graphs replay; never wraps */
    uint32_t generation; /* of this slot's teams; this GPU's own */
    uint32_t busy;       /* in checked mode: a call is under way */
    uint64_t pad[14];
    uint64_t arrived[WEFT_GPU_MEMBERS_MAX]; /* set by member i: the epoch it has come to */
    uint32_t ready[WEFT_GPU_MEMBERS_MAX];   /* 1: member i has begun its call; reset by the owner */
    uint32_t done[WEFT_GPU_MEMBERS_MAX];    /* 1: member i has ended its part */
    uint16_t places[WEFT_GPU_MEMBERS_MAX];  /* where arrays need them; this GPU's own */
};

/* What a kernel is told of the team whose call it is part of. A graph may replay it when that team
 * is no more, and another one has its words: then the generation there is another, too, and the
 * kernel leaves them alone and says so (WEFT_GPU_STALE). */
struct weft_gpu_call {
    struct weft_gpu_team_words *mine;
    uint32_t slot, generation;
};
int weft_gpu_barrier(struct weft_array words, int me, int n, struct weft_gpu_call call,
                     weft_cu_stream stream);

/* One half of a meeting, as weft_gpu_meet makes it, by a kernel; `words` are those of the half. */
int weft_gpu_meet_by_kernel(struct weft_array words, int me, int n, struct weft_gpu_call call,
                            weft_cu_stream stream);

/* Marks in checked mode that a call of the team begins or ends: two that are under way at once are
 * found (WEFT_GPU_BUSY), and one of a team that is no more. */
int weft_gpu_mark_call(struct weft_gpu_call call, bool begins, weft_cu_stream stream);

/* The same without a multiprocessor, in two halves that make a pair in every call: stream memory
 * operations write 1 to all members' words, wait for 1 from all, and reset. words[i]: where member
 * i has those of the half, ready or done; 8-byte aligned. The stream is the GPU's. */
enum weft_gpu_half { WEFT_GPU_READY, WEFT_GPU_DONE };
int weft_gpu_meet(const struct weft_gpu *gpu, uint32_t *const *words, int me, int n,
                  weft_cu_stream stream);

/* Finds out by trying, in a stream and in a graph, whether the driver takes writes without a fence:
 * NVIDIA documents them for an older form of the call alone. The word, in reach of the GPU, becomes
 * 0. The context is current; waits for the stream of host calls. */
int weft_gpu_try_writes(struct weft_gpu *gpu, uint32_t *word);

/* Signal pads, with system scope; `pads` lie in GPU memory. A kernel that waits for more than
 * timeout_ms says so and traps, as PyTorch's do. A barrier, which has no `peer`, puts to all and
 * waits for all. */
int weft_gpu_pad(enum weft_pad_op op, const struct weft_pad *pad, int peer, weft_cu_stream stream);

#endif
