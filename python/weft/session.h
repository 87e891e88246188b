/* SPDX-License-Identifier: BSD-3-Clause */
/* The job as Python sees it: between init() and finalize(), and which PE of how many.
 *
 * finalize() leaves the library running where views of symmetric memory are still alive: their
 * memory stays till the process ends. For Python the job is over all the same. */
#ifndef PYWEFT_SESSION_H
#define PYWEFT_SESSION_H

#include <errno.h>
#include <setjmp.h>
#include <stdatomic.h>
#include "module.h"

struct pyweft_session {
    atomic_bool running;
    atomic_int
        without_gil;   /* threads that are in a call without the GIL, or wait to have it again */
    atomic_int inside; /* those of them that are in the library */
    atomic_bool lost;  /* a PE died or failed: the job is over, and the process about to be */
    bool checked;      /* SHMEM_DEBUG may be on: the library ends the job for more misuse */
    bool forked;       /* a child of a PE, which is none */
    int pe, npes;      /* npes is 0 unless running */
    unsigned number;   /* counts init(): what was made in an earlier one is gone */
    int device;        /* CUDA's number of this PE's GPU; -1 as long as nobody asked */
    const char
        *call; /* that was begun last, "barrier": under the GIL, for pyweft_session_release_gil */
};
extern struct pyweft_session pyweft_session;

/* error = call, an expression: a call of the library that may take time. Other threads of Python
 * run meanwhile, and the job does not end under this one. A call that can never end, because a PE
 * has died, is left in its middle, with PYWEFT_JOB_LOST. */
#define PYWEFT_WITHOUT_GIL(error, call)                   \
    do {                                                  \
        struct pyweft_released pyweft_released;           \
        pyweft_session_release_gil(&pyweft_released);     \
        if (setjmp(pyweft_released.landing.way_out) == 0) \
            error = (call);                               \
        else                                              \
            error = PYWEFT_JOB_LOST;                      \
        pyweft_session_take_gil(&pyweft_released);        \
    } while (0)

/* The same with the GIL, for a call that takes no longer than letting go of it would. */
#define PYWEFT_WITH_GIL(error, call)             \
    do {                                         \
        struct pyweft_landing pyweft_landing;    \
        pyweft_session_enter(&pyweft_landing);   \
        if (setjmp(pyweft_landing.way_out) == 0) \
            error = (call);                      \
        else                                     \
            error = PYWEFT_JOB_LOST;             \
        pyweft_session_leave(&pyweft_landing);   \
    } while (0)

/* The same for a copy so short that the landing would be a tenth of the call (12 ns of 115). It has
 * one in checked mode alone: of what else the library ends the job for, nothing comes this far. */
#define PYWEFT_WITH_GIL_BRIEF(error, call) \
    do {                                   \
        if (pyweft_session.checked)        \
            PYWEFT_WITH_GIL(error, call);  \
        else                               \
            error = (call);                \
    } while (0)

struct pyweft_landing {
    jmp_buf way_out;
    struct pyweft_landing *outer; /* that of the call which this one is made in, or NULL */
    const char *call;             /* the function of Python, or NULL: for lines about hangs */
};
struct pyweft_released {
    PyThreadState *state;
    struct pyweft_landing landing;
};
void pyweft_session_enter(struct pyweft_landing *landing);
void pyweft_session_leave(const struct pyweft_landing *landing);
void pyweft_session_release_gil(struct pyweft_released *released);
void pyweft_session_take_gil(struct pyweft_released *released);

/* The same for C++, which has let go of the GIL itself: what call(context) returns, or
 * PYWEFT_JOB_LOST. Once the job is lost nothing is called any more: what was left in its middle may
 * have the library's locks. No frame from here to the library may hold what a destructor gives
 * back. */
PYWEFT_EXPORT int pyweft_session_guard(int (*call)(void *), void *context);

/* The same for a wait to which the program has set a limit, and which takes no lock of the
 * library's: it is called when the job is lost, too, and tells the library that this process goes
 * on alone. */
PYWEFT_EXPORT int pyweft_session_guard_limited(int (*call)(void *), void *context);

enum { PYWEFT_JOB_LOST = -EOWNERDEAD };

/* Who died, and how, and that the job is over. */
const char *pyweft_session_loss(void);

/* RuntimeError unless the job runs. */
bool pyweft_session_check(const char *call);

/* Registers the library's end handler, which makes a lost job an exception, and its handler for the
 * place of a call in lines about hangs. */
void pyweft_session_set_handlers(void);

#endif
