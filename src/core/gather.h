/* SPDX-License-Identifier: BSD-3-Clause */
/* Small letters are gathered in bundles (core/bundle.h).
 *
 * A small letter that may wait opens one if it comes shortly behind another one: the first of a
 * burst goes at once, and of many most go in bundles. A bundle goes when it is full, with the next
 * letter that may not wait, when the program waits, fences or quiets, and at last because the
 * progress thread finds that it is not young any more. */
#ifndef WEFT_CORE_GATHER_H
#define WEFT_CORE_GATHER_H

#include "core/link.h"

/* Counts what ends a burst of small letters: fences, and whatever waits. What comes behind it goes
 * at once. */
extern _Atomic uint32_t weft_gather_burst;

/* Sends a letter, or takes it into a bundle. False: there is no room now. */
bool weft_gather_try_send(struct weft_link *link, const struct weft_letter *letter);

#endif
