/* SPDX-License-Identifier: BSD-3-Clause */
/* A list that only grows; looks at it take the lock, which is nothing beside what an agent does. */
#include "transport/gpu_agent.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include "transport/gpu_kernel.h"

static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static struct weft_gpu_agent *agents;

static void agent_end_work(struct weft_gpu_agent *agent) {
    struct weft_gpu_scope scope = weft_gpu_agent_enter(agent);
    weft_gpu_kernels_close();
    if (agent->stream)
        weft_cuda.cuStreamDestroy(agent->stream);
    weft_gpu_leave(scope);
}

static int agent_begin_work(struct weft_gpu_agent *agent) {
    struct weft_gpu_scope scope = weft_gpu_agent_enter(agent);
    int error = weft_cuda_check(
        weft_cuda.cuStreamCreateWithPriority(&agent->stream, WEFT_CU_STREAM_NON_BLOCKING, 0),
        "a stream on the GPU of another PE");
    if (error == 0)
        error = weft_gpu_kernels_open();
    weft_gpu_leave(scope);
    if (error)
        agent_end_work(agent);
    return error;
}

static int agent_begin(struct weft_gpu_agent *agent) {
    weft_cu_device device;
    int error = weft_cuda_check(weft_cuda.cuDeviceGet(&device, agent->ordinal), "cuDeviceGet");
    if (error == 0)
        error = weft_cuda_check(weft_cuda.cuDevicePrimaryCtxRetain(&agent->context, device),
                                "a context on the GPU of another PE");
    if (error == 0 && (error = agent_begin_work(agent)) != 0)
        weft_cuda.cuDevicePrimaryCtxRelease(device);
    return error;
}

static struct weft_gpu_agent *agent_add(int ordinal) {
    struct weft_gpu_agent *agent = calloc(1, sizeof *agent);
    if (!agent) {
        weft_fail(-ENOMEM, "no memory");
        return NULL;
    }
    agent->ordinal = ordinal;
    if (agent_begin(agent) != 0) {
        free(agent);
        return NULL;
    }
    agent->next = agents;
    return agents = agent;
}

const struct weft_gpu_agent *weft_gpu_agent_of(int ordinal) {
    pthread_mutex_lock(&changing);
    struct weft_gpu_agent *agent = agents;
    while (agent && agent->ordinal != ordinal)
        agent = agent->next;
    if (!agent)
        agent = agent_add(ordinal);
    pthread_mutex_unlock(&changing);
    return agent;
}

int weft_gpu_agent_copy(const struct weft_gpu_agent *agent, void *to, const void *from,
                        size_t bytes) {
    struct weft_gpu_scope scope = weft_gpu_agent_enter(agent);
    int error = weft_cuda_check(
        weft_cuda.cuMemcpyAsync((uintptr_t)to, (uintptr_t)from, bytes, agent->stream),
        "cuMemcpyAsync");
    if (error == 0)
        error = weft_gpu_synchronize(agent->stream);
    weft_gpu_leave(scope);
    return error;
}

void weft_gpu_agents_close(void) {
    while (agents) {
        struct weft_gpu_agent *agent = agents;
        weft_cu_device device;
        agents = agent->next;
        agent_end_work(agent);
        if (weft_cuda.cuDeviceGet(&device, agent->ordinal) == WEFT_CU_SUCCESS)
            weft_cuda.cuDevicePrimaryCtxRelease(device);
        free(agent);
    }
}
