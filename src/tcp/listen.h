/* SPDX-License-Identifier: BSD-3-Clause */
/* The port of an end: at the very address by which hosts of the job have reached each other, or at
 * 127.0.0.1 where hosts are pretended; and at none that strangers may reach, unless the user
 * vouches for it. */
#ifndef WEFT_TCP_LISTEN_H
#define WEFT_TCP_LISTEN_H

#include "tcp/end.h"

/* Sets the end's listener, its address and the interface's name. 0; or -errno, with the reason. */
int weft_tcp_listen(struct weft_engine_end *end);

#endif
