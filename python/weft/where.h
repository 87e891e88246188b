/* SPDX-License-Identifier: BSD-3-Clause */
/* Where Python has made the call that a thread waits in, for the library's lines about hangs. */
#ifndef PYWEFT_WHERE_H
#define PYWEFT_WHERE_H

#include <stddef.h>

/* For the library's handler (shmemx_set_where_handler): writes "weft.barrier at train.py:12", the
 * call and the line of the innermost frame of the calling thread that is neither Weft's nor
 * PyTorch's. The call is the function of the package that this frame has called, or else `call`, a
 * function of C, which may be NULL. Called without the GIL. Takes a tenth of a second at most, and
 * writes nothing if the place is not known by then. */
void pyweft_where(const char *call, char *where, size_t bytes);

#endif
