/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks: one int64 element of symmetric memory, the same object on all PEs. A list holds the locks
 * that this PE has set, and the thread that set each: the library ends the job if a PE clears a
 * lock that it does not hold, and a PE that sets its own lock again would wait forever. An entry
 * refers to the lock's memory, to detect that another lock may be at that address now. */
#include <string.h>
#include "argument.h"
#include "array.h"
#include "error.h"
#include "memory.h"
#include "session.h"

struct held {
    struct held *next;
    long *lock;
    struct pyweft_memory *memory; /* NULL if C code allocated it */
    unsigned long thread;
    unsigned session;
};

static struct held *all; /* protected by the GIL */

static void drop(struct held *held) {
    if (held->memory)
        pyweft_memory_drop(held->memory);
    PyMem_Free(held);
}

static bool is_over(const struct held *held) {
    return held->session != pyweft_session.number || (held->memory && held->memory->gone);
}

/* Returns the link to the lock's entry, or to the end of the list. Removes entries whose lock is
 * gone. */
static struct held **find(const long *lock) {
    struct held **link = &all, *held;
    while ((held = *link) && (held->lock != lock || is_over(held)))
        if (is_over(held)) {
            *link = held->next;
            drop(held);
        } else {
            link = &held->next;
        }
    return link;
}

static struct held *enter(long *lock) {
    struct held *held = PyMem_Malloc(sizeof *held);
    if (!held) {
        PyErr_NoMemory();
        return NULL;
    }
    *held = (struct held){NULL, lock, pyweft_memory_find(lock), PyThread_get_thread_ident(),
                          pyweft_session.number};
    if (held->memory)
        pyweft_memory_hold(held->memory);
    return held;
}

static bool take(struct pyweft_array *array, const char *call, PyObject *object) {
    if (!pyweft_array_take(array, call, "lock", object, PYWEFT_ARRAY_WRITTEN, WEFT_STREAM_HOST))
        return false;
    if (strcmp(array->dtype->name, "int64") == 0 && array->nelems == 1 && array->device < 0 &&
        (uintptr_t)array->data % sizeof(long) == 0)
        return pyweft_array_check_symmetric(call, "lock", array, pyweft_session.pe);
    PyErr_Format(PyExc_ValueError,
                 "%s: argument lock has %zu elements of %s%s: pass one element of int64 in memory "
                 "of the host, such as weft.zeros(1, 'int64')",
                 call, array->nelems, array->dtype->name,
                 array->device < 0 ? "" : " in GPU memory");
    return false;
}

/* --- The calls of C -------------------------------------------------------------------------- */

static int set_unlocked(long *lock) {
    int error;
    PYWEFT_WITHOUT_GIL(error, (shmem_set_lock(lock), 0));
    return error;
}

static int test_held(long *lock, bool *set) {
    int error;
    PYWEFT_WITH_GIL(error, (*set = shmem_test_lock(lock) == 0, 0));
    return error;
}

static int clear_unlocked(long *lock) {
    int error;
    PYWEFT_WITHOUT_GIL(error, (shmem_clear_lock(lock), 0));
    return error;
}

/* --- The calls of Python --------------------------------------------------------------------- */

/* waits: blocks until this PE holds the lock, and returns None. Otherwise returns, as C does, False
 * if this PE holds it now. */
static PyObject *set_or_test(const char *call, long *lock, bool waits) {
    struct held *mine = *find(lock);
    bool set = waits;
    if (waits && mine && mine->thread == PyThread_get_thread_ident())
        return PyErr_Format(PyExc_RuntimeError,
                            "%s: this thread holds the lock already, and would wait for itself",
                            call);
    struct held *held = enter(lock);
    if (!held)
        return NULL;
    int error = waits ? set_unlocked(lock) : test_held(lock, &set);
    if (error || !set) {
        drop(held);
        return error ? pyweft_error_raise(call, error) : Py_NewRef(Py_True);
    }
    held->next = all;
    all = held;
    return Py_NewRef(waits ? Py_None : Py_False);
}

static PyObject *clear(const char *call, long *lock) {
    struct held **link = find(lock), *held = *link;
    if (!held)
        return PyErr_Format(
            PyExc_RuntimeError,
            "%s: this PE does not hold the lock: clear it once for each time that it was set",
            call);
    *link = held->next; /* first, because another thread may set it next */
    drop(held);
    return pyweft_error_result(call, clear_unlocked(lock));
}

static PyObject *set(const char *call, long *lock) {
    return set_or_test(call, lock, true);
}

static PyObject *test(const char *call, long *lock) {
    return set_or_test(call, lock, false);
}

static PyObject *run(const struct pyweft_signature *signature, PyObject *const *args,
                     Py_ssize_t nargs, PyObject *names,
                     PyObject *act(const char *call, long *lock)) {
    struct pyweft_array lock = {0};
    PyObject *in[1], *result = NULL;
    if (!pyweft_arguments_in_job(signature, args, nargs, names, in))
        return NULL;
    if (take(&lock, signature->call, in[0]))
        result = act(signature->call, (long *)lock.data);
    pyweft_array_drop(&lock);
    return result;
}

#define ON_LOCK(NAME, ACT)                                                        \
    PYWEFT_FUNCTION(NAME) {                                                       \
        static const struct pyweft_signature signature = {#NAME, 1, 1, {"lock"}}; \
        (void)self;                                                               \
        return run(&signature, args, nargs, names, ACT);                          \
    }
ON_LOCK(set_lock, set)
ON_LOCK(test_lock, test)
ON_LOCK(clear_lock, clear)
#undef ON_LOCK

#define LOCK                                                                             \
    "\n\nlock is one int64 element of symmetric host memory, initially zero, the same\n" \
    "object on all PEs; weft.Lock() makes one. ValueError: another kind of array.\n"     \
    "RuntimeError: before init(), after finalize(), or a peer failed"

PyMethodDef pyweft_lock_methods[] = {
    PYWEFT_METHOD(
        set_lock,
        "set_lock(lock)\n--\n\n"
        "Blocks until this PE holds the lock. One PE holds it at a time; PEs and threads are\n"
        "served in the order of their calls." LOCK ", a thread that holds it already."),
    PYWEFT_METHOD(
        test_lock,
        "test_lock(lock)\n--\n\n"
        "Returns False if this PE has got the lock, or True if another PE or thread holds it\n"
        "or waits for it." LOCK "."),
    PYWEFT_METHOD(clear_lock,
                  "clear_lock(lock)\n--\n\n"
                  "Releases the lock, after a quiet()." LOCK ", a PE that does not hold it."),
    {NULL, NULL, 0, NULL},
};
