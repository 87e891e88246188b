/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens the engine over UCX for its tests, which are skipped if it was not built. */
#ifndef TESTS_UCX_OPEN_H
#define TESTS_UCX_OPEN_H

#include <dlfcn.h>
#include <stdio.h>
#include "transport/transport.h"

/* Returns NULL after writing the line that skips the test. */
static inline const struct weft_engine *engine_open(void) {
    void *library = dlopen("libweft_ucx.so", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        printf("1..0 # SKIP there is no engine over UCX here: %s\n", dlerror());
    return library ? dlsym(library, WEFT_ENGINE_SYMBOL) : NULL;
}

#endif
