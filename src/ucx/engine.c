/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine over UCX: each message is one active message, sent eagerly.
 *
 * A message is copied into a send buffer of this end. Usually UCX has sent it when the call
 * returns, and the next message uses the buffer again. Otherwise UCX keeps the buffer until its
 * callback. A link may have a few such buffers, and accepts no more messages then. A later message
 * may overtake one that UCX keeps, so no order is promised. If UCX reports a link as broken, the
 * link keeps the error, and every later message on it fails with that error. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "ucx/descriptors.h"
#include "ucx/network.h"
#include "ucx/process.h"

enum {
    MESSAGE_BYTES =
        65024,      /* the size that UCX's TCP sends and receives at once, less the headers */
    MESSAGE_ID = 1, /* of the active message */
    KEPT_MAX = 16,  /* send buffers of a link that UCX keeps */
    FREE_MAX = 16,  /* send buffers of the end that are kept for later messages */
    MARK_EVERY_NS = 50 * 1000 * 1000,
};

/* A buffer for a message that is being sent. */
struct send_buffer {
    struct send_buffer *next; /* in the list of free buffers */
    struct weft_engine_link *link;
    _Alignas(WEFT_ENGINE_ALIGNMENT) unsigned char message[MESSAGE_BYTES];
};

struct weft_engine_link {
    struct weft_engine_end *end;
    struct weft_engine_link *next;
    ucp_ep_h endpoint;
    unsigned kept; /* send buffers that UCX keeps */
    int error;     /* nonzero: the link is broken */
};

struct weft_engine_end {
    struct weft_engine_options options;
    struct ucx_network network;
    ucp_context_h context;
    ucp_worker_h worker;
    int descriptor;
    struct ucx_witness witness; /* of the descriptor: while it is open, UCX may be called */
    unsigned threads;
    struct timespec marked; /* time of the last search for connections */
    struct weft_engine_link *links;
    struct send_buffer *free;
    unsigned nfree;
    unsigned moved; /* in this progress: messages delivered, and send buffers freed */
    _Alignas(WEFT_ENGINE_ALIGNMENT) unsigned char aligned[MESSAGE_BYTES]; /* copy of a message that
                                                                             arrived unaligned */
};

/* --- Receiving ------------------------------------------------------------------------------ */

/* Delivers anything that is not a message of this engine as an empty message, which the caller of
 * the engine refuses. */
static ucs_status_t message_arrive(void *context, const void *header, size_t header_bytes,
                                   void *message, size_t bytes, const ucp_am_recv_param_t *how) {
    struct weft_engine_end *end = context;
    (void)header;
    if (header_bytes || bytes > MESSAGE_BYTES || how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)
        bytes = 0;
    if (bytes == 0 || (uintptr_t)message % WEFT_ENGINE_ALIGNMENT != 0)
        message = memcpy(end->aligned, message, bytes);
    end->moved++;
    end->options.deliver(end->options.context, message, bytes);
    return UCS_OK;
}

static void link_fail(void *link, ucp_ep_h endpoint, ucs_status_t status) {
    struct weft_engine_link *broken = link;
    (void)endpoint;
    if (!broken->error)
        broken->error = ucx_errno(status);
}

/* --- Opening and abandoning ------------------------------------------------------------------ */

/* Leaves UCX's objects alone if the program has closed its descriptors: UCX would close their
 * numbers, which may belong to other files now. */
static void end_free(struct weft_engine_end *end) {
    if (ucx_descriptors_are_closed(&end->witness))
        return;
    ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags = UCP_EP_CLOSE_FLAG_FORCE};
    for (struct weft_engine_link *link = end->links; link; link = link->next) {
        ucs_status_ptr_t closing = ucx.ucp_ep_close_nbx(link->endpoint, &force);
        if (UCS_PTR_IS_PTR(closing))
            ucx.ucp_request_free(closing);
    }
    if (end->worker)
        ucx.ucp_worker_destroy(end->worker); /* calls back for every send buffer that it keeps */
    if (end->context)
        ucx.ucp_cleanup(end->context);
    for (struct weft_engine_link *link = end->links, *next; link; link = next) {
        next = link->next;
        free(link);
    }
    for (struct send_buffer *buffer = end->free, *next; buffer; buffer = next) {
        next = buffer->next;
        free(buffer);
    }
    free(end);
}

static ucs_status_t context_open(struct weft_engine_end *end) {
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME,
                           .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
                           .name = "weft"};
    ucp_config_t *config;
    ucs_status_t status = ucx.ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK)
        return status;
    status = ucx.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &end->context);
    ucx.ucp_config_release(config);
    return status;
}

