/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine over UCX as its tests open it: where it was not built, they are skipped. */
#ifndef TESTS_UCX_OPEN_H
#define TESTS_UCX_OPEN_H

#include <dlfcn.h>
#include <stdio.h>
#include "transport/transport.h"

/* NULL: there is none, and the line that skips the test has been written. */
static inline const struct weft_engine *engine_open(void) {
    void *library = dlopen("libweft_ucx.so", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        printf("1..0 # SKIP there is no engine over UCX here: %s\n", dlerror());
    return library ? dlsym(library, WEFT_ENGINE_SYMBOL) : NULL;
}

#endif
