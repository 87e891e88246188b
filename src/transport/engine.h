/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens the library of an engine (transport/transport.h). */
#ifndef WEFT_TRANSPORT_ENGINE_H
#define WEFT_TRANSPORT_ENGINE_H

#include "transport/transport.h"

/* `name` is that of a library beside Weft's own or where the loader looks, or a path. 0, and
 * *engine, which stays for good; or -errno, with the reason in `reason`, of WEFT_ENGINE_TEXT_BYTES:
 * there is no such library, or its table is not what this Weft works with. */
int weft_engine_find(const char *name, const struct weft_engine **engine, char *reason);

#endif
