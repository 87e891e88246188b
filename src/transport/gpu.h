/* SPDX-License-Identifier: BSD-3-Clause */
/* A GPU: its properties, its primary context, and the streams used by calls of the host.
 *
 * It is opened locally, by the first call that needs it, so a process that uses no device memory
 * pays nothing. There is one object per GPU, which exists as long as somebody has it open.
 * Functions return 0 or -errno, with text set by weft_fail; this header includes the log, which
 * declares that. */
#ifndef WEFT_TRANSPORT_GPU_H
#define WEFT_TRANSPORT_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/cuda.h"
#include "base/log.h"

struct weft_gpu {
    int ordinal; /* this process's number for the GPU */
    weft_cu_device device;
    weft_cu_context context; /* the primary context, which the CUDA runtime and PyTorch use */
    struct weft_cu_uuid uuid;
    char name[64];
    int capability; /* 90 means 9.0 */
    int sms;
    size_t memory_bytes;
    size_t granularity;          /* of physical memory, in bytes */
    bool sees_registered_memory; /* kernels can access registered host memory, at the host's
                                    addresses */
    bool host_atomics;     /* its read-modify-write on host words is atomic with processors' */
    bool wide_words;       /* stream memory operations support 64 bits */
    bool unordered_writes; /* it accepts writes without a fence; found out by weft_gpu_try_writes */
    weft_cu_stream stream; /* for calls of the host; non-blocking */
    weft_cu_stream rescue; /* high priority: releases waits when the job is over */
    unsigned holders;      /* number of opens not yet closed */
    struct weft_gpu *next; /* in the list of open GPUs */
};

/* Chooses this PE's GPU: `wanted` (an ordinal) if it is not negative; else the GPU whose context is
 * current in the calling thread; else `pe`, this PE's number among the PEs of its host, modulo the
 * number of GPUs. */
int weft_gpu_choose(int wanted, int pe, int *ordinal);

/* Stores a GPU's properties without opening it. */
int weft_gpu_describe(struct weft_gpu *gpu, int ordinal);

/* Opens the GPU, or adds a holder if it is open. Each open needs one close. Callable by any thread.
 */
int weft_gpu_open(struct weft_gpu **gpu, int ordinal);
void weft_gpu_close(struct weft_gpu *gpu);

/* Bracket every entry from the user's code: between them the GPU's context is current, and a
 * capture that the user has begun does not restrict calls of the driver. They nest. */
struct weft_gpu_scope {
    bool pushed;
    int capture_mode;
};
struct weft_gpu_scope weft_gpu_enter(const struct weft_gpu *gpu);
void weft_gpu_leave(struct weft_gpu_scope scope);

/* Returns the properties of memory for windows. */
struct weft_cu_memory_properties weft_gpu_memory_properties(const struct weft_gpu *gpu);

/* Returns whether it is the stream of host calls of any GPU. */
bool weft_gpu_is_own_stream(weft_cu_stream stream);

/* Waits for all work of a stream. */
int weft_gpu_synchronize(weft_cu_stream stream);

/* Returns true if the stream is being captured into a graph. */
bool weft_gpu_capturing(weft_cu_stream stream);

/* Stores in *id the number of the capture that the stream takes part in, which no other capture of
 * the process has, or 0 if the stream is not captured. Returns 0 or -errno with text. */
int weft_gpu_capture_id(weft_cu_stream stream, uint64_t *id);

/* Returns the kind of memory at an address: memory that only GPUs and their copy engines can
 * access, host memory that the GPU can access as well, or other host memory. The driver takes 100
 * ns to answer for memory that it knows, and 550 ns for other memory; a thread's stack and small
 * blocks of malloc are recognised as host memory without asking. */
enum weft_memory_kind { WEFT_MEMORY_HOST, WEFT_MEMORY_REGISTERED, WEFT_MEMORY_DEVICE };
enum weft_memory_kind weft_gpu_memory_kind(const void *p);

/* Registers host memory, so that the open GPUs can access it at its own address. The address and
 * size are multiples of the page size. */
int weft_gpu_register(void *at, size_t bytes);
void weft_gpu_unregister(void *at);

/* Returns how many of these bytes a copy engine can copy at once: it refuses a range of host memory
 * if a part of it is registered separately or not at all. Kernels accept such a range. */
size_t weft_gpu_run(const void *p, size_t bytes);

/* Another process's GPU, as seen by a GPU of this process. */
struct weft_gpu_peer {
    int ordinal;  /* this process's ordinal for it; -1 if it is not visible here */
    bool same;    /* it is the same GPU */
    bool access;  /* its memory can be mapped for this GPU; unknown if it is not visible */
    bool atomics; /* atomics on its memory are atomic; unknown if it is not visible */
    int rank;     /* of the link; 0 is the fastest */
};

/* Returns whether the GPU is staged: this PE's GPU cannot access its memory, but this process sees
 * it, and can make it copy (transport/gpu_agent.h). */
static inline bool weft_gpu_peer_staged(const struct weft_gpu_peer *peer) {
    return peer->ordinal >= 0 && !peer->access;
}

struct weft_gpu_peer weft_gpu_peer_of(const struct weft_gpu *gpu, const struct weft_cu_uuid *uuid);

#endif
