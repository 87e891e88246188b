/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading Python frames needs the GIL, which another thread may hold forever, while peers wait for
 * this thread's call, which runs without it. So a separate thread reads the frames, and the waiting
 * thread gives up after 0.1 s. The last of the two threads frees the query. */
#include "where.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "module.h"

enum { PATIENCE_MS = 100, NAME_BYTES = 64, WHERE_BYTES = 192 };

struct frame_query {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    int holders; /* of the two threads */
    bool done;
    unsigned long thread; /* Python's id of the waiting thread */
    const char *call;     /* the C function that it has called, or NULL */
    char where[WHERE_BYTES];
};

/* Returns the folder of an imported module, with a slash, or NULL. A new reference. */
static PyObject *folder_of(const char *module) {
    PyObject *name = PyUnicode_FromString(module);
    PyObject *found = name ? PyImport_GetModule(name) : NULL;
    PyObject *file = found ? PyObject_GetAttrString(found, "__file__") : NULL;
    PyObject *folder = file ? PyObject_CallMethod(file, "removesuffix", "s", "__init__.py") : NULL;
    Py_XDECREF(name);
    Py_XDECREF(found);
    Py_XDECREF(file);
    PyErr_Clear();
    return folder;
}

static bool lies_in(PyObject *file, const char *module) {
    PyObject *folder = folder_of(module);
    bool inside = folder && PyUnicode_Tailmatch(file, folder, 0, PY_SSIZE_T_MAX, -1) == 1;
    Py_XDECREF(folder);
    PyErr_Clear();
    return inside;
}

static PyObject *code_get(PyObject *frame, const char *attribute) {
    PyObject *code = PyObject_GetAttrString(frame, "f_code");
    PyObject *value = code ? PyObject_GetAttrString(code, attribute) : NULL;
    Py_XDECREF(code);
    PyErr_Clear();
    return value;
}

/* Notes the name of a function of the package, "Handle.barrier". Callers come later and replace it.
 * The wrappers made by decorators are named `call` and are skipped. */
static void note_function(PyObject *frame, char *name) {
    PyObject *function = code_get(frame, "co_qualname"); /* since Python 3.11 */
    if (!function)
        function = code_get(frame, "co_name");
    const char *text = function ? PyUnicode_AsUTF8AndSize(function, NULL) : NULL;
    const char *local = text ? strrchr(text, '>') : NULL; /* of "f.<locals>.call" */
    text = local && local[1] == '.' ? local + 2 : text;
    if (text && strcmp(text, "call") != 0)
        snprintf(name, NAME_BYTES, "%s", text);
    Py_XDECREF(function);
    PyErr_Clear();
}

static void describe(PyObject *frame, PyObject *file, const char *name, char *where) {
    PyObject *number = PyObject_GetAttrString(frame, "f_lineno");
    const char *path = PyUnicode_AsUTF8AndSize(file, NULL);
    const char *slash = path ? strrchr(path, '/') : NULL;
    long line = number && PyLong_Check(number) ? PyLong_AsLong(number) : 0;
    if (path)
        snprintf(where, WHERE_BYTES, "%s%s%.100s:%ld", name, *name ? " at " : "",
                 slash ? slash + 1 : path, line);
    Py_XDECREF(number);
}

/* Walks from `frame` outwards to the program's own code; if there is none, the innermost frame is
 * described. Drops the reference to the frame. */
static void find_own(PyObject *frame, const char *call, char *where) {
    char name[NAME_BYTES] = "";
    bool own = false;
    if (call) /* "barrier" becomes weft.barrier; "Block.share" is a method */
        snprintf(name, sizeof name, "%s%s", strchr(call, '.') ? "" : "weft.", call);
    while (frame && frame != Py_None && !own) {
        PyObject *file = code_get(frame, "co_filename");
        bool of_package = file && lies_in(file, "weft");
        own = file && !of_package && !lies_in(file, "torch");
        if (of_package)
            note_function(frame, name);
        if (file && (own || !*where))
            describe(frame, file, name, where);
        PyObject *outer = own ? NULL : PyObject_GetAttrString(frame, "f_back");
        Py_XDECREF(file);
        Py_DECREF(frame);
        frame = outer;
    }
    Py_XDECREF(frame);
}

static PyObject *frame_of(unsigned long thread) {
    PyObject *sys = PyImport_ImportModule("sys");
    PyObject *frames = sys ? PyObject_CallMethod(sys, "_current_frames", NULL) : NULL;
    PyObject *key = frames ? PyLong_FromUnsignedLong(thread) : NULL;
    PyObject *frame = key ? PyObject_GetItem(frames, key) : NULL;
    Py_XDECREF(sys);
    Py_XDECREF(frames);
    Py_XDECREF(key);
    return frame;
}

static void let_go(struct frame_query *query) {
    pthread_mutex_lock(&query->lock);
    bool last = --query->holders == 0;
    pthread_mutex_unlock(&query->lock);
    if (!last)
        return;
    pthread_cond_destroy(&query->answered);
    pthread_mutex_destroy(&query->lock);
    free(query);
}

static void *answer(void *argument) {
    struct frame_query *query = argument;
    char where[WHERE_BYTES] = "";
    PyGILState_STATE state = PyGILState_Ensure();
    find_own(frame_of(query->thread), query->call, where);
    PyErr_Clear();
    PyGILState_Release(state);
    pthread_mutex_lock(&query->lock);
    memcpy(query->where, where, sizeof where);
    query->done = true;
    pthread_cond_signal(&query->answered);
    pthread_mutex_unlock(&query->lock);
    let_go(query);
    return NULL;
}

static struct frame_query *ask(const char *call) {
    struct frame_query *query = calloc(1, sizeof *query);
    if (!query)
        return NULL;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&query->lock, NULL);
    pthread_cond_init(&query->answered, &attributes);
    pthread_condattr_destroy(&attributes);
    query->thread = PyThread_get_thread_ident();
    query->call = call;
    query->holders = 2;
    return query;
}

/* The thread blocks all signals, which are meant for the program's threads. */
static bool start_answer(struct frame_query *query) {
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, NULL, answer, query);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        pthread_detach(thread);
    return error == 0;
}

static void await_answer(struct frame_query *query) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += PATIENCE_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    int error = 0;
    while (!query->done && error == 0)
        error = pthread_cond_timedwait(&query->answered, &query->lock, &until);
}

void pyweft_where(const char *call, char *where, size_t bytes) {
    struct frame_query *query = Py_IsInitialized() ? ask(call) : NULL;
    if (!query)
        return;
    if (!start_answer(query))
        query->holders--;
    pthread_mutex_lock(&query->lock);
    if (query->holders == 2)
        await_answer(query);
    if (query->done)
        snprintf(where, bytes, "%s", query->where);
    pthread_mutex_unlock(&query->lock);
    let_go(query);
}
