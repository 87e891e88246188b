/* SPDX-License-Identifier: BSD-3-Clause */
/* Parsing arguments. Every error names the call, the argument and the value. */
#include "argument.h"
#include "session.h"
#include <limits.h>
#include <string.h>

static int find_name(const struct pyweft_signature *signature, PyObject *name) {
    for (int i = 0; signature->names[i]; i++)
        if (PyUnicode_CompareWithASCIIString(name, signature->names[i]) == 0)
            return i;
    return -1;
}

/* Reports the first error only. */
static bool sort_names(const struct pyweft_signature *signature, PyObject *const *values,
                       PyObject *names, PyObject **given) {
    Py_ssize_t count = names ? PyTuple_Size(names) : 0;
    bool right = true;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        int at = find_name(signature, name);
        if (at >= 0 && !given[at])
            given[at] = values[i];
        else if (right) {
            PyErr_Format(PyExc_TypeError,
                         at < 0 ? "%s: there is no argument %R" : "%s: argument %R is given twice",
                         signature->call, name);
            right = false;
        }
    }
    return right;
}

static bool check_required(const struct pyweft_signature *signature, PyObject *const *given) {
    for (int i = 0; i < signature->required; i++)
        if (!given[i]) {
            PyErr_Format(PyExc_TypeError, "%s: argument %s is missing", signature->call,
                         signature->names[i]);
            return false;
        }
    return true;
}

bool pyweft_arguments_sort(const struct pyweft_signature *signature, PyObject *const *args,
                           Py_ssize_t nargs, PyObject *names, PyObject **given) {
    for (int i = 0; signature->names[i]; i++)
        given[i] = i < nargs && i < signature->positional ? args[i] : NULL;
    bool sorted = sort_names(signature, args + nargs, names, given);
    if (sorted && nargs > signature->positional) {
        PyErr_Format(PyExc_TypeError,
                     "%s: got %zd arguments, at most %d may be given without their names",
                     signature->call, nargs, signature->positional);
        return false;
    }
    return sorted && check_required(signature, given);
}

bool pyweft_arguments_in_job(const struct pyweft_signature *signature, PyObject *const *args,
                             Py_ssize_t nargs, PyObject *names, PyObject **given) {
    return pyweft_session_check(signature->call) &&
           pyweft_arguments_sort(signature, args, nargs, names, given);
}

static bool is_wrong(const char *call, const char *name, PyObject *object, const char *expected) {
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "%s: argument %s is %R: pass %s", call, name, object, expected);
    return false;
}

/* Returns the object as an int, or NULL with TypeError. */
static PyObject *number(const char *call, const char *name, PyObject *object) {
    PyObject *index = PyNumber_Index(object);
    if (!index && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%s: argument %s is %R: pass a whole number", call, name,
                     object);
    }
    return index;
}

bool pyweft_argument_int(const char *call, const char *name, PyObject *object, int *value) {
    if (!object)
        return true;
    PyObject *index = number(call, name, object);
    if (!index)
        return false;
    int overflow = 0;
    long found = PyLong_AsLongAndOverflow(index, &overflow);
    Py_DECREF(index);
    if (overflow || found < INT_MIN || found > INT_MAX)
        return is_wrong(call, name, object, "a number of 32 bits");
    *value = (int)found;
    return true;
}

bool pyweft_argument_uint64(const char *call, const char *name, PyObject *object, uint64_t *value) {
    if (!object)
        return true;
    PyObject *index = number(call, name, object);
    if (!index)
        return false;
    uint64_t found = PyLong_AsUnsignedLongLong(index);
    Py_DECREF(index);
    if (found == UINT64_MAX && PyErr_Occurred())
        return is_wrong(call, name, object, "a number from 0 to 2**64 - 1");
    *value = found;
    return true;
}

bool pyweft_argument_size(const char *call, const char *name, PyObject *object, size_t *value) {
    uint64_t found = *value;
    if (!pyweft_argument_uint64(call, name, object, &found))
        return false;
    if (found > (uint64_t)PTRDIFF_MAX)
        return is_wrong(call, name, object, "a size that memory can have");
    *value = found;
    return true;
}

bool pyweft_argument_choice(const char *call, const char *name, PyObject *object,
                            const char *const *choices, int *choice) {
    if (!object)
        return true;
    char allowed[160] = "";
    for (int i = 0; choices[i]; i++) {
        if (PyUnicode_Check(object) && PyUnicode_CompareWithASCIIString(object, choices[i]) == 0) {
            *choice = i;
            return true;
        }
        strncat(allowed, i ? ", '" : "'", sizeof allowed - strlen(allowed) - 1);
        strncat(allowed, choices[i], sizeof allowed - strlen(allowed) - 1);
        strncat(allowed, "'", sizeof allowed - strlen(allowed) - 1);
    }
    return is_wrong(call, name, object, allowed);
}

