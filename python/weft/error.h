/* SPDX-License-Identifier: BSD-3-Clause */
/* How the library's failures become exceptions. */
#ifndef WEFT_PYTHON_ERROR_H
#define WEFT_PYTHON_ERROR_H

#include "module.h"

/* The exception for a negative errno of the library, with the text of weft_last_error():
 *   ValueError           -EINVAL, -ERANGE, -EFAULT: an argument, here or on another PE
 *   MemoryError          -ENOMEM
 *   TimeoutError         -ETIMEDOUT
 *   NotImplementedError  -ENOTSUP, -ENOSYS
 *   RuntimeError         all else: the state of the job, the machine, a GPU; and members that make
 *                        different calls, whatever the errno
 * Returns NULL. */
PyObject *weft_error_raise(const char *call, int error);

/* Between begin and end, lines of this thread that the library would write on stderr are kept: they
 * are the text of the exception, if there is one. End writes them if there was no error. */
struct weft_told {
    char text[1024];
};
void weft_told_begin(struct weft_told *told);
void weft_told_end(struct weft_told *told, int error);

/* weft_error_raise, with what was told, if something was. */
PyObject *weft_error_raise_told(const char *call, int error, const struct weft_told *told);

/* What there is to say of an error that a call of this thread has just returned. Lives until the
 * next one. */
WEFT_EXPORT const char *weft_error_text(int error);

/* None if error is 0. */
PyObject *weft_error_result(const char *call, int error);

#endif
