/* SPDX-License-Identifier: BSD-3-Clause */
/* The measurements of `weft perf`: a kind of call, in one way of calling, with a number of bytes.
 */
#ifndef WEFT_TOOLS_MEASURE_H
#define WEFT_TOOLS_MEASURE_H

#include <stdbool.h>
#include <stddef.h>

enum measure_call { MEASURE_PUT, MEASURE_GET, MEASURE_SIGNAL, MEASURE_BARRIER, MEASURE_CALLS };
enum measure_way { MEASURE_HOST, MEASURE_GPU, MEASURE_STREAM, MEASURE_GRAPH, MEASURE_WAYS };

/* Allocates memory for up to `bytes` in both spaces and prepares the measurements. Collective.
 * Returns true if there are GPUs, otherwise false, with a reason that is valid until the end. Ends
 * the job if there is no host memory. */
bool measure_open(size_t bytes, const char **reason);
void measure_close(void);

/* Returns the microseconds of a call: puts and gets from PE 0 to PE 1, complete; signals between
 * the two, one way, with a put before; barriers of all PEs. The value on PE 0 is the median of
 * several runs. Collective. */
double measure_us(enum measure_call call, enum measure_way way, size_t bytes);

#endif
