/* SPDX-License-Identifier: BSD-3-Clause */
/* An agent is another GPU of the machine that works for this process in its own memory, which this
 * PE's GPU cannot access, or cannot change atomically. Both GPUs can access registered host memory.
 *
 * CUDA maps memory of any GPU that is visible in this process, whichever process has made it, for
 * that GPU itself. An agent is opened when it is first needed, and takes some hundred MiB of that
 * GPU's memory. */
#ifndef WEFT_TRANSPORT_GPU_AGENT_H
#define WEFT_TRANSPORT_GPU_AGENT_H

#include "transport/gpu.h"

/* Returns the GPU with this ordinal, with its kernels loaded; it stays open until
 * weft_gpu_agents_close. Callable by any thread. Returns NULL with text on failure. */
const struct weft_gpu *weft_gpu_agent_of(int ordinal);

/* Copies, and waits for that. At least one side is in the agent's memory; the other may be in the
 * host's. Returns 0 or -errno with text. */
int weft_gpu_agent_copy(const struct weft_gpu *agent, void *to, const void *from, size_t bytes);

/* Closes all agents. No work of theirs may be under way. */
void weft_gpu_agents_close(void);

#endif
