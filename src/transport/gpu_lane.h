/* SPDX-License-Identifier: BSD-3-Clause */
/* Work of an agent in the order of a stream of the program's: behind the stream's earlier work, and
 * before its later. Each pair of a stream and an agent has a lane, a stream of the agent's, so that
 * no stream waits for another's work. A lane of this PE's own GPU is for work beside that of the
 * stream. Works in captures.
 *
 * A copy between the memories of two GPUs passes through two pieces of host memory in turns. A
 * captured copy has pieces of its own, which stay for as long as the process has its GPU: so two
 * graphs may run at once, but not two instances of the same one.
 *
 * 0 or -errno with text. This PE's context is current. */
#ifndef WEFT_TRANSPORT_GPU_LANE_H
#define WEFT_TRANSPORT_GPU_LANE_H

#include "transport/gpu_agent.h"

/* A put or a get: `to` of a put and `from` of a get are the peer's, as this process addresses it.
 */
struct weft_transfer {
    void *to;
    const void *from;
    size_t bytes;
    bool put;
};

/* The peer's side lies in the agent's memory, the other one anywhere that this PE's GPU can copy.
 */
int weft_gpu_lane_copy(const struct weft_gpu *agent, const struct weft_transfer *transfer,
                       weft_cu_stream stream);

/* Does as weft_gpu_signal, on a word in the agent's memory. */
int weft_gpu_lane_signal(const struct weft_gpu *agent, uint64_t *word, uint64_t value, bool add,
                         weft_cu_stream stream);

/* Does as weft_gpu_signal32, of numbers that the host knows. */
struct weft_gpu_signal32;
int weft_gpu_lane_signal32(const struct weft_gpu *agent, const struct weft_gpu_signal32 *signal,
                           weft_cu_stream stream);

/* Work on *beside, a stream of `gpu`, follows what is on `stream` now, and goes on at the same time
 * as what follows there; behind the join the later work of `stream` follows both. Every fork is
 * joined. */
int weft_gpu_lane_fork(const struct weft_gpu *gpu, weft_cu_stream stream, weft_cu_stream *beside);
int weft_gpu_lane_join(const struct weft_gpu *gpu, weft_cu_stream stream);

/* Closes all lanes but those of `kept`, before weft_gpu_agents_close and the close of this PE's
 * GPU; nothing of theirs is under way then. */
void weft_gpu_lanes_close(const struct weft_gpu *kept);

#endif
