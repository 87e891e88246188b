/* SPDX-License-Identifier: BSD-3-Clause */
/* Small messages are gathered in bundles (far/bundle.h).
 *
 * A small message that may wait opens one if it comes shortly behind another one: the first of a
 * burst goes at once, and of many most go in bundles. A bundle goes when it is full, with the next
 * message that may not wait, when the program waits, fences or quiets, and at last because the
 * progress thread finds that it is not young any more. */
#ifndef WEFT_FAR_COALESCE_H
#define WEFT_FAR_COALESCE_H

#include "far/channel.h"

/* Counts what ends a burst of small messages: fences, and whatever waits. What comes behind it goes
 * at once. */
extern _Atomic uint32_t weft_coalesce_burst;

/* Sends a message, or takes it into a bundle. False: there is no room now. */
bool weft_coalesce_try_send(struct weft_channel *channel, const struct weft_message *message);

#endif
