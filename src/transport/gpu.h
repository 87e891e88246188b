/* SPDX-License-Identifier: BSD-3-Clause */
/* A GPU: which one, its primary context, and the streams that calls of the host use.
 *
 * Opened locally, by the first call that needs it; a process that asks for no device memory pays
 * nothing. There is one object a GPU, for as long as somebody has it open. Functions return 0 or
 * -errno with text in weft_fail's place; the log, which has that, comes with this header. */
#ifndef WEFT_TRANSPORT_GPU_H
#define WEFT_TRANSPORT_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/cuda.h"
#include "base/log.h"

struct weft_gpu {
    int ordinal; /* as this process counts GPUs */
    weft_cu_device device;
    weft_cu_context context; /* the primary one, which the CUDA runtime and PyTorch use */
    struct weft_cu_uuid uuid;
    char name[64];
    int capability; /* 90 for 9.0 */
    int sms;
    size_t memory_bytes;
    size_t granularity;          /* of physical memory, bytes */
    bool sees_registered_memory; /* registered host memory, at the host's addresses */
    bool host_atomics;     /* its read-modify-write on host words are atomic with processors' */
    bool wide_words;       /* stream memory operations take 64 bits */
    bool unordered_writes; /* and writes without a fence: once weft_gpu_try_writes has found out */
    weft_cu_stream stream; /* of calls of the host; non-blocking */
    weft_cu_stream rescue; /* high priority: releases waits when the job is over */
    unsigned holders;      /* who have opened it */
    struct weft_gpu *next; /* of those that are open */
};

/* Says which GPU is this PE's: `wanted` (an ordinal) if it is not negative; else the one whose
 * context is current in the calling thread; else PE modulo the number of GPUs. */
int weft_gpu_choose(int wanted, int pe, int *ordinal);

/* The GPU whose context is current in the calling thread, as an ordinal; -1 when none is. */
int weft_gpu_current(void);

/* Says what a GPU can do, and leaves it in peace. */
int weft_gpu_describe(struct weft_gpu *gpu, int ordinal);

/* Opens it, or finds it open; each open is closed once. By any thread. */
int weft_gpu_open(struct weft_gpu **gpu, int ordinal);
void weft_gpu_close(struct weft_gpu *gpu);

/* Brackets of every entry from the user's code: the GPU's context is current within, and a
 * capture that the user has under way forbids nothing. Nests. */
struct weft_gpu_scope {
    bool pushed;
    int capture_mode;
};
struct weft_gpu_scope weft_gpu_enter(const struct weft_gpu *gpu);
void weft_gpu_leave(struct weft_gpu_scope scope);

/* The properties of memory that is to be in a window. */
struct weft_cu_memory_properties weft_gpu_memory_properties(const struct weft_gpu *gpu);

/* Whether it is that of the host's calls, on any of the GPUs. */
bool weft_gpu_is_own_stream(weft_cu_stream stream);

/* Waits for all work of a stream. */
int weft_gpu_synchronize(weft_cu_stream stream);

/* True if the stream is being captured into a graph. */
bool weft_gpu_capturing(weft_cu_stream stream);

/* The kind of memory at an address: memory that only GPUs and their copy engines reach, host memory
 * that the GPU reaches as well, or other host memory. The driver takes 100 ns to answer for memory
 * that it knows, and 550 ns for other memory; a thread's stack and small blocks of malloc's are
 * known to be host memory without asking. */
enum weft_memory_kind { WEFT_MEMORY_HOST, WEFT_MEMORY_REGISTERED, WEFT_MEMORY_DEVICE };
enum weft_memory_kind weft_gpu_memory_kind(const void *p);

/* Makes host memory reachable for the GPUs that are open, at its own address. Granules are pages.
 */
int weft_gpu_register(void *at, size_t bytes);
void weft_gpu_unregister(void *at);

/* The number of these bytes that one copy of a copy engine can take: it refuses host memory of
 * which a part is registered by itself or not at all. Kernels do not mind. */
size_t weft_gpu_run(const void *p, size_t bytes);

/* Another process's GPU as a GPU of this one can reach it: */
struct weft_gpu_peer {
    int ordinal;  /* here; -1 when it is not visible in this process */
    bool same;    /* the very same */
    bool access;  /* this one's can be given its memory; where it is not visible nobody knows */
    bool atomics; /* atomics on its memory are atomic; where it is not visible nobody knows */
    int rank;     /* of the link; 0 is the fastest */
};

/* Its memory is out of this PE's GPU's reach, but not of this process: that GPU itself can be made
 * to copy (transport/gpu_agent.h). */
static inline bool weft_gpu_peer_staged(const struct weft_gpu_peer *peer) {
    return peer->ordinal >= 0 && !peer->access;
}

struct weft_gpu_peer weft_gpu_peer_of(const struct weft_gpu *gpu, const struct weft_cu_uuid *uuid);

#endif
