/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends messages with descriptors through a Unix SEQPACKET socket, which transfers a message as a
 * whole or not at all. */
#include "boot/wire.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/descriptor.h"

/* --- Members ---------------------------------------------------------------------------------- */

void weft_wire_members_add(struct weft_wire_members *members, int pe) {
    members->bits[pe / 64] |= UINT64_C(1) << pe % 64;
    members->count++;
}

bool weft_wire_members_has(const struct weft_wire_members *members, int pe) {
    return members->bits[pe / 64] >> pe % 64 & 1;
}

int weft_wire_members_rank(const struct weft_wire_members *members, int pe) {
    int rank = 0;
    for (int word = 0; word < pe / 64; word++)
        rank += __builtin_popcountll(members->bits[word]);
    uint64_t before = members->bits[pe / 64] & ((UINT64_C(1) << pe % 64) - 1);
    return rank + __builtin_popcountll(before);
}

bool weft_wire_members_read(struct weft_wire_members *members, const void *bits, int npes) {
    int words = (npes + 63) / 64, spare = words * 64 - npes;
    *members = (struct weft_wire_members){.count = 0};
    memcpy(members->bits, bits, (size_t)words * sizeof *members->bits);
    for (int word = 0; word < words; word++)
        members->count += __builtin_popcountll(members->bits[word]);
    return members->count >= 2 && (!spare || members->bits[words - 1] >> (64 - spare) == 0);
}

/* --- Messages --------------------------------------------------------------------------------- */

/* Room for the kernel's maximal number of descriptors, so that truncated control data only means
 * that this process had no free descriptors. */
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

int weft_wire_send(int socket, const struct weft_wire_header *header,
                   const struct weft_wire_body *body, int flags) {
    struct iovec parts[2] = {{(void *)header, sizeof *header}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = body && body->bytes ? 2 : 1};
    union ancillary ancillary;
    if (body)
        parts[1] = (struct iovec){(void *)body->payload, body->bytes};
    if (body && body->nfds > 0)
        fds_attach(&message, &ancillary, body->fds, body->nfds);
    ssize_t sent;
    do {
        sent = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return 0;
    return errno == ECONNRESET ? -EPIPE : -errno;
}

static void message_collect(struct weft_wire_message *message, struct msghdr *received) {
    for (struct cmsghdr *part = CMSG_FIRSTHDR(received); part; part = CMSG_NXTHDR(received, part)) {
        size_t bytes = part->cmsg_len - CMSG_LEN(0);
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
            memcpy(message->fd, CMSG_DATA(part), bytes);
            message->nfds = (int)(bytes / sizeof(int));
        } else if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS) {
            struct ucred credentials;
            memcpy(&credentials, CMSG_DATA(part), sizeof credentials);
            message->sender = credentials.pid;
        }
    }
}

static int message_refusal(ssize_t received, int flags) {
    if (flags & MSG_CTRUNC)
        return -EMFILE;
    if ((flags & MSG_TRUNC) || received < (ssize_t)sizeof(struct weft_wire_header))
        return -EPROTO;
    return 0;
}

/* Returns the bytes of a message, -EPIPE at the end, or another -errno. Calls recvmsg a second time
 * before it reports the end. Linux first looks for a message and then whether the other side has
 * closed: if the other side sends its last message and closes in between, the first call returns 0,
 * and the second returns the message. A message of no bytes returns 0, too. It has the sender's
 * credentials if the socket has SO_PASSCRED; otherwise it counts as the end if no message follows
 * it. */
static ssize_t message_receive(int socket, struct msghdr *msghdr, int flags) {
    size_t room = msghdr->msg_controllen;
    for (int ends = 0; ends < 2;) {
        msghdr->msg_controllen = room;
        ssize_t received = recvmsg(socket, msghdr, flags | (ends ? MSG_DONTWAIT : 0));
        if (received > 0 || (received == 0 && msghdr->msg_controllen > 0))
            return received;
        if (received < 0 && errno != EINTR)
            return ends || errno == ECONNRESET ? -EPIPE : -errno;
        ends += received == 0;
    }
    return -EPIPE;
}

ssize_t weft_wire_receive(int socket, struct weft_wire_message *message, void *payload,
                          size_t capacity, int flags) {
    struct iovec parts[2] = {{&message->header, sizeof message->header}, {payload, capacity}};
    union ancillary ancillary;
    struct msghdr msghdr = {.msg_iov = parts,
                            .msg_iovlen = 2,
                            .msg_control = &ancillary,
                            .msg_controllen = sizeof ancillary};
    message->sender = 0;
    message->nfds = 0;
    ssize_t received = message_receive(socket, &msghdr, flags | MSG_CMSG_CLOEXEC);
    if (received < 0)
        return received;
    message_collect(message, &msghdr);
    int error = message_refusal(received, msghdr.msg_flags);
    if (error == 0)
        return received - (ssize_t)sizeof message->header;
    weft_wire_close(message);
    return error;
}

static bool share_has_fds(const struct weft_wire_shares *shares, int member) {
    return shares->nfds > 0 && shares->fds[(size_t)member * (size_t)shares->nfds] >= 0;
}

/* Returns the number of contributions from `first` on that fit into one message: all of them have
 * descriptors, or none has. */
static int shares_batch(const struct weft_wire_shares *shares, int first) {
    int missing = shares->members - first, count = 1;
    bool with_fds = share_has_fds(shares, first);
    int most = shares->bytes ? (int)(WEFT_WIRE_PAYLOAD_MAX / shares->bytes) : missing;
    int most_fds = with_fds ? WEFT_WIRE_FDS_MAX / shares->nfds : missing;
    most = most < most_fds ? most : most_fds;
    most = most < missing ? most : missing;
    while (count < most && share_has_fds(shares, first + count) == with_fds)
        count++;
    return count;
}

bool weft_wire_shares_are_ours(const struct weft_wire_shares *shares) {
    for (int i = 0; i < shares->members * shares->nfds; i++)
        if (shares->fds[i] >= 0 && !weft_descriptor_is_ours(shares->fds[i]))
            return false;
    return true;
}

int weft_wire_share(int socket, const struct weft_wire_shares *shares, int *position) {
    int error = 0;
    while (error == 0 && *position < shares->members) {
        size_t first = (size_t)*position;
        int count = shares_batch(shares, *position);
        int nfds = share_has_fds(shares, *position) ? shares->nfds : 0;
        struct weft_wire_header header = {.kind = WEFT_WIRE_SHARE,
                                          .bytes = (uint32_t)shares->bytes,
                                          .nfds = (uint32_t)nfds,
                                          .first = (uint32_t)first,
                                          .count = (uint32_t)count};
        struct weft_wire_body body = {shares->all + first * shares->bytes,
                                      (size_t)count * shares->bytes,
                                      shares->fds + first * (size_t)shares->nfds, count * nfds};
        error = weft_wire_send(socket, &header, &body, MSG_DONTWAIT);
        *position += error ? 0 : count;
    }
    return error;
}

void weft_wire_close(struct weft_wire_message *message) {
    for (int i = 0; i < message->nfds; i++)
        close(message->fd[i]);
    message->nfds = 0;
}
