/* SPDX-License-Identifier: BSD-3-Clause */
/* Cards: what each PE shows to all before any letter goes, so that they find each other. Those of
 * all PEs lie once for the PEs that are near to each other, in memory that these have mapped. */
#ifndef WEFT_CORE_CARDS_H
#define WEFT_CORE_CARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "transport/transport.h"
#include "core/path.h"

struct weft_card {
    uint32_t version, slot; /* of this PE in its own windows */
    uint64_t letter_bytes;
    char engine[32];
    uint32_t first;   /* of the PEs that are near to it, itself included */
    uint32_t carries; /* for all of these, if it is the first */
    weft_path_end path;
    uint32_t address_bytes;
    unsigned char address[WEFT_ENGINE_ADDRESS_BYTES];
};
#define WEFT_FAR_CARD_BYTES 536
_Static_assert(sizeof(struct weft_card) <= WEFT_FAR_CARD_BYTES, "cards have their size");

/* Makes a file that has room for the cards of all. 0 or -errno, logged. */
int weft_cards_make(int *file);

/* With the cards of all PEs, one after the other, WEFT_FAR_CARD_BYTES each: the first of the near
 * PEs writes them to its file, and all map that. They stay until the next job, for threads behind
 * the end. 0 or -errno, logged: one does not fit to this PE's. */
int weft_cards_take(const void *all, int file);

/* The address of a PE's end of the engine. */
const void *weft_card_address(int pe, size_t *bytes);

/* Returns the address at which probes reach the host of a PE (core/path.h). */
const weft_path_end *weft_card_path(int pe);

/* The slot of a PE in its own windows. */
uint32_t weft_far_slot(int pe);

/* The first of the PEs that are near to this one, itself included: PEs with the same one are near
 * to each other. Before anybody has shown a card, each is near to itself alone. */
int weft_far_first(int pe);

/* Who applies letters to the memory of a PE: itself, or the first of the PEs that are near to it
 * for all of these. What concerns a process, and not its windows, is sent to that one itself. */
int weft_far_carrier(int pe);

/* Whether letters for its near PEs come to this process. */
bool weft_far_carries_others(void);

#endif
