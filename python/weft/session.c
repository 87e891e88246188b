/* SPDX-License-Identifier: BSD-3-Clause */
/* Coming into a job and leaving it. A process that ends with a status other than 0, as after an
 * exception that nobody caught, ends the whole job with it: its peers would wait for it in vain. */
#include "session.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "argument.h"
#include "closing.h"
#include "error.h"
#include "memory.h"
#include "where.h"
#include "pending.h"

struct weft_session weft_session = {.device = -1};

static bool lingering; /* over for Python, but the library still runs: there are views */

bool weft_session_check(const char *call) {
    weft_session.call = call;
    if (weft_session.running && !weft_session.lost)
        return true;
    if (weft_session.lost)
        PyErr_Format(PyExc_RuntimeError,
                     "%s: called behind the end of the job: start this process anew, which in a "
                     "notebook is its kernel: %s",
                     call, weft_session_loss());
    else
        PyErr_Format(
            PyExc_RuntimeError, "%s: called %s", call,
            weft_session.forked   ? "in a forked child, which is no PE: call it in the PE's own "
                                    "process, or start processes by spawn"
            : weft_session.number ? "after finalize(): finalize later, or call init() again"
                                  : "before init(): call weft.init() first");
    return false;
}

int weft_session_device(const char *call) {
    if (weft_session.device >= 0)
        return weft_session.device;
    int error = shmemx_device(&weft_session.device);
    if (error)
        weft_error_raise(call, error);
    return error ? -1 : weft_session.device;
}

/* --- Calls without the GIL ------------------------------------------------------------------- */

static _Thread_local struct weft_landing *current; /* of the call that this thread is in */
static char loss[896];

const char *weft_session_loss(void) {
    return loss;
}

/* The library's end handler: a call that waits for a dead PE becomes an exception, as does every
 * call after it. */
static void lose_job(const char *reason) {
    static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&writing);
    if (!weft_session.lost)
        snprintf(loss, sizeof loss, "%s: the job is over", reason);
    weft_session.lost = true;
    pthread_mutex_unlock(&writing);
    if (current)
        longjmp(current->way_out, 1);
}

/* The library's handler for where a call stands. Calls of the library's own, at the end of the
 * process, are made by no Python. */
static void tell_where(char *where, size_t bytes) {
    if (current)
        weft_where(current->call, where, bytes);
}

void weft_session_enter(struct weft_landing *landing) {
    landing->outer = current;
    landing->call = NULL;
    current = landing;
    atomic_fetch_add(&weft_session.inside, 1);
}

void weft_session_leave(const struct weft_landing *landing) {
    current = landing->outer;
    atomic_fetch_sub(&weft_session.inside, 1);
}

void weft_session_unlock(struct weft_unlocked *unlocked) {
    atomic_fetch_add(&weft_session.unlocked, 1);
    weft_session_enter(&unlocked->landing);
    unlocked->landing.call = weft_session.call;
    unlocked->state = PyEval_SaveThread();
}

/* At the end of the process a thread does not come back from here: it gets the GIL no more. */
void weft_session_lock(struct weft_unlocked *unlocked) {
    weft_session_leave(&unlocked->landing);
    PyEval_RestoreThread(unlocked->state);
    atomic_fetch_sub(&weft_session.unlocked, 1);
}

int weft_session_guard_limited(int (*call)(void *), void *context) {
    struct weft_landing landing;
    int error;
    atomic_fetch_add(&weft_session.unlocked, 1);
    weft_session_enter(&landing);
    if (setjmp(landing.way_out) == 0)
        error = call(context);
    else
        error = WEFT_JOB_LOST;
    weft_session_leave(&landing);
    atomic_fetch_sub(&weft_session.unlocked, 1);
    return error;
}

int weft_session_guard(int (*call)(void *), void *context) {
    return weft_session.lost ? WEFT_JOB_LOST : weft_session_guard_limited(call, context);
}

/* --- The end of the process ------------------------------------------------------------------ */

/* Threads that wait for a signal see that the job is over for them, and leave. */
static bool all_leave(const atomic_int *threads) {
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int ms = 0; ms < 200 && atomic_load(threads) > 0; ms++)
        nanosleep(&pause, NULL);
    return atomic_load(threads) == 0;
}

