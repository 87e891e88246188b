/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages and descriptors through one Unix SEQPACKET socket: whole or not at all. */
#include "boot/wire.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Room for as many descriptors as the kernel lets through, so that a control part which is cut off
 * can only mean that this process had no free descriptors. */
union ancillary {
    struct cmsghdr aligned;
    char bytes[CMSG_SPACE(WEFT_WIRE_FDS_MAX * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

static void fds_attach(struct msghdr *message, union ancillary *ancillary, const int *fds,
                       int nfds) {
    size_t bytes = (size_t)nfds * sizeof *fds;
    memset(ancillary, 0, CMSG_SPACE(bytes));
    ancillary->aligned.cmsg_level = SOL_SOCKET;
    ancillary->aligned.cmsg_type = SCM_RIGHTS;
    ancillary->aligned.cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(&ancillary->aligned), fds, bytes);
    message->msg_control = ancillary;
    message->msg_controllen = CMSG_SPACE(bytes);
}

int weft_wire_send(int socket, const struct weft_wire_header *header, const void *payload,
                   size_t bytes, const int *fds, int nfds, int flags) {
    struct iovec parts[2] = {{(void *)header, sizeof *header}, {(void *)payload, bytes}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = bytes ? 2 : 1};
    union ancillary ancillary;
    if (nfds > 0)
        fds_attach(&message, &ancillary, fds, nfds);
    ssize_t sent;
    do {
        sent = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return 0;
    return errno == ECONNRESET ? -EPIPE : -errno;
}

static void extra_collect(struct msghdr *message, struct weft_wire_extra *extra) {
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        size_t bytes = part->cmsg_len - CMSG_LEN(0);
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
            memcpy(extra->fd, CMSG_DATA(part), bytes);
            extra->nfds = (int)(bytes / sizeof(int));
        } else if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS) {
            struct ucred credentials;
            memcpy(&credentials, CMSG_DATA(part), sizeof credentials);
            extra->sender = credentials.pid;
        }
    }
}

static int message_refusal(ssize_t received, int flags) {
    if (received == 0)
        return -EPIPE;
    if (flags & MSG_CTRUNC)
        return -EMFILE;
    if ((flags & MSG_TRUNC) || received < (ssize_t)sizeof(struct weft_wire_header))
        return -EPROTO;
    return 0;
}

ssize_t weft_wire_receive(int socket, struct weft_wire_header *header, void *payload,
                          size_t capacity, struct weft_wire_extra *extra, int flags) {
    struct iovec parts[2] = {{header, sizeof *header}, {payload, capacity}};
    union ancillary ancillary;
    struct msghdr message = {.msg_iov = parts,
                             .msg_iovlen = 2,
                             .msg_control = &ancillary,
                             .msg_controllen = sizeof ancillary};
    extra->sender = 0;
    extra->nfds = 0;
    ssize_t received;
    do {
        received = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
    } while (received < 0 && errno == EINTR);
    if (received < 0)
        return errno == ECONNRESET ? -EPIPE : -errno;
    extra_collect(&message, extra);
    int error = message_refusal(received, message.msg_flags);
    if (error == 0)
        return received - (ssize_t)sizeof *header;
    weft_wire_close(extra);
    return error;
}

static int int_min(int a, int b) {
    return a < b ? a : b;
}

int weft_wire_batch(size_t bytes, int nfds, int missing) {
    int count = missing;
    if (bytes)
        count = int_min(count, (int)(WEFT_WIRE_PAYLOAD_MAX / bytes));
    if (nfds)
        count = int_min(count, WEFT_WIRE_FDS_MAX / nfds);
    return count;
}

void weft_wire_close(struct weft_wire_extra *extra) {
    for (int i = 0; i < extra->nfds; i++)
        close(extra->fd[i]);
    extra->nfds = 0;
}
