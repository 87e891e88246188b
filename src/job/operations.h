/* SPDX-License-Identifier: BSD-3-Clause */
/* Operation tables: put, get, atomics and ordering for memory that this processor does not reach by
 * loads and stores.
 *
 * There are two tables. GPUs provide one with their memory space (job/space.h); it is chosen by
 * address. Far PEs have the other (far/far.h), which is built on messages and is chosen by PE.
 * core/dispatch.h chooses. Messages also reach the GPU memory of far PEs. */
#ifndef WEFT_JOB_OPERATIONS_H
#define WEFT_JOB_OPERATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/amo.h"
#include "base/signal.h"
#include "job/strided.h"

/* Public calls use these functions while the job runs, on any thread and on several threads at
 * once; weft_current_call names the public call. A function with a result returns 0, or, with no
 * memory touched, -ERANGE if there is no such PE, or -EFAULT if a symmetric argument is not
 * symmetric over its whole length. An access of 0 bytes returns 0, but still updates its signal. A
 * failure of the device or the network ends the job with one line.
 *
 * All but the first two may block; a wait ends when the job ends (job/wait.h). When a function
 * returns, the caller may reuse the structs and the local memory, and the data of a get or fetch
 * have arrived. With `nbi` local memory belongs to the operation until `quiet`. Data for `pe` may
 * still be under way on return, in any order, and are complete after `quiet`. The table of far PEs
 * has no memory of its own: it lacks `concerns`, `near` and `look`, and it keeps operations on one
 * PE in order, unless its proxy applies those on host memory and the PE itself those on GPU memory
 * (weft_far_fence). */
struct weft_operations {
    /* Returns whether this table must serve an access between the local address and the symmetric
     * one, because one of the two lies in its memory. */
    bool (*concerns)(const void *symmetric, const void *local);

    /* Returns the address at which this table reaches pe's copy of the symmetric [p, p + bytes), in
     * its own memory or in the host's; NULL under the conditions of weft_near. */
    void *(*near)(const void *p, size_t bytes, int pe);

    int (*put)(void *dest, const void *source, size_t bytes, int pe, bool nbi);
    int (*get)(void *dest, const void *source, size_t bytes, int pe, bool nbi);

    int (*put_strided)(void *dest, const void *source, const struct weft_strided *shape, int pe);
    int (*get_strided)(void *dest, const void *source, const struct weft_strided *shape, int pe);

    /* Data and signal word may each lie in this table's memory or in the host's. A PE that reads
     * the signal also reads the data. */
    int (*put_signal)(const struct weft_put_signal *put, int pe);
    int (*signal)(uint64_t *sig_addr, uint64_t signal, enum weft_signal_op op, int pe);

    /* The word, `fetch` (for its old value), or both lie in memory of this table's space. Atomic
     * with respect to all other atomics of the job on that word. */
    int (*amo)(const struct weft_amo *amo, int pe);

    /* For a wait or test: copies this PE's own [words, words + bytes) to host memory. Whatever the
     * writers ordered before the values that are copied is visible on return. */
    void (*look)(void *snapshot, const void *words, size_t bytes);

    /* Waits until all operations that this process has started are complete and visible to all PEs.
     * Cheap if none is under way. */
    void (*quiet)(void);
};

#endif
