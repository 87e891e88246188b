/* SPDX-License-Identifier: BSD-3-Clause */
/* init() and finalize(), and the exit of the process. A process that exits with a status other than
 * 0, as after an uncaught exception, ends the whole job, because its peers would wait for it
 * forever. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "argument.h"
#include "closing.h"
#include "error.h"
#include "gpu.h"
#include "memory.h"
#include "pending.h"
#include "session.h"

static bool lingering; /* finalized for Python, but the library runs on because there are views */

/* --- Exit of the process ---------------------------------------------------------------------- */

/* Gives threads in a call up to 0.2 s to notice the end and return. Returns whether all have. */
static bool all_leave(const atomic_int *threads) {
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int ms = 0; ms < 200 && atomic_load(threads) > 0; ms++)
        nanosleep(&pause, NULL);
    return atomic_load(threads) == 0;
}

/* If the status is not 0, the library's own exit handler ends the job and reports it. */
static void end_running(int status) {
    pyweft_session.running = false;
    bool left = all_leave(&pyweft_session.inside);
    if (!left)
        fprintf(
            stderr,
            "weft: PE %d exits with status %d while a thread of it is in a call: ending the job\n",
            pyweft_session.pe, status);
    if (pyweft_session.npes > 1 && !left)
        shmem_global_exit(status ? status : 1);
    else if (left)
        pyweft_closing_leave();
}

/* Runs before the library's own exit handler, which waits for the peers to exit and then unmaps
 * memory that a thread in a call may still use. */
static void end_with_status(int status, void *unused) {
    (void)unused;
    if (pyweft_session.lost)
        return;
    if (pyweft_session.running)
        end_running(status);
    else if (lingering)
        pyweft_closing_leave();
}

static void forget_in_child(void) {
    pyweft_session.forked = pyweft_session.running || lingering;
    pyweft_session.running = lingering = false;
    pyweft_session.npes = 0;
    pyweft_closing_forget();
}

static void watch_end(void) {
    static bool watching;
    if (watching)
        return;
    watching = true;
    on_exit(end_with_status, NULL);
    pyweft_session_set_handlers();
    pthread_atfork(NULL, NULL, forget_in_child);
}

/* --- init ------------------------------------------------------------------------------------ */

/* The library calls this during init, without the GIL: calls the Python function allgather. */
static int gather(const void *mine, void *all, size_t bytes, void *callable) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *result = PyObject_CallFunction(callable, "y#", (const char *)mine, (Py_ssize_t)bytes);
    PyObject *joined = NULL, *empty = PyBytes_FromStringAndSize(NULL, 0);
    if (result && empty)
        joined = PyObject_CallMethod(empty, "join", "O", result);
    char *data;
    Py_ssize_t length;
    int rc = joined ? PyBytes_AsStringAndSize(joined, &data, &length) : -1;
    if (rc == 0 && (size_t)length == bytes * (size_t)pyweft_session.npes)
        memcpy(all, data, (size_t)length);
    else if (rc == 0) {
        PyErr_Format(
            PyExc_ValueError,
            "init: argument allgather has returned %zd bytes in all: return one piece of %zu bytes "
            "from each of %d PEs",
            length, bytes, pyweft_session.npes);
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

/* If the arguments name this PE, they must be complete. */
static bool check_place(PyObject *const *in) {
    bool way = given(in[2]) != given(in[3]);
    if (way && given(in[0]) && given(in[1]))
        return true;
    if (!given(in[0]) && !given(in[1]) && !given(in[2]) && !given(in[3]))
        return true;
    PyErr_SetString(
        PyExc_ValueError,
        "init: pass rank, size and either uniqueid or allgather, or none of them to take part in "
        "the launcher's job");
    return false;
}

static bool read_place(PyObject *const *in, int *pe, int *npes) {
    if (!given(in[0]) || !given(in[1]))
        return true;
    if (!pyweft_argument_int("init", "rank", in[0], pe) ||
        !pyweft_argument_int("init", "size", in[1], npes))
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
                     "init: argument uniqueid is %R: pass the %zu bytes that weft.uniqueid() "
                     "returned in one "
                     "of the processes",
                     object, sizeof *id);
        return false;
    }
    memcpy(id, bytes, sizeof *id);
    return true;
}

