/* SPDX-License-Identifier: BSD-3-Clause */
/* The port of an end: at exactly the address through which the job's hosts have reached each other,
 * or at 127.0.0.1 if hosts are pretended. It is never at an address that strangers can reach,
 * unless the user vouches for that. */
#ifndef WEFT_TCP_LISTEN_H
#define WEFT_TCP_LISTEN_H

#include "tcp/end.h"

/* Sets the end's listener, its address and the interface's name. Returns 0, or -errno with the
 * reason. */
int weft_tcp_listen(struct weft_engine_end *end);

#endif
