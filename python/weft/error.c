/* SPDX-License-Identifier: BSD-3-Clause */
/* Exceptions by errno. The library's texts begin with the name of the C function; the Python
 * function's name is put before it. */
#include "error.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "session.h"

/* The library detects members that make different calls in several places, with different
 * errnos. */
static bool speaks_of_order(const char *text) {
    return strstr(text, "members must make the same ");
}

static PyObject *kind(int error, const char *text) {
    if (speaks_of_order(text))
        return PyExc_RuntimeError;
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

const char *pyweft_error_text(int error) {
    const char *text = error == PYWEFT_JOB_LOST ? pyweft_session_loss() : weft_last_error();
    return *text ? text : strerror(-error);
}

/* Drops the C function's name if it is the Python function's, so that it does not appear twice. */
static const char *without_name(const char *text, const char *call) {
    size_t length = strlen(call);
    if (strncmp(text, "weft_", 5) == 0 && strncmp(text + 5, call, length) == 0 &&
        strncmp(text + 5 + length, ": ", 2) == 0)
        return text + 5 + length + 2;
    return text;
}

PyObject *pyweft_error_raise(const char *call, int error) {
    const char *text = pyweft_error_text(error);
    return PyErr_Format(kind(error, text), "%s: %s", call, without_name(text, call));
}

/* --- Captured lines --------------------------------------------------------------------------- */

static _Thread_local struct pyweft_capture *capturing;

static int keep(const char *line) {
    if (!capturing)
        return false;
    size_t length = strlen(capturing->text);
    snprintf(capturing->text + length, sizeof capturing->text - length, "%s%s", length ? "; " : "",
             line);
    return true;
}

void pyweft_capture_begin(struct pyweft_capture *captured) {
    captured->text[0] = '\0';
    shmemx_set_log_handler(keep);
    capturing = captured;
}

void pyweft_capture_end(struct pyweft_capture *captured, int error) {
    capturing = NULL;
    if (!error && *captured->text)
        fprintf(stderr, "weft: %s\n", captured->text);
}

PyObject *pyweft_error_raise_captured(const char *call, int error,
                                      const struct pyweft_capture *captured) {
    if (!*captured->text || error == PYWEFT_JOB_LOST)
        return pyweft_error_raise(call, error);
    return PyErr_Format(kind(error, captured->text), "%s: %s", call, captured->text);
}

PyObject *pyweft_error_result(const char *call, int error) {
    if (error)
        return pyweft_error_raise(call, error);
    Py_RETURN_NONE;
}
