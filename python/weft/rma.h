/* SPDX-License-Identifier: BSD-3-Clause */
/* What puts of whole arrays, of parts, and with signals share. */
#ifndef PYWEFT_RMA_H
#define PYWEFT_RMA_H

#include "array.h"
#include "context.h"

/* Below it, a copy in the host's memory takes less than letting the GIL go and taking it back. */
#define PYWEFT_SHORT_BYTES ((size_t)16 << 10)

/* A put by the calling thread into `array`, done on return: in C, a word for a GPU's memory may
 * still be on its way then, and whatever the program has that GPU do next would not see it. */
void pyweft_put_whole(const struct pyweft_array *array, void *dest, const void *source,
                      size_t bytes, shmem_ctx_t ctx, int pe);

/* Two arrays of which one is another PE's, and how to get there. */
struct pyweft_transfer {
    const char *call;
    weft_stream stream;
    struct pyweft_target target;
    struct pyweft_array dest, source;
};

/* Both have as many bytes, of one type, or one of them of uint8. */
bool pyweft_transfer_take(struct pyweft_transfer *transfer, PyObject *dest, PyObject *source,
                          PyObject *pe, PyObject *ctx);
void pyweft_transfer_drop(struct pyweft_transfer *transfer);

/* Whether it takes less time than letting the GIL go. */
bool pyweft_transfer_is_short(const struct pyweft_transfer *transfer);

/* Behind a non-blocking call: its arrays stay until the context's quiet, where a GPU copies. */
bool pyweft_transfer_hold(struct pyweft_transfer *transfer);

#define PYWEFT_ON_STREAM                                                                         \
    "With a stream, the call enqueues the work on it and returns; without, it is done by this\n" \
    "thread, and arrays on a GPU have to be ready. With ctx, it is that context's, and pe a "    \
    "rank\n"                                                                                     \
    "of its team."
#define PYWEFT_UNTIL_QUIET                                                                         \
    "May return before it is done: it is by the context's next quiet() (without ctx: quiet() or\n" \
    "barrier()), and the arrays must not be changed or read until then.\n\nErrors of "

#endif
