/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes: how bytes and words get to memory that this processor does not load and store.
 *
 * "Whose memory is it" is asked in weft_route_of alone, behind the near path of core/rma.h and
 * core/amo.h. A route is one table of functions. That of GPUs comes with their space
 * (core/space.h), and is found by addresses; that of far PEs is made of letters (core/far.h), and
 * is found by the PE. Letters reach the memory of GPUs, too, but not that of this PE's own. */
#ifndef WEFT_CORE_ROUTE_H
#define WEFT_CORE_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/placement.h"
#include "core/space.h"

/* What a route provides. Public calls use it, on any thread and on several at once, while the job
 * runs; weft_current_call is their name. Those with a result return 0, or, with nothing touched,
 * -ERANGE when there is no such PE, or -EFAULT when a symmetric argument is not symmetric over its
 * whole length. An empty access is 0, but announces its signal. A failure of the route itself ends
 * the job with one line.
 *
 * All but the first two may block; a wait ends with the job (core/wait.h). On return the structs
 * and the local memory are the caller's again, and what a get or fetch wants is there: unless
 * `nbi`, which leaves local memory to the route until `quiet`. What goes to `pe` may only be under
 * way on return, in no order, and is complete behind `quiet`. The far route, which has no memory
 * of its own, has no `concerns`, `near` and `look`, and keeps what goes to one PE in order. */
struct weft_route {
    /* Whether an access between this local address and a symmetric one goes this way, because the
     * memory on either side is the route's. */
    bool (*concerns)(const void *symmetric, const void *local);

    /* Where the route finds what `pe` keeps of the symmetric [p, p + bytes), in its own memory or
     * the host's; NULL as weft_near. */
    void *(*near)(const void *p, size_t bytes, int pe);

    int (*put)(void *dest, const void *source, size_t bytes, int pe, bool nbi);
    int (*get)(void *dest, const void *source, size_t bytes, int pe, bool nbi);

    int (*put_strided)(void *dest, const void *source, const struct weft_strided *shape, int pe);
    int (*get_strided)(void *dest, const void *source, const struct weft_strided *shape, int pe);

    /* Either side may also be the host's. Who sees the signal sees the payload, too. */
    int (*put_signal)(const struct weft_put_signal *put, int pe);
    int (*signal)(uint64_t *sig_addr, uint64_t signal, enum weft_signal_op op, int pe);

    /* One of the route's, or with `fetch` in its memory, or both. Atomic among all of the job's
     * atomics on the word. */
    int (*amo)(const struct weft_amo *amo, int pe);

    /* For a wait or test: copies this PE's own [words, words + bytes), as they are now, to memory
     * of the host. What their writers ordered before them is visible then. */
    void (*look)(void *snapshot, const void *words, size_t bytes);

    /* Completes what this process has begun: it is in its place, and visible to all. Cheap where
     * nothing is under way. */
    void (*quiet)(void);
};

/* The way of public calls to the memory of far PEs (core/far_rma.c). */
extern const struct weft_route weft_far_route;

/* The route whose memory a symmetric address or a local one lies in, which is NULL for a value
 * that the host has. NULL: both are the host's. */
static inline const struct weft_route *weft_route_of_memory(const void *symmetric,
                                                            const void *local) {
    if (__builtin_expect(!weft_job.devices, 1))
        return NULL;
    const struct weft_route *device = weft_space_device->route;
    bool concerned = local ? device->concerns(symmetric, local) : weft_space_holds(symmetric);
    return concerned ? device : NULL;
}

/* The route between an address of `pe` and a local one, as weft_route_of_memory has them. NULL:
 * this processor's loads and stores, or nobody's. */
static inline const struct weft_route *weft_route_of(const void *symmetric, const void *local,
                                                     int pe) {
    if (__builtin_expect(!weft_job.routed, 1))
        return NULL;
    const struct weft_route *route = weft_route_of_memory(symmetric, local);
    return !route && weft_is_far(pe) ? &weft_far_route : route;
}

/* Orders what calls of the host have begun by a route before what they begin by any way. Letters
 * to one PE are in order by themselves. */
static inline void weft_route_fence(void) {
    if (__builtin_expect(weft_job.devices, 0))
        weft_space_device->route->quiet();
}

/* Completes what calls of the host have begun by a route. */
static inline void weft_route_quiet(void) {
    if (__builtin_expect(!weft_job.routed, 1))
        return;
    weft_route_fence();
    if (weft_job.far)
        weft_far_route.quiet();
}

/* Whether a route reaches [p, p + bytes) of `pe`, which is not near. Objects are the same on all
 * PEs. A call, so that those who ask near memory first have their registers for themselves. */
bool weft_route_finds(const void *p, size_t bytes, int pe) __attribute__((cold));

/* Whether [p, p + bytes) is symmetric, in the memory of the host or of another space. */
static inline bool weft_route_symmetric(const void *p, size_t bytes, int pe) {
    return __builtin_expect(weft_near(p, bytes, pe) != NULL, 1) || weft_route_finds(p, bytes, pe);
}

#endif
