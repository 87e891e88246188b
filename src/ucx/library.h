/* SPDX-License-Identifier: BSD-3-Clause */
/* libucp, opened when it is needed: with it linked, its constructors would run before anything here
 * could tell them to leave the process alone. They read the environment, as ucp_init does, so what
 * UCX is told is set there for as long as it is opened, and taken away behind that. What the user
 * has set stays. */
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

/* The functions by their own names: ucx.ucp_init_version(...). */
struct ucx {
#define UCX_FIELD(name) __typeof__(name) *name;
    UCX_FUNCTIONS(UCX_FIELD)
#undef UCX_FIELD
};
extern struct ucx ucx;

/* 0; or -errno, with the reason in `reason`, of WEFT_ENGINE_TEXT_BYTES. It stays open for good. */
int ucx_library_open(char *reason);

/* UCX_ variables that are set as long as it is told things. */
enum { UCX_SETTINGS_MAX = 16 };

struct ucx_settings {
    size_t count;
    const char *names[UCX_SETTINGS_MAX]; /* that the user had not set */
};

/* Sets one, unless the user has. */
void ucx_settings_add(struct ucx_settings *settings, const char *name, const char *value);

/* Those that keep UCX from patching, handling and printing what is not its own. */
void ucx_settings_begin(struct ucx_settings *settings);
void ucx_settings_end(struct ucx_settings *settings);

/* The errno of a status, negative. */
int ucx_errno(ucs_status_t status);

#endif