/* A status other than 0 is left to the library's handler, which ends the job and says so. */
static void end_running(int status) {
    weft_session.running = false;
    bool left = all_leave(&weft_session.inside);
    if (!left)
        fprintf(stderr,
                "weft: PE %d exits with status %d while a thread of it is in a call: ending the "
                "job\n",
                weft_session.pe, status);
    if (weft_session.npes > 1 && !left)
        shmem_global_exit(status ? status : 1);
    else if (left)
        weft_closing_leave();
}

/* Runs before the library's own handler, which waits for the peers to come to their end, and then
 * unmaps what a thread that is still in a call works on. */
static void end_with_status(int status, void *unused) {
    (void)unused;
    if (weft_session.lost)
        return;
    if (weft_session.running)
        end_running(status);
    else if (lingering)
        weft_closing_leave();
}

static void forget_in_child(void) {
    weft_session.forked = weft_session.running || lingering;
    weft_session.running = lingering = false;
    weft_session.npes = 0;
    weft_closing_forget();
}

static void watch_end(void) {
    static bool watching;
    if (watching)
        return;
    watching = true;
    on_exit(end_with_status, NULL);
    shmemx_set_end_handler(lose_job);
    shmemx_set_where_handler(tell_where);
    pthread_atfork(NULL, NULL, forget_in_child);
}

/* --- init ------------------------------------------------------------------------------------ */

/* allgather: what the library calls, on its own thread's behalf, inside init without the GIL. */
static int gather(const void *mine, void *all, size_t bytes, void *callable) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *result = PyObject_CallFunction(callable, "y#", (const char *)mine, (Py_ssize_t)bytes);
    PyObject *joined = NULL, *empty = PyBytes_FromStringAndSize(NULL, 0);
    if (result && empty)
        joined = PyObject_CallMethod(empty, "join", "O", result);
    char *data;
    Py_ssize_t length;
    int rc = joined ? PyBytes_AsStringAndSize(joined, &data, &length) : -1;
    if (rc == 0 && (size_t)length == bytes * (size_t)weft_session.npes)
        memcpy(all, data, (size_t)length);
    else if (rc == 0) {
        PyErr_Format(PyExc_ValueError,
                     "init: argument allgather has returned %zd bytes in all: return one piece of "
                     "%zu bytes of each of %d PEs",
                     length, bytes, weft_session.npes);
        rc = -1;
    }
    Py_XDECREF(result);
    Py_XDECREF(joined);
    Py_XDECREF(empty);
    PyGILState_Release(state);
    return rc;
}

static int init_attr(unsigned flags, int pe, int npes, const void *uniqueid, PyObject *allgather) {
    shmemx_init_attr_t attr = {.pe = pe,
                               .npes = npes,
                               .requested = SHMEM_THREAD_MULTIPLE,
                               .uniqueid = uniqueid,
                               .allgather = gather,
                               .context = allgather};
    return shmemx_init_attr(flags, &attr);
}

static bool given(PyObject *object) {
    return object && object != Py_None;
}

/* Where the arguments say who this PE is, all of that has to be there. */
static bool check_place(PyObject *const *in) {
    bool way = given(in[2]) != given(in[3]);
    if (way && given(in[0]) && given(in[1]))
        return true;
    if (!given(in[0]) && !given(in[1]) && !given(in[2]) && !given(in[3]))
        return true;
    PyErr_SetString(PyExc_ValueError, "init: pass rank, size and one of uniqueid and allgather, or "
                                      "none of them to take part in the job of the launcher");
    return false;
}

static bool read_place(PyObject *const *in, int *pe, int *npes) {
    if (!given(in[0]) || !given(in[1]))
        return true;
    if (!weft_argument_int("init", "rank", in[0], pe) ||
        !weft_argument_int("init", "size", in[1], npes))
        return false;
    if (*npes < 1)
        PyErr_Format(PyExc_ValueError, "init: argument size is %d: pass 1 or more", *npes);
    else if (*pe < 0 || *pe >= *npes)
        PyErr_Format(PyExc_ValueError,
                     "init: argument rank is %d: with size=%d there are ranks 0 to %d", *pe, *npes,
                     *npes - 1);
    return !PyErr_Occurred();
}

