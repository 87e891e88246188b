/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: what each PE shows to all before any message goes, so that they find each other. Those
 * of all PEs lie once for the PEs that are near to each other, in memory that these have mapped. */
#ifndef WEFT_FAR_ENDPOINTS_H
#define WEFT_FAR_ENDPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "transport/transport.h"
#include "far/probe.h"

struct weft_endpoint {
    uint32_t version, slot; /* of this PE in its own windows */
    uint64_t message_bytes;
    char engine[32];
    uint32_t first;   /* of the PEs that are near to it, itself included */
    uint32_t carries; /* for all of these, if it is the first */
    weft_probe_address path;
    uint32_t address_bytes;
    unsigned char address[WEFT_ENGINE_ADDRESS_BYTES];
};
#define WEFT_FAR_ENDPOINT_BYTES 536
_Static_assert(sizeof(struct weft_endpoint) <= WEFT_FAR_ENDPOINT_BYTES,
               "endpoints have their size");

/* Makes a file that has room for the endpoints of all. 0 or -errno, logged. */
int weft_endpoints_make(int *file);

/* With the endpoints of all PEs, one after the other, WEFT_FAR_ENDPOINT_BYTES each: the first of
 * the near PEs writes them to its file, and all map that. They stay until the next job, for threads
 * behind the end. 0 or -errno, logged: one does not fit to this PE's. */
int weft_endpoints_take(const void *all, int file);

/* The address of a PE's end of the engine. */
const void *weft_endpoint_address(int pe, size_t *bytes);

/* Returns the address at which probes reach the host of a PE (far/probe.h). */
const weft_probe_address *weft_endpoint_probe(int pe);

/* The slot of a PE in its own windows. */
uint32_t weft_far_slot(int pe);

/* The first of the PEs that are near to this one, itself included: PEs with the same one are near
 * to each other. Before anybody has shown a endpoint, each is near to itself alone. */
int weft_far_first(int pe);

/* Who applies messages to the memory of a PE: itself, or the first of the PEs that are near to it
 * for all of these. What concerns a process, and not its windows, is sent to that one itself. */
int weft_far_proxy(int pe);

/* Whether messages for its near PEs come to this process. */
bool weft_far_is_proxy(void);

#endif
