/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA graphs: a stream's work, captured once and replayed as often as wanted. */
#ifndef TESTS_GPU_GRAPH_H
#define TESTS_GPU_GRAPH_H

#include "gpu/gpu.h"

/* Captures the work that `enqueue` gives the stream, in the strictest mode. */
static inline weft_cu_graph_exec graph_capture(weft_cu_stream stream, void (*enqueue)(void)) {
    weft_cu_graph graph;
    weft_cu_graph_exec exec;
    gpu_enter();
    GPU(cuStreamBeginCapture(stream, WEFT_CU_CAPTURE_GLOBAL));
    gpu_leave();
    enqueue();
    gpu_enter();
    GPU(cuStreamEndCapture(stream, &graph));
    GPU(cuGraphInstantiateWithFlags(&exec, graph, 0));
    GPU(cuGraphDestroy(graph));
    gpu_leave();
    return exec;
}

static inline void graph_replay(weft_cu_graph_exec exec, weft_cu_stream stream) {
    gpu_enter();
    GPU(cuGraphLaunch(exec, stream));
    gpu_leave();
}

static inline void graph_drop(weft_cu_graph_exec exec) {
    gpu_enter();
    GPU(cuGraphExecDestroy(exec));
    gpu_leave();
}

#endif
