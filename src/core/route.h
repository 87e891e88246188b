/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes: how bytes and words get to memory that this processor does not load and store.
 *
 * "Whose memory is it" is asked in weft_route_of alone, behind the near path of core/rma.h and
 * core/amo.h. An engine is one table of functions; that of GPUs comes with their space
 * (core/space.h). That of PEs on other hosts would be one more answer of weft_route_of, which would
 * then have to know the PE. */
#ifndef WEFT_CORE_ROUTE_H
#define WEFT_CORE_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/amo.h"
#include "base/signal.h"
#include "core/space.h"

/* nblocks blocks of bsize elements; blocks start dest_stride elements apart at the destination
 * and source_stride elements apart at the source. Strides may be negative or zero. */
struct weft_strided {
    size_t elem_bytes, bsize, nblocks;
    ptrdiff_t dest_stride, source_stride;
};

/* The functions of an engine. Those with a result return 0, or -ERANGE when there is no such PE, or
 * -EFAULT when a symmetric argument is not symmetric over its whole length; nothing has been
 * touched then. A failure of the engine itself ends the job with one line. Blocking forms are
 * complete when they return; what a non-blocking one has begun is completed by weft_space_quiet. */
struct weft_route {
    /* Whether a copy between this local address and a symmetric one goes this way, because its
     * memory is on either side. */
    bool (*concerns)(const void *symmetric, const void *local);

    /* Where `pe` keeps its copy of the symmetric [p, p + bytes), of this space or of the host's,
     * for this PE's device; NULL as weft_near. */
    void *(*near)(const void *p, size_t bytes, int pe);

    int (*put)(void *dest, const void *source, size_t bytes, int pe, bool nbi);
    int (*get)(void *dest, const void *source, size_t bytes, int pe, bool nbi);

    /* An element, whose value the host has or wants. */
    int (*put_value)(void *dest, const void *value, size_t bytes, int pe);
    int (*get_value)(void *value, const void *source, size_t bytes, int pe);

    int (*put_strided)(void *dest, const void *source, const struct weft_strided *shape, int pe);
    int (*get_strided)(void *dest, const void *source, const struct weft_strided *shape, int pe);
    int (*put_signal)(const struct weft_put_signal *put, int pe);
    int (*signal)(uint64_t *sig_addr, uint64_t signal, enum weft_signal_op op, int pe);

    /* Where the word lies here, or `fetch`, or both. */
    int (*amo)(const struct weft_amo *amo, int pe);

    /* Copies this PE's words that a wait or test looks at to the host: [words, words + bytes) to
     * `snapshot`. What their writers ordered before them is visible then. */
    void (*look)(void *snapshot, const void *words, size_t bytes);
};

/* The route between a symmetric address and a local one, which is NULL for a value that the host
 * has. NULL: this processor's loads and stores, or nobody's. */
static inline const struct weft_route *weft_route_of(const void *symmetric, const void *local) {
    if (__builtin_expect(!weft_job.devices, 1))
        return NULL;
    const struct weft_route *device = weft_space_device->route;
    bool concerned = local ? device->concerns(symmetric, local) : weft_space_holds(symmetric);
    return concerned ? device : NULL;
}

/* Whether an engine finds [p, p + bytes) of `pe`, which is not near. */
static inline bool weft_route_finds(const void *p, size_t bytes, int pe) {
    return __builtin_expect(weft_job.devices, 0) &&
           weft_space_device->route->near(p, bytes, pe) != NULL;
}

/* Whether [p, p + bytes) is symmetric, in the memory of the host or of another space. */
static inline bool weft_route_symmetric(const void *p, size_t bytes, int pe) {
    return __builtin_expect(weft_near(p, bytes, pe) != NULL, 1) || weft_route_finds(p, bytes, pe);
}

#endif