static bool read_id(PyObject *object, shmemx_uniqueid_t *id) {
    if (!given(object))
        return true;
    char *bytes;
    Py_ssize_t length = -1;
    if (!PyBytes_Check(object) || PyBytes_AsStringAndSize(object, &bytes, &length) < 0 ||
        length != sizeof *id) {
        PyErr_Format(PyExc_ValueError,
                     "init: argument uniqueid is %R: pass the %zu bytes that weft.uniqueid() gave "
                     "to one of the processes",
                     object, sizeof *id);
        return false;
    }
    memcpy(id, bytes, sizeof *id);
    return true;
}

static int join(PyObject *const *in, int pe, int npes, const shmemx_uniqueid_t *id) {
    int error, provided;
    bool gathers = given(in[3]);
    weft_session.npes = npes;
    Py_BEGIN_ALLOW_THREADS;
    if (npes > 0)
        error = init_attr(gathers ? SHMEMX_INIT_WITH_ALLGATHER : SHMEMX_INIT_WITH_UNIQUEID, pe,
                          npes, id, in[3]);
    else
        error = shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    Py_END_ALLOW_THREADS;
    weft_session.npes = 0;
    return error;
}

static void begin(void) {
    weft_session.pe = shmem_my_pe();
    weft_session.npes = shmem_n_pes();
    weft_session.number++;
    weft_session.checked = getenv("SHMEM_DEBUG") || getenv("SMA_DEBUG");
    weft_session.running = true;
    lingering = false;
    watch_end();
}

/* What init() was told has to agree with what the process is. */
static bool check_same(int pe, int npes) {
    if ((pe < 0 || pe == weft_session.pe) && (npes <= 0 || npes == weft_session.npes))
        return true;
    PyErr_Format(PyExc_RuntimeError,
                 "init: this process is PE %d of %d already and cannot become PE %d of %d",
                 weft_session.pe, weft_session.npes, pe, npes);
    return false;
}

WEFT_FUNCTION(init) {
    static const struct weft_signature signature = {
        "init", 0, 4, {"rank", "size", "uniqueid", "allgather"}};
    PyObject *in[4];
    shmemx_uniqueid_t id;
    int pe = -1, npes = 0;
    (void)self;
    if (!weft_arguments_sort(&signature, args, nargs, names, in) || !check_place(in) ||
        !read_place(in, &pe, &npes) || !read_id(in[2], &id))
        return NULL;
    if (weft_session.running && !weft_session.lost)
        return check_same(pe, npes) ? Py_NewRef(Py_None) : NULL;
    if (weft_session.forked || weft_session.lost) {
        weft_session_check("init");
        return NULL;
    }
    struct weft_told told;
    weft_told_begin(&told);
    int error = lingering ? 0 : join(in, pe, npes, &id);
    weft_told_end(&told, error);
    if (PyErr_Occurred())
        return NULL;
    if (error)
        return PyErr_Format(
            PyExc_RuntimeError, "init: %s%s", *told.text ? told.text : weft_error_text(error),
            error == -ENOTSOCK ? "; Jupyter's kernels and ipyparallel's engines take "
                                 "part by weft.init(rank, size, uniqueid=...)"
                               : "");
    begin();
    return check_same(pe, npes) ? Py_NewRef(Py_None) : NULL;
}

/* --- finalize and queries -------------------------------------------------------------------- */

/* Where nobody has made symmetric memory nobody can need any: the PEs that finalize, and those that
 * end, part in the library. A thread of this one that is in a call has to be out of it before. */
static bool check_idle(void) {
    bool idle;
    Py_BEGIN_ALLOW_THREADS;
    idle = all_leave(&weft_session.unlocked);
    Py_END_ALLOW_THREADS;
    if (!idle)
        PyErr_SetString(PyExc_RuntimeError, "finalize: another thread of this process is in a call "
                                            "of weft: let it come back first");
    return idle;
}

/* Whether memory stays, and the library with it. */
static bool find_needed(bool *needed) {
    bool needs = weft_memory_needed() || atomic_load(&weft_session.unlocked) > 0;
    int error;
    *needed = false;
    if (!weft_closing_prepared())
        return check_idle();
    WEFT_UNLOCKED(error, weft_closing_agree(needs, needed));
    if (error)
        weft_error_raise("finalize", error);
    return error == 0;
}

static int leave(void) {
    shmem_finalize();
    return 0;
}

static PyObject *finalize(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    if (!weft_session.running)
        Py_RETURN_NONE;
    bool needed;
    int error = 0;
    weft_pending_finish();
    if (!find_needed(&needed))
        return NULL;
    weft_session.running = false;
    if (!needed)
        WEFT_UNLOCKED(error, leave());
    if (error)
        return weft_error_raise("finalize", error);
    lingering = needed;
    weft_memory_close(needed);
    weft_session.npes = 0;
    Py_RETURN_NONE;
}

