/* SPDX-License-Identifier: BSD-3-Clause */
/* The place in the Python program from which a waiting call was made, for hang reports. */
#ifndef PYWEFT_WHERE_H
#define PYWEFT_WHERE_H

#include <stddef.h>

/* For shmemx_set_where_handler: writes a text such as "weft.barrier at train.py:12", the call and
 * the line of the thread's innermost frame that belongs neither to Weft nor to PyTorch. The call is
 * the function of the package that this frame has called, otherwise `call`, a C function, which may
 * be NULL. Called without the GIL. Takes 0.1 s at most, and writes nothing if the place is not
 * known by then. */
void pyweft_where(const char *call, char *where, size_t bytes);

#endif
