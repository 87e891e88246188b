/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs: works in the order of their capture, each with its lane and its predecessors. */
#ifndef TESTS_GPU_DRIVER_GRAPH_H
#define TESTS_GPU_DRIVER_GRAPH_H

#include "link.h"
#include "stream.h"

struct node {
    struct work *work;
    int lane;
    struct clock clock; /* for the other lanes: how many of their works come before */
};

struct CUgraph_st {
    struct link link;
    struct node *nodes;
    size_t nnodes;
    int nlanes;
    struct CUctx_st *contexts[LANES_MAX]; /* of the lanes' streams */
};

struct CUgraph_st *graph_new(void);
void graph_free(struct CUgraph_st *graph);
void graph_add(struct CUgraph_st *graph, const struct node *node);

#endif
