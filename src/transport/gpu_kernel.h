/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of Weft. They are in libweft_cuda.so, as machine code for each GPU and PTX for later
 * GPUs, and are loaded through the driver into the primary context.
 *
 * Each kernel is named once, is defined in src/<room>/<noun>.cu, and is extern "C". Every kernel's
 * first argument is a struct weft_gpu_abort by value, with the word that is set when the job is
 * over. Kernels give correct results with any number of threads and blocks, also with one, except
 * those of fused/hopper.cu.
 *
 * On GPUs of compute capability 9.0 to 11 a kernel may start as soon as all blocks of the previous
 * kernel in the stream have ended. The stores of that kernel may not be visible yet, so every
 * kernel calls weft_dependency_wait first. */
#ifndef WEFT_TRANSPORT_GPU_KERNEL_H
#define WEFT_TRANSPORT_GPU_KERNEL_H

#include "weft/device/team.cuh"
#include "transport/gpu.h"
#include "transport/gpu_fold.h"
#include "transport/gpu_tile.h"

/* coll/marked.cu: sums of floats by marked words; the suffix is the number of members x units that
 * a thread has under way. */
/* clang-format off */
#define WEFT_GPU_MARKED_SHAPES(X, name) \
    X(name##_2x1) X(name##_2x4) X(name##_4x1) X(name##_4x2) X(name##_8x1)
#define WEFT_GPU_MARKED(X, name)           \
    WEFT_GPU_MARKED_SHAPES(X, name##_f32)  \
    WEFT_GPU_MARKED_SHAPES(X, name##_bf16) \
    WEFT_GPU_MARKED_SHAPES(X, name##_f16)
/* clang-format on */

/* coll/norm.cu: sums of rows that are normalised; the suffix is the most members. */
#define WEFT_GPU_NORMS(X, name) X(name##_2) X(name##_4) X(name##_8)

/* fused/hopper.cu: products of matrices, alone, with a gather of A, or with a sum of the products
 * of several GPUs. */
/* clang-format off */
#define WEFT_GPU_PRODUCT(X, name, suffix, width, transposed, percent) X(name##_##suffix)
#define WEFT_GPU_PRODUCTS(X, name)                        \
    WEFT_GPU_TILES(WEFT_GPU_PRODUCT, X, name##_bf16)      \
    WEFT_GPU_TILES(WEFT_GPU_PRODUCT, X, name##_f16)
/* clang-format on */

/* X(name) for everything that can be launched. */
#define WEFT_GPU_KERNELS(X)                                                          \
    X(weftk_copy)        /* transport/copy.cu: bytes, any alignment */               \
    X(weftk_copy_blocks) /* transport/copy.cu: strided blocks */                     \
    X(weftk_amo)         /* transport/word.cu: one atomic on one word */             \
    X(weftk_signal)      /* transport/word.cu: set or add, after all earlier work */ \
    X(weftk_wait)        /* transport/word.cu: until a comparison holds */           \
    X(weftk_try_atomics) /* transport/trial.cu: whether a link has atomics */        \
    X(weftk_put_signal)  /* transport/copy.cu: a small copy, then a signal */        \
    X(weftk_barrier)     /* transport/barrier.cu: of a team */                       \
    X(weftk_call_begin)  /* transport/call.cu: of a team, in checked mode */         \
    X(weftk_call_end)                                                                \
    X(weftk_copy_slice) /* transport/slice.cu: numbers that the GPU reads */         \
    X(weftk_put_slice_signal)                                                        \
    X(weftk_signal32)                                                                \
    X(weftk_wait32)                                                                  \
    X(weftk_pad_put) /* transport/pad.cu: PyTorch's signal pads */                   \
    X(weftk_pad_wait)                                                                \
    X(weftk_pad_barrier)                                                             \
    X(weftk_meet)        /* coll/meet.cu: one half of a meeting, as weft_gpu_meet */ \
    X(weftk_ll_exchange) /* coll/ll.cu: small collectives by packets */              \
    X(weftk_ll_fold)                                                                 \
    X(weftk_ll_broadcast)                                                            \
    X(weftk_ll_sum_f32)                                                              \
    X(weftk_ll_sum_f64)                                                              \
    X(weftk_ll_sum_bf16)                                                             \
    X(weftk_ll_sum_f16)                                                              \
    X(weftk_ll_sum_u32)                                                              \
    X(weftk_ll_sum_u64)                                                              \
    X(weftk_push_exchange) /* coll/push.cu: blocks, pushed */                        \
    X(weftk_widen)         /* fused/scale.cu: 8-bit factors */                       \
    X(weftk_scale)         /* fused/scale.cu: products */                            \
    X(weftk_experts_send)  /* fused/experts_dispatch.cu: rows to experts */          \
    X(weftk_experts_place)                                                           \
    X(weftk_experts_take)                                                            \
    X(weftk_experts_clear) /* fused/experts_combine.cu: their sums */                \
    X(weftk_experts_index)                                                           \
    X(weftk_experts_add)                                                             \
    X(weftk_experts_sum)                                                             \
    X(weftk_kv_send)       /* fused/kv_shuffle.cu: blocks of caches */               \
    X(weftk_exchange_tell) /* fused/row_exchange.cu: rows to other members */        \
    X(weftk_exchange_place)                                                          \
    X(weftk_exchange_push)                                                           \
    X(weftk_norm_f32) /* coll/norm.cu: rows, and sums of rows of several members */  \
    X(weftk_norm_bf16)                                                               \
    X(weftk_norm_f16)                                                                \
    WEFT_GPU_NORMS(X, weftk_norm_f32)                                                \
    WEFT_GPU_NORMS(X, weftk_norm_bf16)                                               \
    WEFT_GPU_NORMS(X, weftk_norm_f16)                                                \
    WEFT_GPU_MARKED(X, weftk_marked)                                                 \
    WEFT_GPU_PRODUCTS(X, weftk_product)                                              \
    WEFT_GPU_PRODUCTS(X, weftk_gather)                                               \
    WEFT_GPU_PRODUCTS(X, weftk_reduce)                                               \
    WEFT_GPU_FOLDS(WEFT_GPU_FOLD_NAME, X, weftk_fold) /* coll/fold_*.cu: reductions */

enum weft_gpu_kernel {
#define WEFT_GPU_KERNEL_NUMBER(name) WEFT_KERNEL_##name,
    WEFT_GPU_KERNELS(WEFT_GPU_KERNEL_NUMBER)
#undef WEFT_GPU_KERNEL_NUMBER
        WEFT_KERNELS
};

/* The value of rest_ns in struct weft_gpu_abort (weft/device/team.cuh) for waits that cost others
 * time: for words in host memory, which every poll reads over PCI Express, and for PEs that share a
 * GPU. */
enum { WEFT_GPU_REST_NS = 500 };
/* Indices into gave_up. [0] is set by any kernel that gave up. [1] is set by a kernel that exceeded
 * its time limit; it then traps, after which the context cannot run anything. The host sets [2] and
 * [3]: this PE's number, from 0 on, among the PEs that take turns to trap on its GPU, and their
 * count. */
enum {
    WEFT_GPU_GAVE_UP = WEFT_DEVICE_GAVE_UP,
    WEFT_GPU_TIMED_OUT,
    WEFT_GPU_TRAP_TURN,
    WEFT_GPU_TRAP_TURNS,
    WEFT_GPU_FAULT = WEFT_DEVICE_FAULT, /* enum weft_gpu_fault: a kernel has detected that it must
                                           not run; the host then ends the job */
    WEFT_GPU_FAULT_DETAIL =
        WEFT_DEVICE_FAULT_DETAIL, /* the slot of the kernel's team, or as below */
};
enum weft_gpu_fault {
    WEFT_GPU_NO_FAULT,
    WEFT_GPU_STALE, /* its call belongs to a team that has ended */
    WEFT_GPU_BUSY,  /* another call of its team is under way */
    /* it uses a handle that has been freed; the detail is its generation */
    WEFT_GPU_STALE_HANDLE = WEFT_DEVICE_FAULT_STALE,
    WEFT_GPU_ABORT =
        WEFT_DEVICE_FAULT_ABORT, /* it ends the job with the status in the detail (weft_abort) */
    WEFT_GPU_ROWS,               /* there is no room for all rows of the expert in the detail */
    WEFT_GPU_KV_PAIR,         /* the member in the detail cannot be a peer, or the role is wrong */
    WEFT_GPU_KV_BLOCK,        /* the entry in the detail has a wrong number of a block */
    WEFT_GPU_EXCHANGE_DEST,   /* the member in the detail has no room for its rows */
    WEFT_GPU_EXCHANGE_SOURCE, /* the entry in the detail is not in this member's source */
};
extern struct weft_gpu_abort weft_gpu_abort;

/* True if work that may wait for a peer has been enqueued or captured: a kernel (set by
 * weft_gpu_launch) or stream memory operations (set by weft_gpu_rescue_note). Atomic. */
extern bool weft_gpu_waits;

/* Opens a GPU with its kernels: loads libweft_cuda.so, from beside libweft.so or from the loader's
 * path, into the GPU's context once; the last close unloads it. Each open needs one close, by any
 * thread. Returns -ENOSYS with text if the library is not installed; then the GPU is not open
 * either. */
int weft_gpu_kernels_open(struct weft_gpu **gpu, int ordinal);
void weft_gpu_kernels_close(struct weft_gpu *gpu);

/* Returns a number of threads in whole warps: at least one warp, and at most `most` threads. */
enum { WEFT_GPU_WARP = 32 };
static inline unsigned weft_gpu_warps(size_t threads, unsigned most) {
    size_t warps = threads > 0 ? (threads + WEFT_GPU_WARP - 1) / WEFT_GPU_WARP : 1;
    return warps * WEFT_GPU_WARP < most ? (unsigned)warps * WEFT_GPU_WARP : most;
}

/* Enqueues a kernel on a stream of the current context. `arguments` points to its arguments after
 * the first, and ends with NULL. Sets weft_gpu_waits if the kernel may wait for a peer. */
int weft_gpu_launch(enum weft_gpu_kernel kernel, unsigned blocks, unsigned threads,
                    weft_cu_stream stream, void *const *arguments);

/* Enqueues a kernel likewise. cluster_blocks: 1 without clusters; shared_bytes: dynamic shared
 * memory of a block, may be 0. */
struct weft_gpu_shape {
    unsigned blocks, threads;
    unsigned cluster_blocks, shared_bytes;
};
int weft_gpu_launch_shape(enum weft_gpu_kernel kernel, const struct weft_gpu_shape *shape,
                          weft_cu_stream stream, void *const *arguments);

#endif
