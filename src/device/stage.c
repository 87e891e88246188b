/* SPDX-License-Identifier: BSD-3-Clause */
/* A lane (transport/gpu_lane.h) does the copies, and the host waits for it. Blocks are packed on
 * their way, so that each does not need a copy of its own. */
#include <pthread.h>
#include <stdlib.h>
#include "base/size.h"
#include "device/device.h"

/* --- Agents ----------------------------------------------------------------------------------- */

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

/* Uses the lane of the stream of host calls, which has one as the program's streams do. */
void weft_stage_copy(const struct weft_transfer *transfer, int pe) {
    const struct weft_gpu *agent = weft_device_must_agent(pe);
    weft_device_must(weft_gpu_lane_copy(agent, transfer, weft_device.gpu->stream));
    weft_device_complete();
}

/* --- Blocks ----------------------------------------------------------------------------------- */

/* One call at a time: threads that stage at the same time would share the same bus anyway. */
static struct {
    pthread_mutex_t taken;
    char *at;
    bool registered;
} buffer = {.taken = PTHREAD_MUTEX_INITIALIZER};

char *weft_stage_take(bool *registered) {
    pthread_mutex_lock(&buffer.taken);
    if (!buffer.at) {
        buffer.at = aligned_alloc(weft_page_bytes(), WEFT_STAGE_BYTES);
        if (!buffer.at)
            weft_job_panic("no memory for copies through host memory");
        buffer.registered = weft_gpu_register(buffer.at, WEFT_STAGE_BYTES) == 0;
    }
    if (registered)
        *registered = buffer.registered;
    return buffer.at;
}

void weft_stage_give(void) {
    pthread_mutex_unlock(&buffer.taken);
}

void weft_stage_close(void) {
    if (buffer.registered)
        weft_gpu_unregister(buffer.at);
    free(buffer.at);
    buffer.at = NULL;
    buffer.registered = false;
}

static int blocks_enqueue(const struct weft_strided_copy *c, weft_cu_stream stream) {
    return weft_gpu_copy_blocks((struct weft_array){c->dest, c->dest_step, NULL},
                                (struct weft_array){(char *)c->source, c->source_step, NULL},
                                c->bytes, c->nblocks, stream);
}

void weft_stage_pack(const struct weft_strided_copy *c, struct weft_packer by) {
    if (by.processor) {
        weft_rma_copy_strided(c);
    } else if (by.agent) {
        struct weft_gpu_scope scope = weft_gpu_enter(by.agent);
        weft_device_must(blocks_enqueue(c, by.agent->stream));
        weft_gpu_leave(scope);
        weft_device_agent_complete(by.agent);
    } else {
        weft_device_must(blocks_enqueue(c, weft_device.gpu->stream));
        weft_device_complete();
    }
}

void weft_stage_copy_packed(const struct weft_strided_copy *c, char *at, size_t bytes,
                            struct weft_packer in, struct weft_packer out) {
    ptrdiff_t packed = (ptrdiff_t)c->bytes;
    size_t most = bytes / c->bytes;
    for (size_t done = 0, count; done < c->nblocks; done += count) {
        count = c->nblocks - done < most ? c->nblocks - done : most;
        char *dest = c->dest + (ptrdiff_t)done * c->dest_step;
        const char *source = c->source + (ptrdiff_t)done * c->source_step;
        weft_stage_pack(
            &(struct weft_strided_copy){at, source, packed, c->source_step, c->bytes, count}, in);
        weft_stage_pack(
            &(struct weft_strided_copy){dest, at, c->dest_step, packed, c->bytes, count}, out);
    }
}

/* Blocks that do not fit into the buffer are copied one by one. */
void weft_stage_copy_strided(const struct weft_strided_copy *c, bool put, int pe) {
    const void *here = put ? c->source : c->dest;
    struct weft_packer theirs = {.agent = weft_device_must_agent(pe)},
                       own = {.processor = weft_gpu_memory_kind(here) != WEFT_MEMORY_DEVICE};
    bool registered;
    char *at = weft_stage_take(&registered);
    bool packs = registered && c->bytes <= WEFT_STAGE_BYTES;
    if (packs)
        weft_stage_copy_packed(c, at, WEFT_STAGE_BYTES, put ? own : theirs, put ? theirs : own);
    weft_stage_give();
    for (ptrdiff_t i = 0; !packs && i < (ptrdiff_t)c->nblocks; i++)
        weft_stage_copy(&(struct weft_transfer){c->dest + i * c->dest_step,
                                                c->source + i * c->source_step, c->bytes, put},
                        pe);
}
