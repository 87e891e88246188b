/* SPDX-License-Identifier: BSD-3-Clause */
/* A copy is a lane's (transport/gpu_lane.h), which the host waits for; blocks are packed on their
 * way, so that there is not a copy for each. */
#include <pthread.h>
#include <stdlib.h>
#include "base/size.h"
#include "device/device.h"

/* --- Who works -------------------------------------------------------------------------------- */

const struct weft_gpu *weft_device_must_agent(int pe) {
    const struct weft_gpu *agent = weft_device_agent(pe);
    if (!agent)
        weft_job_panic_bare("%s", weft_fail_text());
    return agent;
}

void weft_device_agent_complete(const struct weft_gpu *agent) {
    struct weft_waiter waiter = {.pe = WEFT_PE_NONE};
    struct weft_gpu_scope scope = weft_gpu_enter(agent);
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
void weft_stage_copy(const struct weft_transfer *transfer, int pe) {
    const struct weft_gpu *agent = weft_device_must_agent(pe);
    weft_device_must(weft_gpu_lane_copy(agent, transfer, weft_device.gpu->stream));
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
        weft_job_panic("no memory for copies through memory of the host");
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
static void blocks_pack(const struct weft_strided_copy *c, const struct weft_gpu *agent,
                        const void *side) {
    if (!agent && weft_gpu_memory_kind(side) != WEFT_MEMORY_DEVICE) {
        weft_rma_copy_strided(c);
        return;
    }
    const struct weft_gpu *gpu = agent ? agent : weft_device.gpu;
    struct weft_gpu_scope scope = weft_gpu_enter(gpu);
    weft_device_must(
        weft_gpu_copy_blocks((struct weft_array){c->dest, c->dest_step, NULL},
                             (struct weft_array){(char *)c->source, c->source_step, NULL}, c->bytes,
                             c->nblocks, gpu->stream));
    weft_gpu_leave(scope);
    if (agent)
        weft_device_agent_complete(agent);
    else
        weft_device_complete();
}

static void buffer_copy_packed(const struct weft_strided_copy *c, const struct weft_gpu *in,
                               const struct weft_gpu *out) {
    ptrdiff_t packed = (ptrdiff_t)c->bytes;
    size_t most = BUFFER_BYTES / c->bytes;
    for (size_t done = 0, count; done < c->nblocks; done += count) {
        count = c->nblocks - done < most ? c->nblocks - done : most;
        char *dest = c->dest + (ptrdiff_t)done * c->dest_step;
        const char *source = c->source + (ptrdiff_t)done * c->source_step;
        struct weft_strided_copy filled = {buffer.at,      source,   packed,
                                           c->source_step, c->bytes, count};
        struct weft_strided_copy emptied = {dest, buffer.at, c->dest_step, packed, c->bytes, count};
        blocks_pack(&filled, in, source);
        blocks_pack(&emptied, out, dest);
    }
}

/* Whether all went through the buffer: the rest is for copies, one by one. */
static bool blocks_stage_packed(const struct weft_strided_copy *c, bool put, int pe) {
    const struct weft_gpu *agent = weft_device_must_agent(pe);
    buffer_take();
    bool packs = buffer.registered && c->bytes <= BUFFER_BYTES;
    if (packs)
        buffer_copy_packed(c, put ? NULL : agent, put ? agent : NULL);
    pthread_mutex_unlock(&buffer.taken);
    return packs;
}

void weft_stage_copy_strided(const struct weft_strided_copy *c, bool put, int pe) {
    if (blocks_stage_packed(c, put, pe))
        return;
    for (ptrdiff_t i = 0; i < (ptrdiff_t)c->nblocks; i++)
        weft_stage_copy(&(struct weft_transfer){c->dest + i * c->dest_step,
                                                c->source + i * c->source_step, c->bytes, put},
                        pe);
}
