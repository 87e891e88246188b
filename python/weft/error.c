/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of failure, by errno. Texts of the library name the C function; callers of Python read
 * the name of theirs in front. */
#include "error.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "session.h"

/* The library has more than one way to find members that make different calls, each with an errno
 * of its own. */
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

const char *weft_error_text(int error) {
    const char *text = error == WEFT_JOB_LOST ? weft_session_loss() : weft_last_error();
    return *text ? text : strerror(-error);
}

/* Texts that begin with the C function of the same name need not say it twice. */
static const char *without_name(const char *text, const char *call) {
    size_t length = strlen(call);
    if (strncmp(text, "weft_", 5) == 0 && strncmp(text + 5, call, length) == 0 &&
        strncmp(text + 5 + length, ": ", 2) == 0)
        return text + 5 + length + 2;
    return text;
}

PyObject *weft_error_raise(const char *call, int error) {
    const char *text = weft_error_text(error);
    return PyErr_Format(kind(error, text), "%s: %s", call, without_name(text, call));
}

/* --- Lines of the library -------------------------------------------------------------------- */

static _Thread_local struct weft_told *listener;

static int keep(const char *line) {
    if (!listener)
        return false;
    size_t length = strlen(listener->text);
    snprintf(listener->text + length, sizeof listener->text - length, "%s%s", length ? "; " : "",
             line);
    return true;
}

void weft_told_begin(struct weft_told *told) {
    told->text[0] = '\0';
    shmemx_set_log_handler(keep);
    listener = told;
}

void weft_told_end(struct weft_told *told, int error) {
    listener = NULL;
    if (!error && *told->text)
        fprintf(stderr, "weft: %s\n", told->text);
}

PyObject *weft_error_raise_told(const char *call, int error, const struct weft_told *told) {
    if (!*told->text || error == WEFT_JOB_LOST)
        return weft_error_raise(call, error);
    return PyErr_Format(kind(error, told->text), "%s: %s", call, told->text);
}

PyObject *weft_error_result(const char *call, int error) {
    if (error)
        return weft_error_raise(call, error);
    Py_RETURN_NONE;
}
