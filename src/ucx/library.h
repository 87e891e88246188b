/* SPDX-License-Identifier: BSD-3-Clause */
/* libucp, opened when it is needed. If it were linked, its constructors would run before Weft could
 * set the variables that make it leave the process alone. The constructors and ucp_init read the
 * environment, so these variables are set while UCX is opened, and removed afterwards. Variables
 * that the user has set stay. */
#ifndef WEFT_UCX_LIBRARY_H
#define WEFT_UCX_LIBRARY_H

#include <stddef.h>
#include <ucp/api/ucp.h>

#define UCX_FUNCTIONS(X)              \
    X(ucp_get_version_string)         \
    X(ucp_config_read)                \
    X(ucp_config_release)             \
    X(ucp_init_version)               \
    X(ucp_cleanup)                    \
    X(ucp_worker_create)              \
    X(ucp_worker_destroy)             \
    X(ucp_worker_get_address)         \
    X(ucp_worker_release_address)     \
    X(ucp_worker_get_efd)             \
    X(ucp_worker_arm)                 \
    X(ucp_worker_progress)            \
    X(ucp_worker_set_am_recv_handler) \
    X(ucp_ep_create)                  \
    X(ucp_ep_close_nbx)               \
    X(ucp_am_send_nbx)                \
    X(ucp_request_free)               \
    X(ucs_status_string)

/* UCX's functions under their own names: ucx.ucp_init_version(...). */
struct ucx {
#define UCX_FIELD(name) __typeof__(name) *name;
    UCX_FUNCTIONS(UCX_FIELD)
#undef UCX_FIELD
};
extern struct ucx ucx;

/* Opens UCX for the rest of the process's life. Returns 0, or -errno with the reason in `reason`,
 * which has WEFT_ENGINE_TEXT_BYTES. */
int ucx_library_open(char *reason);

/* UCX_ variables that are set while UCX is opened. */
enum { UCX_SETTINGS_MAX = 16 };

struct ucx_settings {
    size_t count;
    const char *names[UCX_SETTINGS_MAX]; /* variables that the user had not set */
};

/* Sets a variable, unless the user has set it. */
void ucx_settings_add(struct ucx_settings *settings, const char *name, const char *value);

/* ucx_settings_begin sets the variables that keep UCX from patching libc, handling signals and
 * printing; ucx_settings_end removes all that were set. */
void ucx_settings_begin(struct ucx_settings *settings);
void ucx_settings_end(struct ucx_settings *settings);

/* Returns the negative errno for a status. */
int ucx_errno(ucs_status_t status);

#endif
