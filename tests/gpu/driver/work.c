/* SPDX-License-Identifier: BSD-3-Clause */
#include "work.h"
#include <stdlib.h>

void *work_new(size_t bytes, int (*run)(struct work *, struct CUstream_st *),
               void (*drop)(struct work *)) {
    struct work *work = calloc(1, bytes);
    *work = (struct work){.holds = 1, .run = run, .drop = drop};
    return work;
}

void work_drop(struct work *work) {
    if (--work->holds)
        return;
    if (work->drop)
        work->drop(work);
    free(work);
}
