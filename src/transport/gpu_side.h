/* SPDX-License-Identifier: BSD-3-Clause */
/* A side stream: work on it goes on at the same time as what follows on a stream of the program's,
 * between a fork and a join. Each of the program's streams has one of its own, so that no stream
 * waits for another's work. Works in captures. */
#ifndef WEFT_TRANSPORT_GPU_SIDE_H
#define WEFT_TRANSPORT_GPU_SIDE_H

#include "transport/gpu.h"

struct weft_gpu_side {
    weft_cu_stream of, stream; /* the same where there is no side stream left */
    weft_cu_event forked, joined;
};

/* Work on side->stream follows what is on `stream` now. 0 or -errno with text. */
int weft_gpu_fork(struct weft_gpu_side *side, weft_cu_stream stream);

/* Makes later work of the program's stream follow the work of both. Every fork is joined. */
int weft_gpu_join(const struct weft_gpu_side *side);

void weft_gpu_sides_close(void);

#endif
