/* SPDX-License-Identifier: BSD-3-Clause */
/* How elements of a Buffer come to this process's private memory and back: by the processor in
 * memory of the host, also in a peer's; by puts and gets in memory of a GPU. */
#ifndef PYWEFT_COPY_H
#define PYWEFT_COPY_H

#include "buffer.h"

enum pyweft_copy_direction { PYWEFT_FROM_BUFFER, PYWEFT_TO_BUFFER };

/* Copies between `there`, a part of the Buffer, and `here`, private memory of the same shape, whose
 * strides may be 0 where it is written from. NotImplementedError for memory of a GPU that is not
 * symmetric; RuntimeError, a job that was lost. */
bool pyweft_copy(const struct pyweft_buffer *buffer, const struct pyweft_part *there,
                 const struct pyweft_part *here, enum pyweft_copy_direction direction);

/* The same from memory of a GPU, as many bytes, one behind the other on both sides. */
bool pyweft_copy_from_gpu(const struct pyweft_buffer *buffer, const struct pyweft_part *there,
                          const char *source);

#endif
