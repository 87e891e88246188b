/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends blocks of caches to another member. Warps take parts of blocks in turn, the caches one
 * after another, and read the numbers of the blocks from the tables. */
#define WEFT_KERNEL_THREADS
#include "fused/kv_shuffle.h"
#include "fused/warps.cuh"

/* Returns the member to which this one sends; -1 if it does not send. */
WEFT_DEVICE int receiver_of(struct weft_gpu_abort abort, const struct weft_kv_task &task) {
    enum { SENDS = 0, RECEIVES = 1 }; /* of weft.h */
    int32_t peer = weft_ld_weak(&task.pair[0]), role = weft_ld_weak(&task.pair[1]);
    if (peer == -1 || (role == RECEIVES && peer >= 0 && peer < task.n && peer != task.me))
        return -1;
    if (role == SENDS && peer >= 0 && peer < task.n && peer != task.me)
        return (int)peer;
    weft_fault(abort, WEFT_GPU_KV_PAIR, (uint32_t)peer);
    return -1;
}

WEFT_DEVICE void send_part(struct weft_gpu_abort abort, const struct weft_kv_task &task, int peer,
                           size_t piece) {
    size_t part = piece % task.parts, entry = piece / task.parts % task.count;
    size_t cache = piece / task.parts / task.count, begin = part * task.part_bytes;
    int64_t from = weft_ld_weak(&task.from[entry]), to = weft_ld_weak(&task.to[entry]);
    size_t left = task.block_bytes - begin, bytes = left < task.part_bytes ? left : task.part_bytes;
    if (from == -1)
        return;
    if ((uint64_t)from >= task.blocks || (uint64_t)to >= task.blocks) {
        weft_fault(abort, WEFT_GPU_KV_BLOCK, (uint32_t)entry);
        return;
    }
    weft_copy_w(weft_array_of(&task.all[cache], peer) + (size_t)to * task.block_bytes + begin,
                task.own[cache] + (size_t)from * task.block_bytes + begin, bytes);
}

extern "C" __global__ void __launch_bounds__(WEFT_KV_THREADS, 1)
    weftk_kv_send(struct weft_gpu_abort abort, struct weft_kv_task task) {
    weft_dependency_wait();
    int peer = receiver_of(abort, task);
    size_t pieces = peer < 0 ? 0 : task.caches * task.count * task.parts;
    for (size_t piece = warp_index(); piece < pieces; piece += warp_count())
        send_part(abort, task, peer, piece);
}