static int join(PyObject *const *in, int pe, int npes, const shmemx_uniqueid_t *id) {
    int error, provided;
    bool gathers = given(in[3]);
    pyweft_session.npes = npes;
    Py_BEGIN_ALLOW_THREADS;
    if (npes > 0)
        error = init_attr(gathers ? SHMEMX_INIT_WITH_ALLGATHER : SHMEMX_INIT_WITH_UNIQUEID, pe,
                          npes, id, in[3]);
    else
        error = shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    Py_END_ALLOW_THREADS;
    pyweft_session.npes = 0;
    return error;
}

static void begin(void) {
    pyweft_session.pe = shmem_my_pe();
    pyweft_session.npes = shmem_n_pes();
    pyweft_session.number++;
    pyweft_session.checked = getenv("SHMEM_DEBUG") || getenv("SMA_DEBUG");
    pyweft_session.running = true;
    lingering = false;
    watch_end();
}

/* If the process is a PE already, the arguments must agree with that. */
static bool check_same(int pe, int npes) {
    if ((pe < 0 || pe == pyweft_session.pe) && (npes <= 0 || npes == pyweft_session.npes))
        return true;
    PyErr_Format(PyExc_RuntimeError,
                 "init: this process is PE %d of %d already and cannot become PE %d of %d",
                 pyweft_session.pe, pyweft_session.npes, pe, npes);
    return false;
}

PYWEFT_FUNCTION(init) {
    static const struct pyweft_signature signature = {
        "init", 0, 4, {"rank", "size", "uniqueid", "allgather"}};
    PyObject *in[4];
    shmemx_uniqueid_t id;
    int pe = -1, npes = 0;
    (void)self;
    if (!pyweft_arguments_sort(&signature, args, nargs, names, in) || !check_place(in) ||
        !read_place(in, &pe, &npes) || !read_id(in[2], &id))
        return NULL;
    if (pyweft_session.running && !pyweft_session.lost)
        return check_same(pe, npes) ? Py_NewRef(Py_None) : NULL;
    if (pyweft_session.forked || pyweft_session.lost) {
        pyweft_session_check("init");
        return NULL;
    }
    struct pyweft_capture captured;
    pyweft_capture_begin(&captured);
    int error = lingering ? 0 : join(in, pe, npes, &id);
    pyweft_capture_end(&captured, error);
    if (PyErr_Occurred())
        return NULL;
    if (error)
        return PyErr_Format(PyExc_RuntimeError, "init: %s%s",
                            *captured.text ? captured.text : pyweft_error_text(error),
                            error == -ENOTSOCK ? "; in Jupyter's kernels and ipyparallel's engines "
                                                 "call weft.init(rank, size, uniqueid=...)"
                                               : "");
    begin();
    return check_same(pe, npes) ? Py_NewRef(Py_None) : NULL;
}

/* --- finalize and queries -------------------------------------------------------------------- */

/* Without symmetric memory no PE can need it, so no agreement is necessary: PEs that finalize and
 * PEs that exit leave through the library. A thread of this process must not be in a call then. */
static bool check_idle(void) {
    bool idle;
    Py_BEGIN_ALLOW_THREADS;
    idle = all_leave(&pyweft_session.without_gil);
    Py_END_ALLOW_THREADS;
    if (!idle)
        PyErr_SetString(PyExc_RuntimeError, "finalize: another thread of this process is in a call "
                                            "of weft: wait until it has returned");
    return idle;
}

/* Sets *needed if memory stays, and the library with it. Returns false with an exception. */
static bool find_needed(bool *needed) {
    bool needs = pyweft_memory_needed() || atomic_load(&pyweft_session.without_gil) > 0;
    int error;
    *needed = false;
    if (!pyweft_closing_prepared())
        return check_idle();
    PYWEFT_WITHOUT_GIL(error, pyweft_closing_agree(needs, needed));
    if (error)
        pyweft_error_raise("finalize", error);
    return error == 0;
}

static PyObject *finalize(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    if (!pyweft_session.running)
        Py_RETURN_NONE;
    bool needed;
    int error = 0;
    pyweft_pending_finish();
    if (!find_needed(&needed))
        return NULL;
    pyweft_session.running = false;
    if (!needed)
        PYWEFT_WITHOUT_GIL(error, (shmem_finalize(), 0));
    if (error)
        return pyweft_error_raise("finalize", error);
    lingering = needed;
    pyweft_memory_close(needed);
    pyweft_session.npes = 0;
    Py_RETURN_NONE;
}

