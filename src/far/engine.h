/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice of the engine that reaches far PEs: TCP, which is part of Weft, or an engine in a
 * library. */
#ifndef WEFT_FAR_ENGINE_H
#define WEFT_FAR_ENGINE_H

#include "transport/transport.h"

/* Finds the engine that WEFT_ENGINE names: tcp, ucx, a library's name or path, or auto. Returns 0
 * and *engine, which is never freed; or -errno with the reason in `reason`, which has
 * WEFT_ENGINE_TEXT_BYTES. */
int weft_far_engine(const struct weft_engine **engine, char *reason);

#endif
