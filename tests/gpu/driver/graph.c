/* SPDX-License-Identifier: BSD-3-Clause */
#include "graph.h"
#include <stdlib.h>
#include <string.h>

static struct link *graphs, *execs;

/* An executable graph: the first lane runs in the stream of the launch, the others in streams of
 * the graph. Launches of one graph run one after the other. */
struct CUgraphExec_st {
    struct link link;
    struct CUgraph_st *graph;
    struct CUstream_st *lanes[LANES_MAX];
    struct CUstream_st *last; /* launched in, and its ticket */
    uint64_t ticket;
};

struct CUgraph_st *graph_new(void) {
    return link_add(&graphs, calloc(1, sizeof(struct CUgraph_st)));
}

void graph_free(struct CUgraph_st *graph) {
    link_remove(&graphs, graph);
    for (size_t i = 0; i < graph->nnodes; i++)
        work_drop(graph->nodes[i].work);
    free(graph->nodes);
    free(graph);
}

void graph_add(struct CUgraph_st *graph, const struct node *node) {
    graph->nodes = realloc(graph->nodes, (graph->nnodes + 1) * sizeof *graph->nodes);
    graph->nodes[graph->nnodes++] = *node;
}

static struct CUgraph_st *graph_of(weft_cu_graph handle) {
    return link_find(graphs, handle);
}

static struct CUgraphExec_st *exec_of(weft_cu_graph_exec handle) {
    return link_find(execs, handle);
}

static int destroy_graph(struct CUgraph_st *graph) {
    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    graph_free(graph);
    return 0;
}

int cuGraphDestroy(weft_cu_graph graph) {
    CALL(CONTEXT, destroy_graph(graph_of(graph)));
}

/* --- Executable graphs -------------------------------------------------------------------------
 */

static struct CUgraph_st *copy_graph(const struct CUgraph_st *graph) {
    struct CUgraph_st *copy = graph_new();
    for (size_t i = 0; i < graph->nnodes; i++) {
        graph->nodes[i].work->holds++;
        graph_add(copy, &graph->nodes[i]);
    }
    copy->nlanes = graph->nlanes;
    memcpy(copy->contexts, graph->contexts, sizeof copy->contexts);
    return copy;
}

static int instantiate(struct CUgraphExec_st **made, const struct CUgraph_st *graph) {
    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    struct CUgraphExec_st *exec = calloc(1, sizeof *exec);
    exec->graph = copy_graph(graph);
    for (int lane = 1; lane < graph->nlanes; lane++)
        exec->lanes[lane] = stream_new(graph->contexts[lane], false);
    *made = link_add(&execs, exec);
    return 0;
}

int cuGraphInstantiateWithFlags(weft_cu_graph_exec *exec, weft_cu_graph graph, uint64_t flags) {
    CALL(CONTEXT, flags ? CUDA_ERROR_INVALID_VALUE : instantiate(exec, graph_of(graph)));
}

static int destroy_exec(struct CUgraphExec_st *exec) {
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    link_remove(&execs, exec);
    for (int lane = 1; lane < exec->graph->nlanes; lane++)
        stream_close(exec->lanes[lane]);
    if (exec->last)
        stream_drop(exec->last);
    graph_free(exec->graph);
    free(exec);
    return 0;
}

int cuGraphExecDestroy(weft_cu_graph_exec exec) {
    CALL(CONTEXT, destroy_exec(exec_of(exec)));
}

/* --- Launch ------------------------------------------------------------------------------------
 */

/* One launch: the streams of the lanes, and the tickets that their works have got. */
struct launch {
    struct CUstream_st *streams[LANES_MAX];
    uint64_t *tickets[LANES_MAX];
    unsigned pushed[LANES_MAX];
    struct clock waited[LANES_MAX];
};

static void push_node(struct launch *launch, const struct node *node) {
    int mine = node->lane;
    for (int lane = 0; lane < LANES_MAX; lane++) {
        unsigned before = node->clock.before[lane];
        if (lane == mine || before <= launch->waited[mine].before[lane])
            continue;
        stream_push_after(launch->streams[mine], launch->streams[lane],
                          launch->tickets[lane][before - 1]);
        launch->waited[mine].before[lane] = before;
    }
    node->work->holds++;
    launch->tickets[mine][launch->pushed[mine]++] = stream_push(launch->streams[mine], node->work);
}

static void push_all(struct CUgraph_st *graph, struct launch *launch) {
    struct CUstream_st *first = launch->streams[0];
    uint64_t start = first->pushed;
    for (int lane = 0; lane < graph->nlanes; lane++) {
        launch->tickets[lane] = calloc(graph->nnodes + 1, sizeof(uint64_t));
        stream_push_after(launch->streams[lane], first, start);
    }
    for (size_t i = 0; i < graph->nnodes; i++)
        push_node(launch, &graph->nodes[i]);
    for (int lane = 0; lane < graph->nlanes; lane++) {
        stream_push_after(first, launch->streams[lane], launch->streams[lane]->pushed);
        free(launch->tickets[lane]);
    }
}

static void note_last(struct CUgraphExec_st *exec, struct CUstream_st *stream) {
    stream_hold(stream);
    if (exec->last)
        stream_drop(exec->last);
    exec->last = stream;
    exec->ticket = stream->pushed;
}

static int launch(struct CUgraphExec_st *exec, struct CUstream_st *stream) {
    if (!exec || !stream)
        return exec ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    if (stream->capture)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    int error = stream_order(stream);
    if (error)
        return error;
    if (exec->last)
        stream_push_after(stream, exec->last, exec->ticket);
    struct launch launch = {.pushed = {0}};
    memcpy(launch.streams, exec->lanes, sizeof launch.streams);
    launch.streams[0] = stream;
    push_all(exec->graph, &launch);
    note_last(exec, stream);
    return 0;
}

int cuGraphLaunch(weft_cu_graph_exec exec, weft_cu_stream stream) {
    CALL(CONTEXT, launch(exec_of(exec), stream_of(stream)));
}
