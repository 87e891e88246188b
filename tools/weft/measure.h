/* SPDX-License-Identifier: BSD-3-Clause */
/* The measurements of `weft perf`: a kind of call, in one way of calling, with a number of bytes.
 */
#ifndef WEFT_TOOLS_MEASURE_H
#define WEFT_TOOLS_MEASURE_H

#include <stdbool.h>
#include <stddef.h>

enum measure_call {
    MEASURE_PUT,
    MEASURE_GET,
    MEASURE_SIGNAL,
    MEASURE_BARRIER,
    MEASURE_PUT_NBI,
    MEASURE_GET_NBI,
    MEASURE_BI_PUT,
    MEASURE_BI_GET,
    MEASURE_ATOMIC,
    MEASURE_ALL_GATHER,
    MEASURE_ALL_REDUCE,
    MEASURE_CALLS
};
enum measure_way { MEASURE_HOST, MEASURE_GPU, MEASURE_STREAM, MEASURE_GRAPH, MEASURE_WAYS };

/* Returns the bytes that a call with `bytes` moves in all: both directions together, and for a
 * collective the bytes of its result; 0 if a rate would mean nothing. */
size_t measure_moves(enum measure_call call, size_t bytes);

/* Returns true if the call can be made in this way, given that there are GPUs. */
bool measure_offers(enum measure_call call, enum measure_way way);

/* Allocates memory in both spaces, for messages of up to `bytes` and results of up to
 * `result_bytes`, and prepares the measurements. Collective. Returns true if there are GPUs,
 * otherwise false, with a reason that is valid until the end. Ends the job if there is no host
 * memory. */
bool measure_open(size_t bytes, size_t result_bytes, const char **reason);
void measure_close(void);

/* Returns the microseconds of a call: puts and gets from PE 0 to PE 1, complete, one at a time or
 * several (_NBI), or of both PEs at once (BI_); signals between the two, one way, with a put
 * before; a fetching add by PE 0 to a word of PE 1; barriers and collectives of all PEs. The value
 * on PE 0 is the median of several runs. Collective. */
double measure_us(enum measure_call call, enum measure_way way, size_t bytes);

#endif
