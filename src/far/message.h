/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending messages to far PEs and waiting for them. One lock protects all channels (far/channel.h).
 * A caller that finds no room polls the engine until there is some. */
#ifndef WEFT_FAR_MESSAGE_H
#define WEFT_FAR_MESSAGE_H

#include "far/channel.h"

/* Opens the engine of WEFT_ENGINE and writes the address of this process. Returns 0, or -errno
 * after logging the reason. */
int weft_messages_open(const struct weft_message_user *user, void *address, size_t *bytes);

/* Writes one line for the user that says how far PEs are reached. */
void weft_messages_describe(char *text, size_t bytes);

/* Lets messages be delivered from now on. */
void weft_messages_start(void);

/* Closes the engine: no message is delivered or sent any more. A thread that is still sending stays
 * in its call. */
void weft_messages_close(void);

/* Sends a message to the process of `pe`, which may be a host proxy, or adds it to a bundle; in
 * that case the caller must wake the progress thread. Blocks until there is room. The caller may
 * reuse the message and its payload on return. */
void weft_message_send(int pe, const struct weft_message *message);

/* Calls `begin`, which must not block, under the lock. Does nothing if the engine is closed. */
void weft_messages_begin(void (*begin)(void *), void *context);

/* Blocks until all messages that this process has sent to these PEs (to all if `pes` is NULL) have
 * been applied, and answered if they are requests. Messages with `no_quiet` count only if `all` is
 * set. */
void weft_messages_quiet(const int *pes, size_t n, bool all);

/* Blocks until the thread that is applying messages, if any, has released the lock. */
void weft_messages_pass(void);

/* Sends the open bundles. Messages after the fence do not wait for messages before it. */
void weft_messages_fence(void);

/* Polls the engine once unless another thread does. Returns whether anything moved. With `linger`,
 * which callers set if no thread waits, young bundles stay open (far/channel.h). */
bool weft_messages_look(bool linger);

/* Calls `take` for every channel in use, then sends what became due. */
void weft_messages_each_channel(void (*take)(struct weft_channel *channel));

/* Prepares the progress thread for sleep. Returns 0 and the descriptor to sleep on, or -errno if
 * the thread must poll first or, with an open bundle, soon. weft_messages_armed stays set until a
 * thread polls: that thread must wake the sleeper, which otherwise may sleep on although messages
 * have arrived. */
int weft_messages_arm(int *descriptor);
extern _Atomic bool weft_messages_armed;

/* Returns whether some message waits for room in the engine, or a link is dead, so that a sleep
 * must be short. */
bool weft_messages_wait_for_room(void);

/* Performs one turn of a wait for a far PE: polls, then spins, yields, or sleeps until messages
 * arrive. It does not check whether the PE has departed, since a departed PE serves its peers until
 * all have finished. */
void weft_message_turn(struct weft_waiter *waiter);

#endif
