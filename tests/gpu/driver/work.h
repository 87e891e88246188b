/* SPDX-License-Identifier: BSD-3-Clause */
/* One operation of a stream; the files above define the kinds. It is immutable and counted, because
 * a graph runs it again and again. */
#ifndef TESTS_GPU_DRIVER_WORK_H
#define TESTS_GPU_DRIVER_WORK_H

#include "call.h"

struct work {
    unsigned holds; /* under driver_lock */
    /* In the thread of a stream, without driver_lock. An error fails the context. */
    int (*run)(struct work *work, struct CUstream_st *stream);
    /* Releases the work's resources before it is freed; called under driver_lock. May be NULL. */
    void (*drop)(struct work *work);
    bool passes_writes; /* unordered writes of the stream may become visible only after it */
};

/* `bytes` of a structure that begins with a struct work, held once. */
void *work_new(size_t bytes, int (*run)(struct work *, struct CUstream_st *),
               void (*drop)(struct work *));

void work_drop(struct work *work);

#endif
