/* SPDX-License-Identifier: BSD-3-Clause */
/* How the library's failures become exceptions. */
#ifndef PYWEFT_ERROR_H
#define PYWEFT_ERROR_H

#include "module.h"

/* The exception for a negative errno of the library, with the text of weft_last_error():
 *   ValueError           -EINVAL, -ERANGE, -EFAULT: an argument, here or on another PE
 *   MemoryError          -ENOMEM
 *   TimeoutError         -ETIMEDOUT
 *   NotImplementedError  -ENOTSUP, -ENOSYS
 *   RuntimeError         all else: the state of the job, the machine, a GPU; and members that make
 *                        different calls, whatever the errno
 * Returns NULL. */
PyObject *pyweft_error_raise(const char *call, int error);

/* Between begin and end, lines of this thread that the library would write on stderr are kept: they
 * are the text of the exception, if there is one. End writes them if there was no error. */
struct pyweft_capture {
    char text[1024];
};
void pyweft_capture_begin(struct pyweft_capture *captured);
void pyweft_capture_end(struct pyweft_capture *captured, int error);

/* pyweft_error_raise, with the captured lines as its text, if there are any. */
PyObject *pyweft_error_raise_captured(const char *call, int error,
                                      const struct pyweft_capture *captured);

/* What there is to say of an error that a call of this thread has just returned. Lives until the
 * next one. */
PYWEFT_EXPORT const char *pyweft_error_text(int error);

/* None if error is 0. */
PyObject *pyweft_error_result(const char *call, int error);

#endif
