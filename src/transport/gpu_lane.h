/* SPDX-License-Identifier: BSD-3-Clause */
/* Work of an agent in the order of the program's stream: after the stream's earlier work, and
 * before its later work. Each pair of a stream and an agent has a lane, which is a stream of the
 * agent, so that no stream waits for another's work. A lane of this PE's own GPU is used for work
 * concurrent with that of the stream. Lanes work during capture.
 *
 * A copy between the memories of two GPUs passes through two pieces of host memory, used
 * alternately. A captured copy has pieces of its own, which stay as long as the process has its
 * GPU: so two graphs may run at once, but not two instances of the same graph.
 *
 * Functions return 0 or -errno with text. The context of this PE's GPU must be current. */
#ifndef WEFT_TRANSPORT_GPU_LANE_H
#define WEFT_TRANSPORT_GPU_LANE_H

#include "transport/gpu_agent.h"

/* A put or a get: `to` of a put and `from` of a get are the peer's memory, at this process's
 * address. */
struct weft_transfer {
    void *to;
    const void *from;
    size_t bytes;
    bool put;
};

/* Copies between the agent's memory, which contains the peer's side, and any memory that this PE's
 * GPU can copy. */
int weft_gpu_lane_copy(const struct weft_gpu *agent, const struct weft_transfer *transfer,
                       weft_cu_stream stream);

/* Like weft_gpu_signal, for a word in the agent's memory. */
int weft_gpu_lane_signal(const struct weft_gpu *agent, uint64_t *word, uint64_t value, bool add,
                         weft_cu_stream stream);

/* Like weft_gpu_signal32, for numbers that the host knows. */
struct weft_gpu_signal32;
int weft_gpu_lane_signal32(const struct weft_gpu *agent, const struct weft_gpu_signal32 *signal,
                           weft_cu_stream stream);

/* weft_gpu_lane_fork returns *beside, a stream of `gpu` whose work follows the work now on `stream`
 * and is concurrent with its later work. After weft_gpu_lane_join the later work of `stream`
 * follows both. Every fork needs a join. */
int weft_gpu_lane_fork(const struct weft_gpu *gpu, weft_cu_stream stream, weft_cu_stream *beside);
int weft_gpu_lane_join(const struct weft_gpu *gpu, weft_cu_stream stream);

/* Closes all lanes except those of `kept`. Must come before weft_gpu_agents_close and before this
 * PE's GPU is closed; there must be no work under way on the lanes. */
void weft_gpu_lanes_close(const struct weft_gpu *kept);

#endif
