/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to far PEs, for those who send them and wait: one lock around all channels
 * (far/channel.h). A caller for whom there is no room looks at what arrives until there is. */
#ifndef WEFT_FAR_MESSAGE_H
#define WEFT_FAR_MESSAGE_H

#include "far/channel.h"

/* Opens WEFT_ENGINE and writes the address of this PE's end. 0 or -errno, logged. */
int weft_messages_open(const struct weft_message_user *user, void *address, size_t *bytes);

/* By what far PEs are reached, for a person. */
void weft_messages_describe(char *text, size_t bytes);

/* From here on messages are delivered. */
void weft_messages_start(void);

/* Nothing is delivered or sent any more. Who is still in a call, on another thread, stays there. */
void weft_messages_close(void);

/* Sends a message when there is room, or takes it into a bundle: then the progress thread must be
 * awake. What it refers to is the caller's again on return. */
void weft_message_send(int pe, const struct weft_message *message);

/* Calls `begin`, which waits for nothing, under the lock, if messages go. */
void weft_messages_begin(void (*begin)(void *), void *context);

/* Waits until what this process has sent so far to these PEs (NULL: to all) is applied there, and
 * answered; messages by the way only with `all`. */
void weft_messages_quiet(const int *pes, size_t n, bool all);

/* Behind it the messages that were being applied before are done with. */
void weft_messages_pass(void);

/* Sends small messages that wait for others to go with, and those behind it wait for none of
 * before.
 */
void weft_messages_fence(void);

/* One look, if nobody else looks. Whether it has moved anything. With `linger` young bundles stay
 * (far/channel.h): nobody waits. */
bool weft_messages_look(bool linger);

/* Hands every channel that is used to `take`, and sends what became due by that. */
void weft_messages_each_channel(void (*take)(struct weft_channel *channel));

/* Before the library's thread sleeps: the descriptor to sleep on, or -errno: to look first, or,
 * where there is a bundle, soon. It stays armed until somebody looks: then the thread must be
 * woken, or sleep on for nothing. */
int weft_messages_arm(int *descriptor);
extern _Atomic bool weft_messages_armed;

/* Whether something that had no room waits to be sent: a sleep must be short. */
bool weft_messages_wait_for_room(void);

/* One turn of a wait for a far PE, which serves its peers until all have finished, and so may well
 * have departed: a look, and then it spins, yields, or sleeps until messages arrive. */
void weft_message_turn(struct weft_waiter *waiter);

#endif
