/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns errors of the library into Python exceptions. */
#ifndef PYWEFT_ERROR_H
#define PYWEFT_ERROR_H

#include "module.h"

/* Raises the exception for a negative errno of the library, with the text of weft_last_error():
 *
 *   ValueError           -EINVAL, -ERANGE, -EFAULT: an argument, on this PE or another one
 *   MemoryError          -ENOMEM
 *   TimeoutError         -ETIMEDOUT
 *   NotImplementedError  -ENOTSUP, -ENOSYS
 *   RuntimeError         all others: the job, the machine, a GPU; and always if members make
 *                        different collective calls
 *
 * Returns NULL. */
PyObject *pyweft_error_raise(const char *call, int error);

/* Captures the lines that the library would write to stderr for this thread, between begin and end,
 * to become the text of an exception. Without an error, end writes them to stderr. */
struct pyweft_capture {
    char text[1024];
};
void pyweft_capture_begin(struct pyweft_capture *captured);
void pyweft_capture_end(struct pyweft_capture *captured, int error);

/* Same as pyweft_error_raise, but with the captured lines as the text if there are any. */
PyObject *pyweft_error_raise_captured(const char *call, int error,
                                      const struct pyweft_capture *captured);

/* Returns the text for an error that the last call of this thread has returned. Valid until the
 * thread's next call. */
PYWEFT_EXPORT const char *pyweft_error_text(int error);

/* Returns None if error is 0, otherwise raises the exception and returns NULL. */
PyObject *pyweft_error_result(const char *call, int error);

#endif
