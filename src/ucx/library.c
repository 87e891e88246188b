/* SPDX-License-Identifier: BSD-3-Clause */
#include "ucx/library.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "transport/transport.h"

enum { VERSION_MIN = 13 }; /* minor version of UCX 1 */

struct ucx ucx;

/* --- UCX's settings ------------------------------------------------------------------------- */

void ucx_settings_add(struct ucx_settings *settings, const char *name, const char *value) {
    if (getenv(name) || settings->count == UCX_SETTINGS_MAX || setenv(name, value, 0) != 0)
        return;
    settings->names[settings->count++] = name;
}

/* By default UCX handles signals of the program, patches munmap and similar functions of libc,
 * prints on stdout, and blocks its caller while it connects. */
void ucx_settings_begin(struct ucx_settings *settings) {
    *settings = (struct ucx_settings){0};
    ucx_settings_add(settings, "UCX_HANDLE_ERRORS", "none");
    ucx_settings_add(settings, "UCX_ERROR_SIGNALS", "");
    ucx_settings_add(settings, "UCX_DEBUG_SIGNO", "0");
    ucx_settings_add(settings, "UCX_MEM_EVENTS", "n");
    ucx_settings_add(settings, "UCX_MEM_MMAP_HOOK_MODE", "none");
    ucx_settings_add(settings, "UCX_VFS_ENABLE", "n");
    ucx_settings_add(settings, "UCX_LOG_LEVEL", "fatal");
    ucx_settings_add(settings, "UCX_WARN_UNUSED_ENV_VARS", "n");
    ucx_settings_add(settings, "UCX_TCP_CONN_NB", "y");
}

void ucx_settings_end(struct ucx_settings *settings) {
    while (settings->count > 0)
        unsetenv(settings->names[--settings->count]);
}

/* --- The library ----------------------------------------------------------------------------- */

static int version_check(char *reason) {
    unsigned major = 0, minor = 0;
    const char *version = ucx.ucp_get_version_string();
    if (sscanf(version, "%u.%u", &major, &minor) == 2 && major == 1 && minor >= VERSION_MIN)
        return 0;
    snprintf(reason, WEFT_ENGINE_TEXT_BYTES, "UCX here is %s: install 1.%d or a later 1.x", version,
             VERSION_MIN);
    return -ENOTSUP;
}

int ucx_library_open(char *reason) {
    static const struct {
        const char *name;
        size_t field;
    } functions[] = {
#define FUNCTION(name) {#name, offsetof(struct ucx, name)},
        UCX_FUNCTIONS(FUNCTION)
#undef FUNCTION
    };
    void *library = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    for (size_t i = 0; library && i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(library, functions[i].name);
        if (!found)
            library = NULL;
        *(void **)((char *)&ucx + functions[i].field) = found;
    }
    if (library)
        return version_check(reason);
    snprintf(reason, WEFT_ENGINE_TEXT_BYTES, "%s; install UCX (libucx0, ucx)", dlerror());
    return -ENOENT;
}

int ucx_errno(ucs_status_t status) {
    switch (status) {
    case UCS_OK:
        return 0;
    case UCS_ERR_NO_MEMORY:
        return -ENOMEM;
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_NO_DEVICE:
        return -EHOSTUNREACH;
    case UCS_ERR_TIMED_OUT:
    case UCS_ERR_ENDPOINT_TIMEOUT:
        return -ETIMEDOUT;
    case UCS_ERR_REJECTED:
        return -ECONNREFUSED;
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_CANCELED:
        return -ECONNRESET;
    default:
        return -EIO;
    }
}