static ucs_status_t worker_open(struct weft_engine_end *end) {
    ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
        .id = MESSAGE_ID,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = message_arrive,
        .arg = end};
    ucs_status_t status = ucx.ucp_worker_create(end->context, &params, &end->worker);
    if (status == UCS_OK)
        status = ucx.ucp_worker_get_efd(end->worker, &end->descriptor);
    if (status == UCS_OK)
        end->witness = ucx_descriptors_witness(end->descriptor);
    if (status == UCS_OK)
        status = ucx.ucp_worker_set_am_recv_handler(end->worker, &handler);
    return status;
}

/* UCX reads its settings here, and starts a thread, which inherits the signal mask. */
static int end_open(struct weft_engine_end *end) {
    struct ucx_settings settings;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    ucx_settings_begin(&settings);
    unsigned threads = ucx_process_threads();
    struct ucx_descriptors *descriptors = ucx_descriptors_note();
    int error = ucx_library_open(end->options.reason);
    if (error == 0)
        error = ucx_network_choose(&end->options, &end->network, &settings);
    ucs_status_t status = UCS_OK;
    if (error == 0)
        status = context_open(end);
    if (error == 0 && status == UCS_OK)
        status = worker_open(end);
    if (status != UCS_OK) {
        char network[2 * UCX_NAMES_BYTES];
        ucx_network_describe(&end->network, network, sizeof network);
        snprintf(end->options.reason, WEFT_ENGINE_TEXT_BYTES, "%s (%.200s)",
                 ucx.ucs_status_string(status), network);
        error = ucx_errno(status);
    }
    ucx_process_keep();
    ucx_descriptors_mark_new(descriptors);
    end->threads = ucx_process_threads() - threads;
    ucx_settings_end(&settings);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static int engine_open(const struct weft_engine_options *options, struct weft_engine_end **result) {
    struct weft_engine_end *end = calloc(1, sizeof *end);
    if (!end)
        return -ENOMEM;
    end->options = *options;
    int error = end_open(end);
    if (error)
        end_free(end);
    else
        *result = end;
    return error;
}

static int engine_address(struct weft_engine_end *end, void *address, size_t *bytes) {
    ucp_address_t *own;
    size_t length;
    ucs_status_t status = ucx.ucp_worker_get_address(end->worker, &own, &length);
    if (status != UCS_OK)
        return ucx_errno(status);
    int error = length > *bytes ? -ENOSPC : 0;
    if (error == 0)
        memcpy(address, own, length);
    *bytes = length;
    ucx.ucp_worker_release_address(end->worker, own);
    return error;
}

static int engine_connect(struct weft_engine_end *end, const void *address, size_t bytes,
                          struct weft_engine_link **result) {
    (void)bytes; /* UCX finds the end of an address itself */
    if (ucx_descriptors_are_closed(&end->witness))
        return -EBADF;
    struct weft_engine_link *link = calloc(1, sizeof *link);
    if (!link)
        return -ENOMEM;
    link->end = end;
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLER |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                              .address = address,
                              .err_handler = {.cb = link_fail, .arg = link},
                              .err_mode = UCP_ERR_HANDLING_MODE_PEER};
    ucs_status_t status = ucx.ucp_ep_create(end->worker, &params, &link->endpoint);
    if (status != UCS_OK) {
        free(link);
        return ucx_errno(status);
    }
    link->next = end->links;
    end->links = link;
    *result = link;
    ucx_descriptors_mark(end->descriptor);
    return 0;
}

/* --- Sending --------------------------------------------------------------------------------- */

static struct send_buffer *send_buffer_take(struct weft_engine_end *end) {
    struct send_buffer *buffer = end->free;
    if (!buffer)
        return malloc(sizeof *buffer);
    end->free = buffer->next;
    end->nfree--;
    return buffer;
}

/* Frees surplus buffers, because a burst to many PEs uses more than are needed later. */
static void send_buffer_give_back(struct weft_engine_end *end, struct send_buffer *buffer) {
    if (end->nfree >= FREE_MAX) {
        free(buffer);
        return;
    }
    buffer->next = end->free;
    end->free = buffer;
    end->nfree++;
}

/* Called when UCX no longer needs the buffer. */
static void send_buffer_sent(void *request, ucs_status_t status, void *context) {
    struct send_buffer *buffer = context;
    struct weft_engine_link *link = buffer->link;
    if (status != UCS_OK)
        link_fail(link, link->endpoint, status);
    link->kept--;
    link->end->moved++;
    send_buffer_give_back(link->end, buffer);
    ucx.ucp_request_free(request);
}

