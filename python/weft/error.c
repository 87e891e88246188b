/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of failure, by errno. Texts of the library name the C function; callers of Python read
 * the name of theirs in front. */
#include "error.h"
#include <errno.h>
#include <string.h>
#include "session.h"

static PyObject *kind(int error) {
    switch (-error) {
    case EINVAL:
    case ERANGE:
    case EFAULT:
        return PyExc_ValueError;
    case ENOMEM:
        return PyExc_MemoryError;
    case ETIMEDOUT:
        return PyExc_TimeoutError;
    case ENOTSUP:
    case ENOSYS:
        return PyExc_NotImplementedError;
    default:
        return PyExc_RuntimeError;
    }
}

const char *weft_error_text(int error) {
    const char *text = error == WEFT_JOB_LOST ? weft_session_loss() : weft_last_error();
    return *text ? text : strerror(-error);
}

PyObject *weft_error_raise(const char *call, int error) {
    return PyErr_Format(kind(error), "%s: %s", call, weft_error_text(error));
}

PyObject *weft_error_result(const char *call, int error) {
    if (error)
        return weft_error_raise(call, error);
    Py_RETURN_NONE;
}