bool pyweft_argument_space(const char *call, PyObject *object, shmemx_space_t *space) {
    static const char *const spaces[] = {"host", "device", NULL};
    int choice = *space == SHMEMX_SPACE_DEVICE;
    if (!pyweft_argument_choice(call, "space", object, spaces, &choice))
        return false;
    *space = choice ? SHMEMX_SPACE_DEVICE : SHMEMX_SPACE_HOST;
    return true;
}

bool pyweft_argument_pe(const char *call, PyObject *object, int *pe) {
    if (!pyweft_argument_int(call, "pe", object, pe))
        return false;
    if (*pe >= 0 && *pe < pyweft_session.npes)
        return true;
    PyErr_Format(PyExc_ValueError, "%s: argument pe is %d: the job has PEs 0 to %d", call, *pe,
                 pyweft_session.npes - 1);
    return false;
}

/* --- Sequences ------------------------------------------------------------------------------- */

static Py_ssize_t sequence_length(const char *call, const char *name, PyObject *object) {
    Py_ssize_t count = PySequence_Check(object) ? PySequence_Size(object) : -1;
    if (count < 0) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%s: argument %s is %R: pass a sequence of numbers", call,
                     name, object);
    }
    return count;
}

int *pyweft_argument_pes(const char *call, PyObject *object, int *count) {
    Py_ssize_t length = sequence_length(call, "pes", object);
    if (length < 0)
        return NULL;
    int *pes = length > INT_MAX ? NULL : PyMem_Malloc(((size_t)length + 1) * sizeof *pes);
    bool right = pes != NULL;
    if (!pes)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; right && i < length; i++) {
        PyObject *pe = PySequence_GetItem(object, i);
        right = pe && pyweft_argument_int(call, "pes", pe, &pes[i]);
        Py_XDECREF(pe);
    }
    *count = (int)length;
    if (right)
        return pes;
    PyMem_Free(pes);
    return NULL;
}

size_t *pyweft_argument_sizes(const char *call, const char *name, PyObject *object, size_t count) {
    Py_ssize_t length = sequence_length(call, name, object);
    if (length < 0)
        return NULL;
    if ((size_t)length != count)
        return PyErr_Format(PyExc_ValueError, "%s: argument %s has %zd numbers, expected %zu", call,
                            name, length, count),
               NULL;
    size_t *sizes = PyMem_Malloc((count + 1) * sizeof *sizes);
    if (!sizes)
        PyErr_NoMemory();
    for (size_t i = 0; sizes && i < count; i++) {
        PyObject *size = PySequence_GetItem(object, (Py_ssize_t)i);
        if (!size || !pyweft_argument_size(call, name, size, &sizes[i])) {
            PyMem_Free(sizes);
            sizes = NULL;
        }
        Py_XDECREF(size);
    }
    return sizes;
}

/* --- Streams --------------------------------------------------------------------------------- */

/* Returns the handle of the pair (version, handle) that __cuda_stream__ returns. */
static PyObject *stream_of_protocol(PyObject *object) {
    PyObject *pair = PyObject_CallMethod(object, "__cuda_stream__", NULL);
    PyObject *handle = pair ? PySequence_GetItem(pair, 1) : NULL;
    Py_XDECREF(pair);
    return handle;
}

static PyObject *stream_handle(PyObject *object) {
    if (PyLong_Check(object))
        return Py_NewRef(object);
    if (PyObject_HasAttrString(object, "cuda_stream"))
        return PyObject_GetAttrString(object, "cuda_stream");
    if (PyObject_HasAttrString(object, "__cuda_stream__"))
        return stream_of_protocol(object);
    return PyObject_GetAttrString(object, "ptr");
}

bool pyweft_argument_stream(const char *call, PyObject *object, weft_stream *stream) {
    *stream = WEFT_STREAM_HOST;
    if (!object || object == Py_None)
        return true;
    PyObject *handle = stream_handle(object);
    void *found = handle ? PyLong_AsVoidPtr(handle) : NULL;
    Py_XDECREF(handle);
    if (PyErr_Occurred())
        return is_wrong(call, "stream", object,
                        "None, a CUDA stream of torch, cupy or cuda.core, or its number");
    *stream = found;
    return true;
}
