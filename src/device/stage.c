/* SPDX-License-Identifier: BSD-3-Clause */
/* A copy is a lane's (transport/gpu_lane.h), which the host waits for; blocks are packed on their
 * way, so that there is not a copy for each. */
#include "device/stage.h"
#include <pthread.h>
#include <stdlib.h>
#include "base/size.h"
#include "transport/gpu_lane.h"
#include "core/rma.h"
#include "device/queue.h"

/* --- Who works -------------------------------------------------------------------------------- */

const struct weft_gpu_agent *weft_device_must_agent(int pe) {
    const struct weft_gpu_agent *agent = weft_device_agent(pe);
    if (!agent)
        weft_job_panic("%s", weft_fail_text());
    return agent;
}

void weft_device_agent_complete(const struct weft_gpu_agent *agent) {
    struct weft_waiter waiter = {.pe = WEFT_PE_NONE};
    struct weft_gpu_scope scope = weft_gpu_agent_enter(agent);
    int error;
    while ((error = weft_cuda.cuStreamQuery(agent->stream)) == WEFT_CU_NOT_READY)
        weft_waiter_turn(&waiter);
    weft_waiter_end(&waiter);
    weft_gpu_leave(scope);
    weft_device_must(weft_cuda_check(error, "waiting for the GPU of another PE"));
    if (weft_job_aborted())
        weft_job_die_aborted();
}

/* --- Copies ----------------------------------------------------------------------------------- */

/* The stream of host calls has a lane, as any stream of the program's. */
void weft_stage_put(void *to, const void *from, size_t bytes, int pe) {
    const struct weft_gpu_agent *agent = weft_device_must_agent(pe);
    weft_device_must(weft_gpu_lane_put(agent, to, from, bytes, weft_device.gpu->stream));
    weft_device_complete();
}

void weft_stage_get(void *to, const void *from, size_t bytes, int pe) {
    const struct weft_gpu_agent *agent = weft_device_must_agent(pe);
    weft_device_must(weft_gpu_lane_get(agent, to, from, bytes, weft_device.gpu->stream));
    weft_device_complete();
}

/* --- Blocks ----------------------------------------------------------------------------------- */

/* Where blocks lie side by side on their way. One call at a time: threads that stage at once would
 * share the same bus anyway. */
enum { BUFFER_BYTES = 1 << 20 };

static struct {
    pthread_mutex_t taken;
    char *at;
    bool registered; /* kernels reach it */
} buffer = {.taken = PTHREAD_MUTEX_INITIALIZER};

static void buffer_take(void) {
    pthread_mutex_lock(&buffer.taken);
    if (buffer.at)
        return;
    buffer.at = aligned_alloc(weft_page_bytes(), BUFFER_BYTES);
    if (!buffer.at)
        weft_job_panic("%s: no memory for copies through memory of the host", weft_current_call);
    buffer.registered = weft_gpu_register(buffer.at, BUFFER_BYTES) == 0;
}

void weft_stage_close(void) {
    if (buffer.registered)
        weft_gpu_unregister(buffer.at);
    free(buffer.at);
    buffer.at = NULL;
    buffer.registered = false;
}

/* Into the buffer or out of it, by `agent`; NULL: by this PE's GPU, or where the other side is the
 * host's by this processor. */
static void blocks_pack(const struct weft_device_blocks *b, const struct weft_gpu_agent *agent,
                        const void *side) {
    if (!agent && weft_gpu_memory_kind(side) != WEFT_MEMORY_DEVICE) {
        weft_rma_copy_blocks(b->to, b->to_step, b->from, b->from_step, b->bytes, b->nblocks);
        return;
    }
    struct weft_gpu_scope scope =
        agent ? weft_gpu_agent_enter(agent) : weft_gpu_enter(weft_device.gpu);
    weft_device_must(weft_gpu_copy_blocks((struct weft_array){b->to, b->to_step, NULL}, b->from,
                                          b->from_step, b->bytes, b->nblocks,
                                          agent ? agent->stream : weft_device.gpu->stream));
    weft_gpu_leave(scope);
    if (agent)
        weft_device_agent_complete(agent);
    else
        weft_device_complete();
}

static void buffer_copy_packed(const struct weft_device_blocks *b, const struct weft_gpu_agent *in,
                               const struct weft_gpu_agent *out) {
    ptrdiff_t packed = (ptrdiff_t)b->bytes;
    size_t most = BUFFER_BYTES / b->bytes;
    for (size_t done = 0, count; done < b->nblocks; done += count) {
        count = b->nblocks - done < most ? b->nblocks - done : most;
        char *to = b->to + (ptrdiff_t)done * b->to_step;
        const char *from = b->from + (ptrdiff_t)done * b->from_step;
        struct weft_device_blocks filled = {buffer.at, from, packed, b->from_step, b->bytes, count};
        struct weft_device_blocks emptied = {to, buffer.at, b->to_step, packed, b->bytes, count};
        blocks_pack(&filled, in, from);
        blocks_pack(&emptied, out, to);
    }
}

/* Whether all went through the buffer: the rest is for copies, one by one. */
static bool blocks_stage_packed(const struct weft_device_blocks *b, bool put, int pe) {
    const struct weft_gpu_agent *agent = weft_device_must_agent(pe);
    buffer_take();
    bool packs = buffer.registered && b->bytes <= BUFFER_BYTES;
    if (packs)
        buffer_copy_packed(b, put ? NULL : agent, put ? agent : NULL);
    pthread_mutex_unlock(&buffer.taken);
    return packs;
}

static void blocks_stage_each(const struct weft_device_blocks *b, int pe,
                              void (*how)(void *, const void *, size_t, int)) {
    for (ptrdiff_t i = 0; i < (ptrdiff_t)b->nblocks; i++)
        how(b->to + i * b->to_step, b->from + i * b->from_step, b->bytes, pe);
}

void weft_stage_put_blocks(const struct weft_device_blocks *blocks, int pe) {
    if (!blocks_stage_packed(blocks, true, pe))
        blocks_stage_each(blocks, pe, weft_stage_put);
}

void weft_stage_get_blocks(const struct weft_device_blocks *blocks, int pe) {
    if (!blocks_stage_packed(blocks, false, pe))
        blocks_stage_each(blocks, pe, weft_stage_get);
}
