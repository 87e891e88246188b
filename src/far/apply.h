/* SPDX-License-Identifier: BSD-3-Clause */
/* The target's side of messages: the memory of this PE changes as they say; where it carries for
 * its host, that of the PEs that are near to it does, too. */
#ifndef WEFT_FAR_APPLY_H
#define WEFT_FAR_APPLY_H

#include <stdbool.h>
#include <stddef.h>
#include "far/message.h"

/* As struct weft_message_user has them. */
bool weft_far_apply(int from, const void *text, size_t bytes);
bool weft_far_settled(int from);
void weft_far_answered(int from, const struct weft_message_request *request, const void *text,
                       size_t bytes);

/* Before the first message, and behind the last: whether messages to the memory of all near PEs
 * come here, and not those to this one's alone. */
void weft_far_serve(bool all);

/* Behind messages: wakes those whose memory has changed. Under the lock of messages. */
void weft_far_wake_served(void);

#endif
