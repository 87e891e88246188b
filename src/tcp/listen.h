/* SPDX-License-Identifier: BSD-3-Clause */
/* The port of an end: on one interface, that by which hosts of the job speak, or lo, where hosts
 * are pretended; and on none that strangers may reach, unless the user vouches for it. */
#ifndef WEFT_TCP_LISTEN_H
#define WEFT_TCP_LISTEN_H

#include "tcp/end.h"

/* Sets the end's listener, its address and the interface's name. 0; or -errno, with the reason. */
int weft_tcp_listen(struct weft_engine_end *end);

#endif
