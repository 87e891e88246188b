/* SPDX-License-Identifier: BSD-3-Clause */
/* An agent is another GPU of the machine that works for this process: in its own memory, which this
 * PE's GPU does not reach or cannot change atomically. Host memory that is registered is within the
 * reach of both.
 *
 * CUDA maps memory of any GPU that is visible in this process, wherever it comes from, for that
 * GPU itself. It is opened when it is first needed, and takes memory of that GPU, some hundred MiB.
 */
#ifndef WEFT_TRANSPORT_GPU_AGENT_H
#define WEFT_TRANSPORT_GPU_AGENT_H

#include "transport/gpu.h"

/* The GPU with this ordinal, with its kernels; it stays until the close. By any thread. NULL with
 * text. */
const struct weft_gpu *weft_gpu_agent_of(int ordinal);

/* A copy that has happened when it returns; at least one side is in the agent's memory, the other
 * is the host's. 0 or -errno with text. */
int weft_gpu_agent_copy(const struct weft_gpu *agent, void *to, const void *from, size_t bytes);

/* Closes all agents; nothing of theirs is under way then. */
void weft_gpu_agents_close(void);

#endif