/* What Python has not written yet would be lost with the process. */
static void flush_python(void) {
    for (int i = 0; i < 2; i++) {
        PyObject *stream = PySys_GetObject(i ? "stderr" : "stdout"); /* borrowed */
        PyObject *flushed =
            stream && stream != Py_None ? PyObject_CallMethod(stream, "flush", NULL) : NULL;
        Py_XDECREF(flushed);
        PyErr_Clear();
    }
}

WEFT_FUNCTION(global_exit) {
    static const struct weft_signature signature = {"global_exit", 0, 1, {"status"}};
    PyObject *in[1];
    int status = 0;
    (void)self;
    if (!weft_arguments_in_job(&signature, args, nargs, names, in) ||
        !weft_argument_int(signature.call, "status", in[0], &status))
        return NULL;
    if (status < 0 || status > 255)
        return PyErr_Format(PyExc_ValueError,
                            "global_exit: argument status is %d: pass a process's, 0 to 255",
                            status);
    flush_python();
    weft_session.running = false; /* its end asks nobody, and waits for nobody */
    shmem_global_exit(status);
    return NULL;
}

static PyObject *initialized(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    return PyBool_FromLong(weft_session.running);
}

static PyObject *uniqueid(PyObject *self, PyObject *unused) {
    shmemx_uniqueid_t id;
    (void)self;
    (void)unused;
    int error = shmemx_get_uniqueid(&id);
    if (error)
        return weft_error_raise("uniqueid", error);
    return PyBytes_FromStringAndSize((const char *)&id, sizeof id);
}

static PyObject *my_pe(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    return weft_session_check("my_pe") ? PyLong_FromLong(weft_session.pe) : NULL;
}

static PyObject *n_pes(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    return weft_session_check("n_pes") ? PyLong_FromLong(weft_session.npes) : NULL;
}

static PyObject *device(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    int found = weft_session_check("device") ? weft_session_device("device") : -1;
    return found < 0 ? NULL : PyLong_FromLong(found);
}

PyMethodDef weft_session_methods[] = {
    WEFT_METHOD(init, "init(rank=None, size=None, uniqueid=None, allgather=None)\n--\n\n"
                      "As weft.init, which also looks at torch.distributed."),
    {"finalize", finalize, METH_NOARGS,
     "finalize()\n--\n\n"
     "Leaves the job. Collective over all PEs; does nothing when there is no job.\n\n"
     "Buffers raise RuntimeError from then on. Where arrays or tensors still show symmetric\n"
     "memory, on any PE, they stay good, and the memory stays till the processes end.\n"
     "RuntimeError while another thread is in a call and there is no symmetric memory.\n"
     "Need not be called: a process that ends does it, and waits for the others to end.\n"
     "A process that ends with a status other than 0 ends the whole job with it instead."},
    WEFT_METHOD(global_exit,
                "global_exit(status=0)\n--\n\n"
                "Ends all PEs of the job with this status, from any of them, whatever the others\n"
                "do. Does not return; runs neither `finally` nor atexit handlers. sys.exit() ends\n"
                "this PE alone where the status is 0, and the job where it is not.\n\n"
                "ValueError: no status from 0 to 255. RuntimeError: before init(), after\n"
                "finalize()."),
    {"initialized", initialized, METH_NOARGS,
     "initialized()\n--\n\nWhether this process is between init() and finalize()."},
    {"uniqueid", uniqueid, METH_NOARGS,
     "uniqueid()\n--\n\n"
     "128 bytes that name a job that is to be. One process makes them and brings them to the\n"
     "others, and all call init(rank, size, uniqueid). Who knows them and runs under the same\n"
     "user can take part: treat them as a password."},
    {"my_pe", my_pe, METH_NOARGS, "my_pe()\n--\n\nThis PE's number, from 0."},
    {"n_pes", n_pes, METH_NOARGS, "n_pes()\n--\n\nHow many PEs the job has."},
    {"device", device, METH_NOARGS,
     "device()\n--\n\n"
     "CUDA's number of this PE's GPU, as this process counts them. RuntimeError without one."},
    {NULL, NULL, 0, NULL},
};
