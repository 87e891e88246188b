/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said before messages. Whoever reaches the port may connect; a stranger can do no more.
 *
 *    who calls                                  who is called, and has the secret S
 *       hello: its name, nonce  ------------->
 *                               <-------------  challenge: nonce, code of S over hello and nonce
 *       code of S over all that ------------->
 *                               <-------------  welcome
 *
 * S is in the address of who is called, which all PEs of the job have, and nobody else. It is never
 * sent, so what somebody has recorded opens nothing. Who calls sends no messages before the
 * welcome: until then the other side may hang up at any time, and it calls again.
 *
 * A stranger costs one place of a few for some seconds at most, and when all are taken the oldest
 * goes: PEs of the job are through in the time of two answers. */
#ifndef WEFT_TCP_GREETING_H
#define WEFT_TCP_GREETING_H

#include "tcp/end.h"

/* Begins to call the PE of a link. 0, or -errno: this process cannot. */
int weft_tcp_greeting_call(struct weft_engine_link *link);

/* Takes some of those that have called. */
void weft_tcp_greeting_answer(struct weft_engine_end *end);

/* Goes on with a connection that is not open yet, and which may be gone then. */
void weft_tcp_greeting_go_on(struct weft_tcp_connection *connection);

/* Hangs up on those that were silent for too long. */
void weft_tcp_greeting_dismiss(struct weft_engine_end *end);

/* A connection with a PE serves the link to it from now on. */
void weft_tcp_link_take(struct weft_engine_link *link, struct weft_tcp_connection *connection);

#endif
