/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads of the list take the lock, whose cost is negligible compared with an agent's work. */
#include "transport/gpu_agent.h"
#include <errno.h>
#include <pthread.h>
#include "transport/gpu_kernel.h"
#include "transport/gpu_memory.h"

enum { AGENTS_MAX = 64 };

static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static struct weft_gpu *agents[AGENTS_MAX]; /* by ordinal */

const struct weft_gpu *weft_gpu_agent_of(int ordinal) {
    if (ordinal < 0 || ordinal >= AGENTS_MAX) {
        weft_fail(-ENODEV, "GPU %d of another PE is not visible in this process", ordinal);
        return NULL;
    }
    pthread_mutex_lock(&changing);
    if (!agents[ordinal])
        weft_gpu_kernels_open(&agents[ordinal], ordinal);
    const struct weft_gpu *agent = agents[ordinal];
    pthread_mutex_unlock(&changing);
    return agent;
}

int weft_gpu_agent_copy(const struct weft_gpu *agent, void *to, const void *from, size_t bytes) {
    struct weft_gpu_scope scope = weft_gpu_enter(agent);
    int error = weft_gpu_memory_copy(agent, to, from, bytes);
    weft_gpu_leave(scope);
    return error;
}

void weft_gpu_agents_close(void) {
    for (int i = 0; i < AGENTS_MAX; i++) {
        if (!agents[i])
            continue;
        weft_gpu_kernels_close(agents[i]);
        agents[i] = NULL;
    }
}
