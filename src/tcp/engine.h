/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine over TCP, which needs nothing but the kernel. */
#ifndef WEFT_TCP_ENGINE_H
#define WEFT_TCP_ENGINE_H

#include "transport/transport.h"

extern const struct weft_engine weft_tcp_engine;

#endif
