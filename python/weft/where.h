/* SPDX-License-Identifier: BSD-3-Clause */
/* Where Python has made the call that a thread waits in, for the library's lines about hangs. */
#ifndef WEFT_PYTHON_WHERE_H
#define WEFT_PYTHON_WHERE_H

#include <stddef.h>

/* The library's handler (shmemx_set_where_handler): "train.py:12", the innermost frame of the
 * calling thread that is neither Weft's nor PyTorch's. Called without the GIL, and takes a tenth of
 * a second at most; nothing where it is not known by then. */
void weft_where(char *where, size_t bytes);

#endif
