/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies by a GPU, between any two addresses: by its multiprocessors (SM) or by a copy engine.
 *
 * The engine depends on size and direction, according to a table measured on H200s, unless the user
 * selects one. Host memory that is not registered is always copied by a copy engine, because the
 * multiprocessors cannot access it. All functions enqueue work on `stream` and return. */
#ifndef WEFT_TRANSPORT_GPU_COPY_H
#define WEFT_TRANSPORT_GPU_COPY_H

#include "weft/addr.h"
#include "transport/gpu.h"

enum weft_copy_engine { WEFT_ENGINE_AUTO, WEFT_ENGINE_SM, WEFT_ENGINE_COPY };

enum weft_direction {
    WEFT_WITHIN,    /* from and to this GPU */
    WEFT_TO_PEER,   /* to another GPU's memory */
    WEFT_FROM_PEER, /* from another GPU's memory */
    WEFT_BESIDE,    /* to another GPU's memory, while this GPU multiplies matrices */
    WEFT_TO_HOST,   /* to registered host memory */
    WEFT_FROM_HOST,
    WEFT_BY_AGENT, /* between host memory and a GPU's, by that GPU (transport/gpu_agent.h) */
    WEFT_DIRECTIONS,
};

/* Sets the engine that calls use from now on; SHMEMX_ENGINE sets the initial one. */
void weft_engine_set(enum weft_copy_engine engine);
enum weft_copy_engine weft_engine_get(void);
const char *weft_engine_name(enum weft_copy_engine engine);

/* Returns the engine for a copy. */
enum weft_copy_engine weft_engine_choose(enum weft_direction direction, size_t bytes);

/* Writes a line of the table for a person: "to a peer SM up to 8 MiB (64 blocks at most),
 * then a copy engine". */
void weft_engine_describe(char *line, size_t bytes, enum weft_direction direction);

int weft_gpu_copy(void *to, const void *from, size_t bytes, enum weft_direction direction,
                  weft_cu_stream stream);

/* Copies nblocks blocks of `bytes`: block i of `from` to block i of `to`. `from` must have no list
 * of places. Steps may be negative. The GPU must be able to access all of the memory. */
int weft_gpu_copy_blocks(struct weft_array to, struct weft_array from, size_t bytes, size_t nblocks,
                         weft_cu_stream stream);

#endif