static int engine_message(struct weft_engine_link *link, const struct iovec *parts, int nparts) {
    struct weft_engine_end *end = link->end;
    if (!link->error && ucx_descriptors_are_closed(&end->witness))
        link->error = -EBADF;
    if (link->error)
        return link->error;
    struct send_buffer *buffer = link->kept < KEPT_MAX ? send_buffer_take(end) : NULL;
    if (!buffer)
        return link->kept ? -EAGAIN : -ENOMEM;
    unsigned char *at = buffer->message;
    for (int i = 0; i < nparts; at += parts[i++].iov_len)
        if (parts[i].iov_len) /* an empty part may have no address */
            memcpy(at, parts[i].iov_base, parts[i].iov_len);
    buffer->link = link;
    ucp_request_param_t how = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS |
                                               UCP_OP_ATTR_FIELD_CALLBACK |
                                               UCP_OP_ATTR_FIELD_USER_DATA,
                               .flags = UCP_AM_SEND_FLAG_EAGER,
                               .cb.send = send_buffer_sent,
                               .user_data = buffer};
    ucs_status_ptr_t sending = ucx.ucp_am_send_nbx(
        link->endpoint, MESSAGE_ID, NULL, 0, buffer->message, (size_t)(at - buffer->message), &how);
    if (UCS_PTR_IS_PTR(sending)) {
        link->kept++;
        return 0;
    }
    send_buffer_give_back(end, buffer);
    if (UCS_PTR_IS_ERR(sending))
        link_fail(link, link->endpoint, UCS_PTR_STATUS(sending));
    return link->error;
}

/* --- Progress -------------------------------------------------------------------------------- */

/* Each call reads once from every connection with data. If descriptors are closed, the next message
 * or arm reports it. */
static unsigned engine_progress(struct weft_engine_end *end) {
    if (ucx_descriptors_are_closed(&end->witness))
        return 0;
    end->moved = 0;
    unsigned events = ucx.ucp_worker_progress(end->worker);
    return events + end->moved;
}

/* Marks connections that peers have opened: UCX's thread accepts them without notice. */
static void connections_mark(struct weft_engine_end *end) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (now.tv_sec == end->marked.tv_sec && now.tv_nsec - end->marked.tv_nsec < MARK_EVERY_NS)
        return;
    end->marked = now;
    ucx_descriptors_mark(end->descriptor);
}

static int engine_arm(struct weft_engine_end *end, int *descriptor) {
    if (ucx_descriptors_are_closed(&end->witness))
        return -EBADF;
    connections_mark(end);
    ucs_status_t status = ucx.ucp_worker_arm(end->worker);
    if (status == UCS_ERR_BUSY)
        return -EBUSY;
    *descriptor = end->descriptor;
    return ucx_errno(status);
}

static uint32_t engine_abilities(struct weft_engine_link *link) {
    (void)link;
    return 0;
}

static unsigned engine_threads(struct weft_engine_end *end) {
    return end->threads;
}

static void engine_describe(struct weft_engine_end *end, char *text, size_t bytes) {
    char network[2 * UCX_NAMES_BYTES], reason[WEFT_ENGINE_TEXT_BYTES];
    struct ucx_settings settings;
    if (end) {
        ucx_network_describe(&end->network, network, sizeof network);
        snprintf(text, bytes, "UCX %s, %s", ucx.ucp_get_version_string(), network);
        return;
    }
    ucx_settings_begin(&settings);
    int error = ucx_library_open(reason);
    ucx_settings_end(&settings);
    snprintf(text, bytes, "%s%s", error ? "" : "UCX ",
             error ? reason : ucx.ucp_get_version_string());
}

static int engine_where(struct weft_engine_end *end, struct sockaddr_storage *address) {
    return ucx_network_address(&end->network, address);
}

__attribute__((visibility("default"))) const struct weft_engine weft_engine = {
    .version = WEFT_ENGINE_VERSION,
    .name = "ucx",
    .message_bytes = MESSAGE_BYTES,
    .open = engine_open,
    .address = engine_address,
    .connect = engine_connect,
    .message = engine_message,
    .progress = engine_progress,
    .arm = engine_arm,
    .abilities = engine_abilities,
    .threads = engine_threads,
    .describe = engine_describe,
    .abandon = end_free,
    .where = engine_where,
};
