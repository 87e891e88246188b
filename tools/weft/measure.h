/* SPDX-License-Identifier: BSD-3-Clause */
/* What `weft perf` measures: a kind of call, made in a way, with a number of bytes. */
#ifndef WEFT_TOOLS_MEASURE_H
#define WEFT_TOOLS_MEASURE_H

#include <stdbool.h>
#include <stddef.h>

enum measure_call { MEASURE_PUT, MEASURE_GET, MEASURE_SIGNAL, MEASURE_BARRIER, MEASURE_CALLS };
enum measure_way { MEASURE_HOST, MEASURE_GPU, MEASURE_STREAM, MEASURE_GRAPH, MEASURE_WAYS };

/* Gets memory for up to `bytes` in both spaces and makes ready. Collective. True when there are
 * GPUs; false and the reason, valid until the end, when there are none. Without memory of the host
 * the job ends. */
bool measure_open(size_t bytes, const char **reason);
void measure_close(void);

/* Microseconds of a call: puts and gets from PE 0 to PE 1, complete; signals one way between the
 * two, with a put before; barriers of all. The median of several runs, on PE 0. Collective. */
double measure_us(enum measure_call call, enum measure_way way, size_t bytes);

#endif
