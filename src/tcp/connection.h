/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection once it is open: messages into and out of one socket. */
#ifndef WEFT_TCP_CONNECTION_H
#define WEFT_TCP_CONNECTION_H

#include "tcp/end.h"

/* Takes a socket. NULL: there is no memory, or no watch of it, and the socket is closed. */
struct weft_tcp_connection *weft_tcp_connection_make(struct weft_engine_end *end, int socket,
                                                     bool made, uint32_t events);

/* Has the epoll wait for that. */
void weft_tcp_connection_watch(struct weft_tcp_connection *connection, uint32_t events);

/* Ends it, and with it the link, which gets the error; once. It is still there. */
void weft_tcp_connection_fail(struct weft_tcp_connection *connection, int error);

/* The same without a word, and it is gone. */
void weft_tcp_connection_free(struct weft_tcp_connection *connection);

/* A message that waits for a connection. NULL: there is no memory. */
struct weft_tcp_part *weft_tcp_part_make(struct weft_engine_end *end, const struct iovec *parts,
                                         int nparts);

/* As the contract has it of `message`. */
int weft_tcp_connection_send(struct weft_tcp_connection *connection, const struct iovec *parts,
                             int nparts);

/* Sends what is left of a message. Whether there is room for another one. */
bool weft_tcp_connection_flush(struct weft_tcp_connection *connection);

/* Reads once, and delivers all messages that are whole by that. Whether anything has come. */
bool weft_tcp_connection_read(struct weft_tcp_connection *connection);

#endif
