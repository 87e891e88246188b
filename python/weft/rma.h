/* SPDX-License-Identifier: BSD-3-Clause */
/* The common part of puts of whole arrays, of slices, and with signals. */
#ifndef PYWEFT_RMA_H
#define PYWEFT_RMA_H

#include "array.h"
#include "context.h"

/* Below this size a copy in host memory takes less time than releasing the GIL and taking it
 * again. */
#define PYWEFT_SHORT_BYTES ((size_t)16 << 10)

/* Puts into `array` by the calling thread. Complete on return, also in GPU memory: there a put of C
 * may still be in progress when it returns, and work that the program then starts on that GPU would
 * not see it. */
void pyweft_put_whole(const struct pyweft_array *array, void *dest, const void *source,
                      size_t bytes, shmem_ctx_t ctx, int pe);

/* Two arrays, one of them on another PE, and the target of the call. */
struct pyweft_transfer {
    const char *call;
    weft_stream stream;
    struct pyweft_target target;
    struct pyweft_array dest, source;
};

/* Reads the arguments. The arrays must have the same size in bytes, and the same type unless one of
 * them is uint8. */
bool pyweft_transfer_take(struct pyweft_transfer *transfer, PyObject *dest, PyObject *source,
                          PyObject *pe, PyObject *ctx);
void pyweft_transfer_drop(struct pyweft_transfer *transfer);

/* Returns whether the transfer takes less time than releasing the GIL. */
bool pyweft_transfer_is_short(const struct pyweft_transfer *transfer);

/* After a non-blocking call: holds the arrays until the context's quiet, if a GPU copies. */
bool pyweft_transfer_hold(struct pyweft_transfer *transfer);

#define PYWEFT_ON_STREAM                                                                     \
    "With a stream, the call is enqueued on it and returns; without, this thread does the\n" \
    "work, and arrays on a GPU must be ready. With ctx, the call belongs to that context,\n" \
    "and pe is a rank of its team."
#define PYWEFT_UNTIL_QUIET                                                                   \
    "May return before it is complete: the context's next quiet() completes it (without\n"   \
    "ctx: quiet() or barrier()), and the arrays must not be changed or read until then.\n\n" \
    "Errors as for "

#endif
