/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads an engine from a library (transport/transport.h). */
#ifndef WEFT_TRANSPORT_ENGINE_H
#define WEFT_TRANSPORT_ENGINE_H

#include "transport/transport.h"

/* Loads an engine. `name` is a path, or the name of a library beside Weft's own or where the loader
 * looks. Returns 0 and sets *engine, which stays valid; or -errno, with the reason in `reason`,
 * which has WEFT_ENGINE_TEXT_BYTES: there is no such library, or this Weft cannot use its table. */
int weft_engine_find(const char *name, const struct weft_engine **engine, char *reason);

#endif
