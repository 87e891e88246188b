/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the session, and the calls of the library without the GIL, from which a lost job
 * returns by longjmp. */
#include "session.h"
#include <pthread.h>
#include <stdio.h>
#include "where.h"

struct pyweft_session pyweft_session = {.device = -1};

bool pyweft_session_check(const char *call) {
    pyweft_session.call = call;
    if (pyweft_session.running && !pyweft_session.lost)
        return true;
    if (pyweft_session.lost)
        PyErr_Format(
            PyExc_RuntimeError,
            "%s: called after the end of the job: restart this process, which in a notebook is its "
            "kernel: %s",
            call, pyweft_session_loss());
    else
        PyErr_Format(PyExc_RuntimeError, "%s: called %s", call,
                     pyweft_session.forked ? "in a forked child, which is not a PE: call it in the "
                                             "PE's own process, or start processes "
                                             "by spawn"
                     : pyweft_session.number
                         ? "after finalize(): finalize later, or call init() again"
                         : "before init(): call weft.init() first");
    return false;
}

bool pyweft_session_check_made(const char *call, const char *what, unsigned session) {
    if (!pyweft_session_check(call))
        return false;
    if (session == 0 || session == pyweft_session.number)
        return true;
    PyErr_Format(PyExc_RuntimeError, "%s: this %s was made before finalize()", call, what);
    return false;
}

/* --- Calls without the GIL ------------------------------------------------------------------- */

static _Thread_local struct pyweft_landing *current; /* of this thread's current call */
static char loss[896];

const char *pyweft_session_loss(void) {
    return loss;
}

/* The library's end handler: turns a call that waits for a dead PE, and every later call, into an
 * exception. */
static void lose_job(const char *reason) {
    static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&writing);
    if (!pyweft_session.lost)
        snprintf(loss, sizeof loss, "%s: the job is over", reason);
    pyweft_session.lost = true;
    pthread_mutex_unlock(&writing);
    if (current)
        longjmp(current->way_out, 1);
}

/* The library's handler for the place of a call. At process exit the library makes calls of its
 * own, which no Python code has made. */
static void tell_where(char *where, size_t bytes) {
    if (current)
        pyweft_where(current->call, where, bytes);
}

void pyweft_session_enter(struct pyweft_landing *landing) {
    landing->outer = current;
    landing->call = NULL;
    current = landing;
    atomic_fetch_add(&pyweft_session.inside, 1);
}

void pyweft_session_leave(const struct pyweft_landing *landing) {
    current = landing->outer;
    atomic_fetch_sub(&pyweft_session.inside, 1);
}

void pyweft_session_release_gil(struct pyweft_released *released) {
    atomic_fetch_add(&pyweft_session.without_gil, 1);
    pyweft_session_enter(&released->landing);
    released->landing.call = pyweft_session.call;
    released->state = PyEval_SaveThread();
}

/* At process exit a thread does not return from here, because it cannot take the GIL any more. */
void pyweft_session_take_gil(struct pyweft_released *released) {
    pyweft_session_leave(&released->landing);
    PyEval_RestoreThread(released->state);
    atomic_fetch_sub(&pyweft_session.without_gil, 1);
}

int pyweft_session_guard_limited(int (*call)(void *), void *context) {
    struct pyweft_landing landing;
    int error;
    atomic_fetch_add(&pyweft_session.without_gil, 1);
    pyweft_session_enter(&landing);
    if (setjmp(landing.way_out) == 0)
        error = call(context);
    else
        error = PYWEFT_JOB_LOST;
    pyweft_session_leave(&landing);
    atomic_fetch_sub(&pyweft_session.without_gil, 1);
    return error;
}

int pyweft_session_guard(int (*call)(void *), void *context) {
    return pyweft_session.lost ? PYWEFT_JOB_LOST : pyweft_session_guard_limited(call, context);
}

void pyweft_session_set_handlers(void) {
    shmemx_set_end_handler(lose_job);
    shmemx_set_where_handler(tell_where);
}
