/* SPDX-License-Identifier: BSD-3-Clause */
/* Staging: calls of the host on memory of a GPU that this PE's GPU does not reach.
 *
 *   this GPU's memory --own copy engine--> a piece of host memory --agent's--> the other's memory
 *   memory of the host -------------------------------------------agent's--> the other's memory
 *
 * Nobody at the other end has to help: that GPU works for this process, as its agent
 * (transport/gpu_agent.h). Everything is complete on return. Called between weft_gpu_enter and
 * _leave; a failure of the driver ends the job. `to` and `from` are as weft_device_near gives them.
 */
#ifndef WEFT_DEVICE_STAGE_H
#define WEFT_DEVICE_STAGE_H

#include "transport/gpu_lane.h"
#include "core/rma.h"
#include "device/device.h"

/* weft_device_agent, where its absence is the end of the job. */
const struct weft_gpu_agent *weft_device_must_agent(int pe);

/* Waits for what the host has begun on an agent. */
void weft_device_agent_complete(const struct weft_gpu_agent *agent);

void weft_stage_copy(const struct weft_transfer *transfer, int pe);

/* The same of blocks; `put`: dest is of pe's. */
void weft_stage_copy_strided(const struct weft_strided_copy *copy, bool put, int pe);

/* Gives the pieces back; with the GPU open. */
void weft_stage_close(void);

#endif
