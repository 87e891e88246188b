/* SPDX-License-Identifier: BSD-3-Clause */
/* The relay: an engine above the engine. Of the PEs of a host the first, their carrier, has an end
 * of the engine below, with a link to the carrier of each other host; the others have two rings of
 * letters, to it and from it:
 *
 *      PE 5 --ring--> carrier, PE 4 ====link====> carrier, PE 0 --ring--> PE 2
 *           <--ring--                                           <--ring--
 *
 * So a host has as many links as there are other hosts. Nothing above knows of it: links of letters
 * (core/link.h) are between processes as ever. A carrier finds by the PE number that stands before
 * a letter in a ring, and by the slot in a letter's head, to whom it goes.
 *
 * A carrier takes every letter, so that no process waits for it but for room in its own ring: what
 * the way on has no room for is held there, in order. That is no more than what senders may have
 * under way: WEFT_LINK_BYTES on each link between two processes, of letters and of answers each,
 * and what acknowledges them. Nothing goes around in a circle: reading never waits for writing, so
 * rings and links always drain at the end where somebody looks, and who does not look stops only
 * letters to itself. Where a whole host stands still, its neighbours hold what goes there, and
 * senders stop by the limits of their links. */
#ifndef WEFT_CORE_RELAY_H
#define WEFT_CORE_RELAY_H

#include "transport/transport.h"
#include "core/relay_rings.h"

/* What the address of a PE has before that of the engine below, which carriers alone have. */
struct weft_relay_address {
    uint32_t pe, carrier, slot, reserved;
};
#define WEFT_RELAY_ADDRESS_BYTES sizeof(struct weft_relay_address)

/* The engine of PEs of hosts that relay. `below` stays. */
const struct weft_engine *weft_relay_over(const struct weft_engine *below);

/* With the descriptors of all PEs, `stride` apart, of which those of near ones are there; before
 * the first progress. They stay the caller's. 0 or -errno, logged. */
int weft_relay_attach(struct weft_engine_end *end, const int *all, size_t stride);

#endif
