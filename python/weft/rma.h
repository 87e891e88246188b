/* SPDX-License-Identifier: BSD-3-Clause */
/* What puts of whole arrays and of parts share. */
#ifndef WEFT_PYTHON_RMA_H
#define WEFT_PYTHON_RMA_H

#include "array.h"

/* Below it, a copy in the host's memory takes less than letting the GIL go and taking it back. */
#define WEFT_SHORT_BYTES ((size_t)16 << 10)

/* A put by the calling thread into `array`, done on return: in C, a word for a GPU's memory may
 * still be on its way then, and whatever the program has that GPU do next would not see it. */
void weft_put_whole(const struct weft_array *array, void *dest, const void *source, size_t bytes,
                    int pe);

#endif
