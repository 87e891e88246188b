/* SPDX-License-Identifier: BSD-3-Clause */
/* The job as Python sees it: between init() and finalize(), and which PE of how many.
 *
 * finalize() leaves the library running where views of symmetric memory are still alive: their
 * memory stays till the process ends. For Python the job is over all the same. */
#ifndef WEFT_PYTHON_SESSION_H
#define WEFT_PYTHON_SESSION_H

#include "module.h"

struct weft_session {
    bool running;
    bool forked;     /* a child of a PE, which is none */
    int pe, npes;    /* npes is 0 unless running */
    unsigned number; /* counts init(): what was made in an earlier one is gone */
    int device;      /* CUDA's number of this PE's GPU; -1 as long as nobody asked */
};
extern struct weft_session weft_session;

/* RuntimeError unless the job runs. */
bool weft_session_check(const char *call);

/* The number of this PE's GPU, as CUDA counts here; -1 with RuntimeError. */
int weft_session_device(const char *call);

#endif
