/* SPDX-License-Identifier: BSD-3-Clause */
/* Collects small messages in bundles (far/bundle.h).
 *
 * A small message opens a bundle only if it closely follows another message of any size: the first
 * message of a burst is sent at once, most of the others travel in bundles. A bundle is sent when
 * it is full, when the program waits, fences or calls quiet, and with the next message that must
 * not wait: a small one, such as a signal, is added to the bundle, any other is sent after it.
 * Otherwise the progress thread sends the bundle when it is 20 us old, or after that thread's nap
 * (far/progress.c). */
#ifndef WEFT_FAR_COALESCE_H
#define WEFT_FAR_COALESCE_H

#include "far/channel.h"

/* Counts the events that end a burst of small messages: fences, and everything that waits. The
 * first message after such an event is sent at once. */
extern _Atomic uint32_t weft_coalesce_burst;

/* Sends a message or adds it to a bundle. Returns false, with the message not taken, if there is no
 * room. */
bool weft_coalesce_try_send(struct weft_channel *channel, const struct weft_message *message);

#endif
