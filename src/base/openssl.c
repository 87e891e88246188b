/* SPDX-License-Identifier: BSD-3-Clause */
/* libssl loads libcrypto, so one handle finds the functions of both. */
#include "base/openssl.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include "base/library.h"
#include "base/log.h"

struct weft_openssl weft_openssl;

/* The first load's outcome, which later loads repeat. */
static struct {
    pthread_once_t once;
    int error;
    char text[256];
} loaded = {.once = PTHREAD_ONCE_INIT};

#define CALL(result, name, arguments) {#name, &weft_openssl.name},
static const struct weft_library_call calls[] = {WEFT_OPENSSL_CALLS(CALL)};
#undef CALL

static int library_open(void) {
    enum { MAJOR_SHIFT = 28, MAJOR = 3 };
    void *library = dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(
            loaded.text, sizeof loaded.text,
            "there is no OpenSSL 3 here (%s): install libssl3 (Debian, Ubuntu) or openssl-libs "
            "(Fedora, RHEL)",
            dlerror());
        return -ENOENT;
    }
    const char *missing = weft_library_find(library, calls, sizeof calls / sizeof *calls);
    if (missing) {
        snprintf(loaded.text, sizeof loaded.text,
                 "libssl.so.3 lacks %s: install OpenSSL 3.0 or later", missing);
        return -ENOSYS;
    }
    if (weft_openssl.OpenSSL_version_num() >> MAJOR_SHIFT == MAJOR)
        return 0;
    snprintf(loaded.text, sizeof loaded.text,
             "libssl.so.3 calls itself %s: install a version 3 of OpenSSL",
             weft_openssl.OpenSSL_version(0));
    return -ENOSYS;
}

static void library_load(void) {
    loaded.error = library_open();
}

int weft_openssl_load(void) {
    pthread_once(&loaded.once, library_load);
    return loaded.error < 0 ? weft_fail_bare(loaded.error, "%s", loaded.text) : 0;
}
