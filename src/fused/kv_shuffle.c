/* SPDX-License-Identifier: BSD-3-Clause */
/* weft_kv_shuffle on a stream: the members meet, the senders write to their receivers' caches, and
 * the members meet again. A kernel sends, or, if the members are apart, a thread that reads the
 * tables when the stream has reached the call. */
#include "fused/kv_shuffle.h"
#include <stdlib.h>
#include <string.h>
#include "base/size.h"
#include "transport/gpu_kernel.h"
#include "coll/kv_blocks.h"
#include "coll/on_stream.h"
#include "fused/fused.h"

/* --- By a kernel ------------------------------------------------------------------------------ */

/* Cuts blocks into parts: large enough for the speed of a link, and small enough that all warps
 * have work. */
static void set_parts(struct weft_kv_task *task) {
    enum { PART_BYTES = 8192 };
    task->part_bytes = PART_BYTES;
    task->parts = (uint32_t)weft_steps_up(task->block_bytes, PART_BYTES);
}

static int launch(const struct weft_on_stream *on, struct weft_kv_task *task) {
    enum { WARPS = WEFT_KV_THREADS / WEFT_GPU_WARP };
    size_t blocks = weft_steps_up(task->caches * task->count * task->parts, WARPS);
    size_t most = (size_t)weft_device.gpu->sms;
    void *arguments[] = {task, NULL};
    return weft_gpu_launch(WEFT_KERNEL_weftk_kv_send, (unsigned)(blocks < most ? blocks : most),
                           WEFT_KV_THREADS, on->stream, arguments);
}

/* Enqueues the kernels, each for some of the caches. */
static int send_by_kernel(const struct weft_on_stream *on, const struct weft_fused_kv *kv) {
    size_t bytes = kv->caches->blocks * kv->caches->block_bytes;
    struct weft_kv_task task = {.n = on->team->npes,
                                .me = on->team->my_pe,
                                .blocks = kv->caches->blocks,
                                .block_bytes = kv->caches->block_bytes,
                                .count = kv->count,
                                .pair = kv->peer_and_role,
                                .from = kv->from,
                                .to = kv->to};
    int error = 0;
    set_parts(&task);
    for (size_t i = 0; i < kv->caches->count && error == 0; i++) {
        task.own[task.caches] = kv->caches->at[i];
        error = weft_on_stream_find(&task.all[task.caches++], on, "caches->at", kv->caches->at[i],
                                    bytes);
        if (error == 0 && (task.caches == WEFT_KV_CACHES_MAX || i + 1 == kv->caches->count)) {
            error = launch(on, &task);
            task.caches = 0;
        }
    }
    return error;
}

/* --- By a thread ------------------------------------------------------------------------------ */

/* The arguments of the task; the addresses of the caches are stored behind the struct. */
struct apart {
    struct weft_group group;
    struct weft_fused_kv kv;
    weft_kv_caches caches;
    _Alignas(16) char at[];
};

static void *copy_here(const void *table, size_t bytes) {
    void *copy = malloc(bytes > 0 ? bytes : 1);
    if (!copy)
        weft_job_panic("there is no memory for a table of %zu bytes", bytes);
    weft_device_copy(copy, table, bytes);
    return copy;
}

static void apart_run(const void *arguments) {
    const struct apart *apart = arguments;
    const struct weft_fused_kv *kv = &apart->kv;
    int32_t pair[2];
    struct weft_kv_blocks blocks = {.caches = apart->caches};
    blocks.caches.at = (void *const *)apart->at;
    weft_device_copy(pair, kv->peer_and_role, sizeof pair);
    blocks.peer = pair[0];
    blocks.role = pair[1];
    if (blocks.role == WEFT_KV_SENDS && blocks.peer != -1) {
        blocks.count = kv->count;
        blocks.from = copy_here(kv->from, kv->count * sizeof *kv->from);
        blocks.to = copy_here(kv->to, kv->count * sizeof *kv->to);
    }
    if (weft_kv_blocks_check(&blocks, apart->group.me, apart->group.npes))
        weft_job_panic("%s", weft_fail_text());
    weft_kv_blocks_send(&apart->group, &weft_mover_device, &blocks);
    weft_mover_device.complete();
    free((void *)blocks.from);
    free((void *)blocks.to);
}

static int send_by_thread(const struct weft_on_stream *on, const struct weft_fused_kv *kv) {
    size_t list = kv->caches->count * sizeof *kv->caches->at, bytes = sizeof(struct apart) + list;
    struct apart *apart = malloc(bytes);
    struct weft_proxy_task task = {apart_run, apart, bytes};
    if (!apart)
        return weft_fail(-ENOMEM, "there is no memory for a call of %zu bytes", bytes);
    *apart = (struct apart){weft_group_of((struct weft_team *)on->team), *kv, *kv->caches};
    memcpy(apart->at, kv->caches->at, list);
    int error = weft_proxy_run(NULL, &task, on->stream);
    free(apart);
    return error;
}

/* --- The call --------------------------------------------------------------------------------- */

/* Checks all caches before anything is enqueued. */
static int check_reached(const struct weft_on_stream *on, const weft_kv_caches *caches) {
    struct weft_array unused;
    int error = 0;
    for (size_t i = 0; i < caches->count && error == 0; i++)
        error = weft_on_stream_find(&unused, on, "caches->at", caches->at[i],
                                    caches->blocks * caches->block_bytes);
    return error;
}

int weft_fused_kv_shuffle(const struct weft_on_stream *on, const struct weft_fused_kv *kv) {
    bool nothing = kv->caches->count * kv->caches->blocks * kv->caches->block_bytes == 0;
    bool apart = weft_on_stream_is_apart(on);
    int error = nothing || apart ? 0 : check_reached(on, kv->caches);
    error = error ? error : weft_stream_sync(on->team, on->stream);
    if (error == 0 && !nothing && kv->count > 0)
        error = apart ? send_by_thread(on, kv) : send_by_kernel(on, kv);
    return error ? error : weft_stream_sync(on->team, on->stream);
}
