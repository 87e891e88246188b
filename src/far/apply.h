/* SPDX-License-Identifier: BSD-3-Clause */
/* The target's side of messages: changes this PE's memory as they say, and, in a host proxy, that
 * of its near PEs. */
#ifndef WEFT_FAR_APPLY_H
#define WEFT_FAR_APPLY_H

#include <stdbool.h>
#include <stddef.h>
#include "far/message.h"

/* The functions of struct weft_message_user. */
bool weft_far_apply(int from, const void *payload, size_t bytes);
bool weft_far_work_done(int from);
void weft_far_answered(int from, const struct weft_message_request *request, const void *payload,
                       size_t bytes);

/* Called before the first message and after the last: sets whether this process serves the memory
 * of all near PEs or only its own. */
void weft_far_serve(bool all);

/* Called after a batch of messages, under their lock: wakes the PEs whose memory has changed. */
void weft_far_wake_served(void);

#endif