/* Flushes Python's stdout and stderr: shmem_global_exit would discard what they have buffered. */
static void flush_python(void) {
    for (int i = 0; i < 2; i++) {
        PyObject *stream = PySys_GetObject(i ? "stderr" : "stdout"); /* borrowed */
        PyObject *flushed =
            stream && stream != Py_None ? PyObject_CallMethod(stream, "flush", NULL) : NULL;
        Py_XDECREF(flushed);
        PyErr_Clear();
    }
}

PYWEFT_FUNCTION(global_exit) {
    static const struct pyweft_signature signature = {"global_exit", 0, 1, {"status"}};
    PyObject *in[1];
    int status = 0;
    (void)self;
    if (!pyweft_arguments_in_job(&signature, args, nargs, names, in) ||
        !pyweft_argument_int(signature.call, "status", in[0], &status))
        return NULL;
    if (status < 0 || status > 255)
        return PyErr_Format(PyExc_ValueError,
                            "global_exit: argument status is %d: pass a process status, 0 to 255",
                            status);
    flush_python();
    pyweft_session.running = false; /* the exit must not ask or wait for other PEs */
    shmem_global_exit(status);
    return NULL;
}

static PyObject *initialized(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    return PyBool_FromLong(pyweft_session.running);
}

static PyObject *uniqueid(PyObject *self, PyObject *unused) {
    shmemx_uniqueid_t id;
    (void)self;
    (void)unused;
    int error = shmemx_get_uniqueid(&id);
    if (error)
        return pyweft_error_raise("uniqueid", error);
    return PyBytes_FromStringAndSize((const char *)&id, sizeof id);
}

static PyObject *my_pe(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    return pyweft_session_check("my_pe") ? PyLong_FromLong(pyweft_session.pe) : NULL;
}

static PyObject *n_pes(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    return pyweft_session_check("n_pes") ? PyLong_FromLong(pyweft_session.npes) : NULL;
}

static PyObject *device(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    int found = pyweft_session_check("device") ? pyweft_gpu("device") : -1;
    return found < 0 ? NULL : PyLong_FromLong(found);
}

PyMethodDef pyweft_session_methods[] = {
    PYWEFT_METHOD(init, "init(rank=None, size=None, uniqueid=None, allgather=None)\n--\n\n"
                        "Same as weft.init, which also supports torch.distributed."),
    {"finalize", finalize, METH_NOARGS,
     "finalize()\n--\n\n"
     "Leaves the job. Collective over all PEs; does nothing without a job.\n\n"
     "Buffers raise RuntimeError from then on. Arrays and tensors that still show\n"
     "symmetric memory, on any PE, stay valid, and the memory stays until the processes\n"
     "exit. RuntimeError while another thread is in a call and there is no symmetric\n"
     "memory. Calling it is optional: a process that exits calls it, and waits for the\n"
     "others to exit. A process that exits with a status other than 0 ends the whole job\n"
     "instead."},
    PYWEFT_METHOD(
        global_exit,
        "global_exit(status=0)\n--\n\n"
        "Ends all PEs of the job with this status, whatever the other PEs do. Does not\n"
        "return; runs neither `finally` nor atexit handlers. sys.exit() ends only this PE if\n"
        "the status is 0, and the whole job if it is not.\n\n"
        "ValueError: no status from 0 to 255. RuntimeError: before init(), after finalize()."),
    {"initialized", initialized, METH_NOARGS,
     "initialized()\n--\n\n"
     "Returns whether this process is between init() and finalize()."},
    {"uniqueid", uniqueid, METH_NOARGS,
     "uniqueid()\n--\n\n"
     "Returns 128 bytes that identify a new job. One process makes them and passes them to\n"
     "the others, and all call init(rank, size, uniqueid). Every process of the user that\n"
     "knows them can take part: treat them as a password."},
    {"my_pe", my_pe, METH_NOARGS,
     "my_pe()\n--\n\n"
     "Returns this PE's number, from 0."},
    {"n_pes", n_pes, METH_NOARGS,
     "n_pes()\n--\n\n"
     "Returns the number of PEs in the job."},
    {"device", device, METH_NOARGS,
     "device()\n--\n\n"
     "Returns the number of this PE's GPU, as CUDA counts in this process. RuntimeError\n"
     "without one."},
    {NULL, NULL, 0, NULL},
};
