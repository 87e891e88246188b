/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the job between init() and finalize().
 *
 * If views of symmetric memory are still alive, finalize() leaves the library running, and the
 * memory stays until the process exits. For Python the job is over nevertheless. */
#ifndef PYWEFT_SESSION_H
#define PYWEFT_SESSION_H

#include <errno.h>
#include <setjmp.h>
#include <stdatomic.h>
#include "module.h"

struct pyweft_session {
    atomic_bool running;
    atomic_int without_gil; /* threads in a call without the GIL, or waiting to take it again */
    atomic_int inside;      /* those of them that are inside the library */
    atomic_bool lost;       /* a PE died or failed: the job is over */
    bool checked; /* SHMEM_DEBUG may be on, so the library ends the job for more kinds of misuse */
    bool forked;  /* in a forked child of a PE, which is not a PE */
    int pe, npes; /* npes is 0 unless running */
    unsigned number; /* counts calls of init(); objects of an earlier session are invalid */
    int device;      /* CUDA device number of this PE's GPU; -1 before the first use */
    const char *
        call; /* the latest call, "barrier": set with the GIL, read by pyweft_session_release_gil */
};
extern struct pyweft_session pyweft_session;

/* Evaluates error = call, a call of the library that may block, without the GIL, so that other
 * Python threads run meanwhile. If a PE dies and the call can never return, it is abandoned by a
 * longjmp, and error is PYWEFT_JOB_LOST. */
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

/* Evaluates error = call with the GIL held, for a call that takes no longer than releasing the
 * GIL. */
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

/* As PYWEFT_WITH_GIL without its setjmp, which would be a tenth of a short copy's time (12 ns of
 * 115). Only checked mode needs it: all other misuse that ends the job has been refused before. */
#define PYWEFT_WITH_GIL_BRIEF(error, call) \
    do {                                   \
        if (pyweft_session.checked)        \
            PYWEFT_WITH_GIL(error, call);  \
        else                               \
            error = (call);                \
    } while (0)

struct pyweft_landing {
    jmp_buf way_out;
    struct pyweft_landing *outer; /* of the enclosing call, or NULL */
    const char *call;             /* the Python function, or NULL; for hang reports */
};
struct pyweft_released {
    PyThreadState *state;
    struct pyweft_landing landing;
};
void pyweft_session_enter(struct pyweft_landing *landing);
void pyweft_session_leave(const struct pyweft_landing *landing);
void pyweft_session_release_gil(struct pyweft_released *released);
void pyweft_session_take_gil(struct pyweft_released *released);

/* Calls call(context) for C++ code that has released the GIL itself. Returns its result, or
 * PYWEFT_JOB_LOST. After the job was lost it calls nothing, because an abandoned call may hold
 * locks of the library. The frames between here and the library must not rely on destructors, which
 * the longjmp skips. */
PYWEFT_EXPORT int pyweft_session_guard(int (*call)(void *), void *context);

/* Calls call(context) like pyweft_session_guard, for a wait with a timeout that takes no lock of
 * the library. It is also called after the job was lost, and then informs the library that
 * this process continues alone. */
PYWEFT_EXPORT int pyweft_session_guard_limited(int (*call)(void *), void *context);

enum { PYWEFT_JOB_LOST = -EOWNERDEAD };

/* Returns a text that says which PE died, and how. */
const char *pyweft_session_loss(void);

/* Returns false with RuntimeError unless a job is running. */
bool pyweft_session_check(const char *call);

/* As pyweft_session_check; also returns false with RuntimeError if the call's object, a `what`, was
 * made in an earlier session. 0: it is valid in any session. */
bool pyweft_session_check_made(const char *call, const char *what, unsigned session);

/* Registers the library's end handler, which turns the loss of the job into an exception, and its
 * handler for the place of a call, for hang reports. */
void pyweft_session_set_handlers(void);

#endif
