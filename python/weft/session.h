/* SPDX-License-Identifier: BSD-3-Clause */
/* The job as Python sees it: between init() and finalize(), and which PE of how many.
 *
 * finalize() leaves the library running where views of symmetric memory are still alive: their
 * memory stays till the process ends. For Python the job is over all the same. */
#ifndef WEFT_PYTHON_SESSION_H
#define WEFT_PYTHON_SESSION_H

#include <stdatomic.h>
#include "module.h"

struct weft_session {
    atomic_bool running;
    atomic_int unlocked; /* threads that are in a call without the GIL, or wait to have it again */
    atomic_int inside;   /* those of them that are in the library */
    bool forked;         /* a child of a PE, which is none */
    int pe, npes;        /* npes is 0 unless running */
    unsigned number;     /* counts init(): what was made in an earlier one is gone */
    int device;          /* CUDA's number of this PE's GPU; -1 as long as nobody asked */
};
extern struct weft_session weft_session;

/* Around a call of the library that may take time: other threads of Python run meanwhile, and the
 * job does not end under this one. */
#define WEFT_BEGIN_UNLOCKED \
    {                       \
        PyThreadState *weft_state = weft_session_unlock();
#define WEFT_END_UNLOCKED          \
    weft_session_lock(weft_state); \
    }
PyThreadState *weft_session_unlock(void);
void weft_session_lock(PyThreadState *state);

/* RuntimeError unless the job runs. */
bool weft_session_check(const char *call);

/* The number of this PE's GPU, as CUDA counts here; -1 with RuntimeError. */
int weft_session_device(const char *call);

#endif
