/* SPDX-License-Identifier: BSD-3-Clause */
/* An open connection: messages into and out of one socket. */
#ifndef WEFT_TCP_CONNECTION_H
#define WEFT_TCP_CONNECTION_H

#include "tcp/end.h"

/* Makes a connection of a socket, which it owns, and watches it. Returns NULL if there is no memory
 * or the epoll refuses the socket; then the socket is closed. */
struct weft_tcp_connection *weft_tcp_connection_make(struct weft_engine_end *end, int socket,
                                                     bool made, uint32_t events);

/* Sets the events that the epoll waits for. */
void weft_tcp_connection_watch(struct weft_tcp_connection *connection, uint32_t events);

/* Ends the connection without an error, and frees it. */
void weft_tcp_connection_free(struct weft_tcp_connection *connection);

/* Copies a message that waits for a connection. Returns NULL if there is no memory. */
struct weft_tcp_part *weft_tcp_part_make(struct weft_engine_end *end, const struct iovec *parts,
                                         int nparts);

/* As `message` in the engine's contract (transport/transport.h). */
int weft_tcp_connection_send(struct weft_tcp_connection *connection, const struct iovec *parts,
                             int nparts);

/* Sends the rest of a partial message. Returns whether there is room for another message. */
bool weft_tcp_connection_flush(struct weft_tcp_connection *connection);

/* Reads once, and delivers all messages that are complete then. Returns whether any bytes arrived.
 */
bool weft_tcp_connection_read(struct weft_tcp_connection *connection);

#endif
