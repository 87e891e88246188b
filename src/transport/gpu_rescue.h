/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a job reaches the GPU: a thread watches the abort word. When it is set, kernels that
 * wait see it themselves; the stream memory operations are released by writing the words that they
 * wait for, again and again from a stream of high priority, until the streams have drained. A
 * process whose streams have not drained after 100 ms ends hard. */
#ifndef WEFT_TRANSPORT_GPU_RESCUE_H
#define WEFT_TRANSPORT_GPU_RESCUE_H

#include <stdatomic.h>
#include "transport/gpu_word.h"

/* Begins to watch `abort`, a futex word that is woken when it is set. Registers its page, so that
 * weft_gpu_abort.word is it. Local; once. */
int weft_gpu_rescue_open(_Atomic uint32_t *abort);
void weft_gpu_rescue_close(void);

/* Words [first, first + count) that streams of this process wait for from now on. */
int weft_gpu_rescue_add(uint32_t *first, size_t count);

/* Work that may wait has been enqueued on this stream. */
void weft_gpu_rescue_note(weft_cu_stream stream);

#endif
