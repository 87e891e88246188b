/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: what each PE publishes before the first message, so that PEs find each other. The
 * endpoints of all PEs are stored once for each group of near PEs, in memory that these map. */
#ifndef WEFT_FAR_ENDPOINTS_H
#define WEFT_FAR_ENDPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "transport/transport.h"
#include "far/probe.h"

struct weft_endpoint {
    uint32_t version, slot; /* of this PE in its windows */
    uint64_t message_bytes;
    char engine[32];
    uint32_t first;        /* the first of its near PEs, possibly itself */
    uint32_t uses_proxies; /* if it is the first of its near PEs, it serves them all */
    weft_probe_address probe;
    uint32_t address_bytes;
    unsigned char address[WEFT_ENGINE_ADDRESS_BYTES];
};
#define WEFT_FAR_ENDPOINT_BYTES 536
_Static_assert(sizeof(struct weft_endpoint) <= WEFT_FAR_ENDPOINT_BYTES,
               "endpoints have their size");

/* Creates a file with room for the endpoints of all PEs. Returns 0, or -errno after logging the
 * reason. */
int weft_endpoints_make(int *file);

/* Takes the endpoints of all PEs in order, WEFT_FAR_ENDPOINT_BYTES each: the first of the near PEs
 * writes them to its file, and all of these map it. They stay mapped until the next job, for
 * threads that outlive this one. Returns 0, or -errno after logging the reason: -EPROTO if some
 * PE's endpoint does not match this PE's. */
int weft_endpoints_take(const void *all, int file);

/* Returns the address at which the engine reaches a PE. */
const void *weft_endpoint_address(int pe, size_t *bytes);

/* Returns the address at which probes reach the host of a PE (far/probe.h). */
const weft_probe_address *weft_endpoint_probe(int pe);

/* Returns the slot of a PE in its own windows. */
uint32_t weft_far_slot(int pe);

/* Returns the first of the PEs that are near to this PE, possibly itself: PEs with equal firsts are
 * near to each other. Before the endpoints are known, every PE counts as its own first. */
int weft_far_first(int pe);

/* Returns the PE whose process applies messages to a PE's host memory: the PE itself or its host
 * proxy, the first of its near PEs. A PE applies messages to its GPU memory itself
 * (weft_far_receiver). */
int weft_far_proxy(int pe);

/* Returns whether some PE has a proxy that is another process. */
bool weft_far_has_proxies(void);

/* Returns whether this process is the host proxy of other PEs. */
bool weft_far_is_proxy(void);

#endif
