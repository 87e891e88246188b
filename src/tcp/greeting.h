/* SPDX-License-Identifier: BSD-3-Clause */
/* The greeting that comes before messages. Any process that can reach the port may connect; a
 * stranger can do no more.
 *
 *    caller                                     callee, which has the secret S
 *       hello: its name, nonce  ------------->
 *                               <-------------  challenge: nonce, code of S over hello and nonce
 *       code of S over all that ------------->
 *                               <-------------  welcome
 *
 * S is in the callee's address, which all PEs of the job have, and nobody else. It is never sent,
 * so a recorded greeting is of no use. The caller sends no messages before the welcome: until then
 * the callee may hang up at any time, and the caller calls again.
 *
 * A stranger occupies one of a few places for some seconds at most, and the oldest is removed when
 * all are taken: PEs of the job need a place only for the time of two answers. */
#ifndef WEFT_TCP_GREETING_H
#define WEFT_TCP_GREETING_H

#include "tcp/end.h"

/* Starts a call to the PE of a link. Returns 0, or -errno if this process cannot make it. */
int weft_tcp_greeting_call(struct weft_engine_link *link);

/* Accepts a limited number of calls. */
void weft_tcp_greeting_accept(struct weft_engine_end *end);

/* Continues the greeting of a connection, which may be freed by that. */
void weft_tcp_greeting_go_on(struct weft_tcp_connection *connection);

/* Hangs up on strangers that were silent for too long. */
void weft_tcp_greeting_dismiss(struct weft_engine_end *end);

/* Uses a connection with a PE for the link to that PE from now on. */
void weft_tcp_link_take(struct weft_engine_link *link, struct weft_tcp_connection *connection);

#endif
