/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between a Buffer's elements and this process's private memory: by the processor in host
 * memory, including a peer's; by puts and gets in GPU memory. */
#ifndef PYWEFT_COPY_H
#define PYWEFT_COPY_H

#include "buffer.h"

enum pyweft_copy_direction { PYWEFT_FROM_BUFFER, PYWEFT_TO_BUFFER };

/* Copies between `there`, a part of the Buffer, and `here`, private memory of the same shape. A
 * source `here` may have strides of 0. Returns false with NotImplementedError for GPU memory that
 * is not symmetric, or RuntimeError if the job was lost. */
bool pyweft_copy(const struct pyweft_buffer *buffer, const struct pyweft_part *there,
                 const struct pyweft_part *here, enum pyweft_copy_direction direction);

/* Copies from an array in GPU memory into `there`; both are contiguous and of the same size. */
bool pyweft_copy_from_gpu(const struct pyweft_buffer *buffer, const struct pyweft_part *there,
                          const char *source);

#endif
