/* SPDX-License-Identifier: BSD-3-Clause */
/* How elements of a Buffer come to this process's private memory and back: by the processor in
 * memory of the host, also in a peer's; by puts and gets in memory of a GPU. */
#ifndef WEFT_PYTHON_REACH_H
#define WEFT_PYTHON_REACH_H

#include "buffer.h"

enum weft_direction { WEFT_FROM_BUFFER, WEFT_TO_BUFFER };

/* Copies between `there`, a part of the Buffer, and `here`, private memory of the same shape, whose
 * strides may be 0 where it is written from. NotImplementedError for memory of a GPU that is not
 * symmetric; RuntimeError, a job that was lost. */
bool weft_reach(const struct weft_buffer *buffer, const struct weft_part *there,
                const struct weft_part *here, enum weft_direction direction);

/* The same from memory of a GPU, as many bytes, one behind the other on both sides. */
bool weft_reach_from_gpu(const struct weft_buffer *buffer, const struct weft_part *there,
                         const char *source);

#endif
