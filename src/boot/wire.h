/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocol between a PE and its launcher: the environment that names the descriptors, and the
 * messages on the SEQPACKET socket. A message is a header and a payload, with descriptors as
 * control data. Neither side trusts the other: every field is checked by the receiver. */
#ifndef WEFT_BOOT_WIRE_H
#define WEFT_BOOT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WEFT_BOOT_ENV_PE        "WEFT_PE"
#define WEFT_BOOT_ENV_NPES      "WEFT_NPES"
#define WEFT_BOOT_ENV_HUB       "WEFT_HUB_FD"     /* the socket for messages */
#define WEFT_BOOT_ENV_CONTROL   "WEFT_CONTROL_FD" /* the control page */
#define WEFT_BOOT_ENV_LIFE      "WEFT_LIFE_FD"    /* a socket that closes when the launcher ends */
#define WEFT_BOOT_ENV_INTERFACE "WEFT_INTERFACE"  /* set for programs if there are several hosts */

enum {
    WEFT_BOOT_BLOB_MAX = 4096, /* of one contribution to an exchange */
    WEFT_BOOT_FDS_MAX = 8,
    WEFT_WIRE_PES_MAX = 4096,
    WEFT_WIRE_PAYLOAD_MAX = 32 * 1024, /* far less than a send buffer, so a message always fits */
    WEFT_WIRE_FDS_MAX = 253,           /* SCM_MAX_FD of the kernel */
};

enum weft_wire_kind {
    WEFT_WIRE_JOIN = 1, /* PE: has joined; its pid comes from the kernel */
    WEFT_WIRE_GIVE,     /* PE: its contribution to an exchange of all PEs */
    WEFT_WIRE_SHARE,    /* launcher: the contributions of PEs first .. first + count - 1 */
    WEFT_WIRE_EXIT,     /* PE: shmem_global_exit(status) */
    WEFT_WIRE_FAIL,     /* PE: gives up with `status` after logging the reason. As an answer to a
                           GIVE_AMONG: the exchange has failed; -ECONNABORTED: PE `first` is gone
                         */

    WEFT_WIRE_HELLO,   /* peer to PE 0, without oshrun: boot/meet.h */
    WEFT_WIRE_WELCOME, /* first PE of the host: all PEs have met; with the control page. `count`
                          connections to other hosts follow in messages of their own: */
    WEFT_WIRE_CONNECTIONS,
    WEFT_WIRE_REFUSAL, /* first PE of the host: with the reason */

    WEFT_WIRE_GIVE_AMONG, /* PE: its contribution to an exchange of some PEs. The payload begins
                             with the key, a uint64_t other than 0, and the bits of the members; the
                             first descriptor is a socket for the answer, SHARE or FAIL */

    WEFT_WIRE_BLAME, /* PE: PE `first`, itself or one that it waits for, exits with `status` */
    WEFT_WIRE_CUT,   /* PE: cannot reach host `first`; repeated while that lasts */
};

struct weft_wire_header {
    uint32_t kind;
    uint32_t bytes; /* GIVE, SHARE: of one contribution */
    uint32_t nfds;  /* GIVE, SHARE: of one contribution; 0 in a SHARE from PEs on other hosts */
    uint32_t first, count;
    int32_t status;
};

/* Some PEs of a job, one bit for each. Contributions are in the order of PE numbers. */
struct weft_wire_members {
    int count;
    uint64_t bits[WEFT_WIRE_PES_MAX / 64];
};

void weft_wire_members_add(struct weft_wire_members *members, int pe);
bool weft_wire_members_has(const struct weft_wire_members *members, int pe);
int weft_wire_members_rank(const struct weft_wire_members *members, int pe);

/* Reads the bits of members from a message. Returns false if fewer than two bits are set, or the
 * bit of a PE that does not exist. */
bool weft_wire_members_read(struct weft_wire_members *members, const void *bits, int npes);

/* Returns the size of the bits of members in messages. */
static inline size_t weft_wire_members_bytes(int npes) {
    return (size_t)(npes + 63) / 64 * sizeof(uint64_t);
}

/* The parts of a message after its header: payload and descriptors. */
struct weft_wire_body {
    const void *payload;
    size_t bytes;
    const int *fds;
    int nfds;
};

/* A received message. The receiver owns its descriptors, which are close-on-exec. */
struct weft_wire_message {
    struct weft_wire_header header;
    pid_t sender; /* from the kernel if the socket has SO_PASSCRED; otherwise 0 */
    int nfds;
    int fd[WEFT_WIRE_FDS_MAX];
};

/* Sends one message; `body` may be NULL; `flags` is MSG_DONTWAIT or 0. Returns 0 or -errno; -EPIPE
 * if the other side has closed. */
int weft_wire_send(int socket, const struct weft_wire_header *header,
                   const struct weft_wire_body *body, int flags);

/* Receives one message. Returns the size of its payload, or -errno: -EPIPE if the other side has
 * closed; -EPROTO if the message is invalid; -EMFILE if there is no room for its descriptors.
 * Descriptors of a rejected message are closed. */
ssize_t weft_wire_receive(int socket, struct weft_wire_message *message, void *payload,
                          size_t capacity, int flags);

/* The contributions of all members of an exchange, in the process that gathers them. Contributions
 * from other hosts have no descriptors, and are sent in messages of their own, with nfds 0. */
struct weft_wire_shares {
    int members;
    size_t bytes; /* of one contribution */
    int nfds;
    unsigned char *all; /* members * bytes */
    int *fds;           /* members * nfds; -1 for members without descriptors */
};

/* Returns whether all descriptors still refer to the files that were received; the program may have
 * closed them. */
bool weft_wire_shares_are_ours(const struct weft_wire_shares *shares);

/* Sends a member as many contributions as it can receive now, from *position on, which is advanced.
 * Returns 0 when all are sent; -EAGAIN or -ETOOMANYREFS to be repeated later; or another -errno. */
int weft_wire_share(int socket, const struct weft_wire_shares *shares, int *position);

void weft_wire_close(struct weft_wire_message *message);

#endif
