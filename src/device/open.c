/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include "transport/gpu_kernel.h"
#include "transport/gpu_rescue.h"
#include "device/device.h"

/* The facts about its GPU that each PE contributes. */
struct device_facts {
    struct weft_cu_uuid uuid;
    uint64_t memory_bytes, granularity;
};

/* A GPU of another host is a different GPU, even if it has the same number. */
static struct weft_gpu_peer peer_of(const struct device_facts *facts, int pe) {
    return weft_boot_is_here(pe) ? weft_gpu_peer_of(weft_device.gpu, &facts->uuid)
                                 : (struct weft_gpu_peer){.ordinal = -1};
}

/* The largest memory determines the size of slots, and the largest granule that of extents, so that
 * both are equal on all PEs. */
static void facts_take(const struct device_facts *all, size_t *slot_bytes) {
    int before = 0; /* PEs on this GPU with lower numbers */
    *slot_bytes = 0;
    weft_device.neighbours = 0;
    for (int pe = 0; pe < weft_job.npes; pe++) {
        struct weft_gpu_peer peer = peer_of(&all[pe], pe);
        weft_device.neighbours += peer.same;
        before += peer.same && pe < weft_job.pe;
        weft_device.peers[pe] = weft_is_far(pe) ? (struct weft_gpu_peer){.ordinal = -1} : peer;
        weft_device.staged |= weft_gpu_peer_staged(&weft_device.peers[pe]);
        if (all[pe].memory_bytes > *slot_bytes)
            *slot_bytes = all[pe].memory_bytes;
        if (all[pe].granularity > weft_device.gpu->granularity)
            weft_device.gpu->granularity = all[pe].granularity;
    }
    weft_gpu_rescue_take_turns(before, weft_device.neighbours);
    /* If some PEs are staged, the words of teams lie in host memory (words.c). */
    bool rests = weft_device.staged || weft_device.neighbours > 1;
    weft_gpu_abort.rest_ns = rests ? WEFT_GPU_REST_NS : 0;
}

/* Opens the agents that this PE needs. */
static int agents_open(void) {
    int error = 0;
    for (int pe = 0; pe < weft_job.npes && error == 0; pe++)
        if (weft_gpu_peer_staged(&weft_device.peers[pe]) && !weft_device_agent(pe))
            error = -ENODEV;
    return error;
}

static int facts_meet(size_t *slot_bytes) {
    size_t npes = (size_t)weft_job.npes;
    struct device_facts mine = {weft_device.gpu->uuid, weft_device.gpu->memory_bytes,
                                weft_device.gpu->granularity};
    struct device_facts *all = calloc(npes, sizeof *all);
    struct weft_exchange exchange = {.mine = &mine, .bytes = sizeof mine, .all = all};
    weft_device.peers = calloc(npes, sizeof *weft_device.peers);
    int error = all && weft_device.peers ? 0 : weft_fail(-ENOMEM, "no memory");
    error = weft_device_agree(error);
    if (error == 0 && (error = weft_boot_exchange(&exchange)) == 0)
        facts_take(all, slot_bytes);
    free(all);
    if (error)
        return error;
    weft_device.staged = weft_sync_min(weft_team_find(SHMEM_TEAM_WORLD), !weft_device.staged) == 0;
    return weft_device_agree(agents_open());
}

static int windows_open(size_t slot_bytes) {
    int error = weft_device_window_alloc(&weft_device.heap, slot_bytes);
    if (error == 0 && weft_job.far)
        error = weft_device_messages_open();
    error = weft_device_agree(error);
    if (error == 0)
        error = weft_device_words_open();
    return error ? error : weft_device_agree(weft_device_heap_open());
}

/* Makes the channels of all PEs early, so that the simplest programs never wait for others in their
 * first collective. */
static int world_channels_open(void) {
    struct weft_gpu_channels unused;
    if (weft_job.npes == 1 || weft_job.far || weft_job.npes > WEFT_GPU_MEMBERS_MAX)
        return 0;
    int error = weft_device_channels(&unused, weft_team_find(SHMEM_TEAM_WORLD), WEFT_FORM_LL);
    return error == -ENOTSUP ? 0 : error;
}

/* Undoes gpus_bring_up. */
static void gpus_take_down(void) {
    weft_proxies_close();
    weft_device_channels_close();
    weft_device_words_close();
    weft_device_messages_close();
    weft_gpu_window_free(&weft_device.heap);
    weft_device_heap_close();
    weft_gpu_lanes_close(weft_device.gpu); /* other threads may have opened lanes for its streams */
    weft_gpu_agents_close();
    free(weft_device.peers);
    weft_device = (struct weft_device){.gpu = weft_device.gpu};
}

static int gpus_bring_up(void) {
    size_t slot_bytes = 0;
    int error = weft_device_agree(weft_device_begin());
    if (error)
        return error;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    if ((error = facts_meet(&slot_bytes)) == 0)
        error = windows_open(slot_bytes);
    error = error ? error : world_channels_open();
    if (error) /* the GPU stays open: this PE may use it alone, on streams and in graphs */
        gpus_take_down();
    weft_gpu_leave(scope);
    return error;
}

int weft_device_open(void) {
    if (weft_device.open)
        return 0;
    int error = gpus_bring_up();
    if (error)
        return error;
    weft_device.open = true;
    weft_job_set_mode(WEFT_JOB_DEVICES, true);
    return 0;
}

void weft_device_close(void) {
    if (!weft_device.gpu)
        return;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    weft_gpu_rescue_close(); /* must come before anything is freed or waited for */
    weft_cuda.cuStreamSynchronize(weft_device.gpu->stream);
    weft_stage_close();
    weft_device_queue_close();
    weft_device_turns_close();
    weft_device_teams_close();
    gpus_take_down();
    weft_gpu_leave(scope);
    weft_job_set_mode(WEFT_JOB_DEVICES, false);
    weft_device_gpus_close();
    weft_device_end();
}
