/* SPDX-License-Identifier: BSD-3-Clause */
/* All PEs of a job must make the same choice, so it depends only on variables, which are the same
 * on all PEs, not on what is installed on a host. */
#include "far/engine.h"
#include <stdlib.h>
#include <string.h>
#include "base/env.h"
#include "transport/engine.h"
#include "tcp/engine.h"

static const char ucx[] = "libweft_ucx.so";

/* A user who sets UCX's transports or devices wants UCX. */
static const char *choice(void) {
    if (strcmp(weft_env.far_engine, "ucx") == 0)
        return ucx;
    if (strcmp(weft_env.far_engine, "auto") != 0)
        return weft_env.far_engine;
    return getenv("UCX_TLS") || getenv("UCX_NET_DEVICES") ? ucx : weft_tcp_engine.name;
}

int weft_far_engine(const struct weft_engine **engine, char *reason) {
    const char *name = choice();
    if (strcmp(name, weft_tcp_engine.name) != 0)
        return weft_engine_find(name, engine, reason);
    *engine = &weft_tcp_engine;
    return 0;
}
