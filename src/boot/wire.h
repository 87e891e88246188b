/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocol between a PE and its launcher: the environment that names the descriptors, and the
 * messages on the SEQPACKET socket. One message is one header, then payload, and descriptors beside
 * it. Neither side believes the other: every field is checked where it arrives. */
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
#define WEFT_BOOT_ENV_LIFE      "WEFT_LIFE_FD" /* a socket that only tells of the launcher's end */
#define WEFT_BOOT_ENV_INTERFACE "WEFT_INTERFACE" /* for programs; where there are several hosts */

enum {
    WEFT_BOOT_BLOB_MAX = 4096, /* of one contribution to an exchange */
    WEFT_BOOT_FDS_MAX = 8,
    WEFT_WIRE_PES_MAX = 4096,
    WEFT_WIRE_PAYLOAD_MAX = 32 * 1024, /* far below any send buffer, so that one always fits */
    WEFT_WIRE_FDS_MAX = 253,           /* SCM_MAX_FD of the kernel */
};

enum weft_wire_kind {
    WEFT_WIRE_JOIN = 1, /* PE: here I am; its pid comes from the kernel */
    WEFT_WIRE_GIVE,     /* PE: my contribution to this round */
    WEFT_WIRE_SHARE,    /* launcher: the contributions of PEs first .. first + count - 1 */
    WEFT_WIRE_EXIT,     /* PE: shmem_global_exit(status) */
    WEFT_WIRE_FAIL,     /* PE: I give up with `status`, and have said why. As an answer to a
                           GIVE_AMONG: the exchange has failed; -ECONNABORTED: without PE `first` */

    WEFT_WIRE_HELLO,   /* peer to PE 0 where they meet without a launcher of ours: boot/meet.h */
    WEFT_WIRE_WELCOME, /* the first PE of the host: all are here; with the control page. `count`
                          connections to other hosts follow in messages of their own: */
    WEFT_WIRE_CONNECTIONS,
    WEFT_WIRE_REFUSAL, /* PE 0: with the reason */

    WEFT_WIRE_GIVE_AMONG, /* PE: my contribution to an exchange among some, behind its key, a
                             uint64_t that is not 0, and the bits of its members; the first
                             descriptor is a socket for the answer, SHARE or FAIL */

    WEFT_WIRE_BLAME, /* PE: PE `first`, I or one that I wait for, exits with `status` */
    WEFT_WIRE_CUT,   /* PE: I cannot reach host `first`; again as long as that lasts */
};

struct weft_wire_header {
    uint32_t kind;
    uint32_t bytes; /* GIVE, SHARE: of one contribution */
    uint32_t nfds;  /* GIVE, SHARE: of one contribution; 0 in a SHARE of PEs on other hosts */
    uint32_t first, count;
    int32_t status;
};

/* Some PEs of a job, a bit for each. A contribution's place among theirs is the rank of its PE. */
struct weft_wire_members {
    int count;
    uint64_t bits[WEFT_WIRE_PES_MAX / 64];
};

void weft_wire_members_add(struct weft_wire_members *members, int pe);
bool weft_wire_members_has(const struct weft_wire_members *members, int pe);
int weft_wire_members_rank(const struct weft_wire_members *members, int pe);

/* Makes members of the bits that have come from elsewhere. False if fewer than two are set, or one
 * of a PE that is not there. */
bool weft_wire_members_read(struct weft_wire_members *members, const void *bits, int npes);

/* The bytes of the bits of members, as messages have them. */
static inline size_t weft_wire_members_bytes(int npes) {
    return (size_t)(npes + 63) / 64 * sizeof(uint64_t);
}

/* What may follow a header: a payload, and descriptors beside it. */
struct weft_wire_body {
    const void *payload;
    size_t bytes;
    const int *fds;
    int nfds;
};

/* A message that has arrived. The receiver owns its descriptors; they are close-on-exec. */
struct weft_wire_message {
    struct weft_wire_header header;
    pid_t sender; /* as the kernel says, where the socket has SO_PASSCRED; otherwise 0 */
    int nfds;
    int fd[WEFT_WIRE_FDS_MAX];
};

/* Sends one message; `body` may be NULL. `flags`: MSG_DONTWAIT or 0. 0 or -errno; -EPIPE when the
 * other side is gone. */
int weft_wire_send(int socket, const struct weft_wire_header *header,
                   const struct weft_wire_body *body, int flags);

/* Receives one message: the bytes of its payload, or -errno. -EPIPE: the other side is gone;
 * -EPROTO: no message of ours; -EMFILE: no room for its descriptors. Descriptors of a message that
 * is refused are closed. */
ssize_t weft_wire_receive(int socket, struct weft_wire_message *message, void *payload,
                          size_t capacity, int flags);

/* The contributions of all members of an exchange, as whoever gathers them has them. Those from
 * other hosts have come without descriptors, and go on so: in messages of their own, with nfds 0.
 */
struct weft_wire_shares {
    int members;
    size_t bytes; /* of one contribution */
    int nfds;
    unsigned char *all; /* members * bytes */
    int *fds;           /* members * nfds; all of a member's are -1 where none have come */
};

/* Returns whether the descriptors of all contributions still stand for the files that came. */
bool weft_wire_shares_are_ours(const struct weft_wire_shares *shares);

/* Sends a member what it can take now from contribution *position on, which advances. 0: it has
 * all; -EAGAIN, -ETOOMANYREFS: later; or another -errno. */
int weft_wire_share(int socket, const struct weft_wire_shares *shares, int *position);

void weft_wire_close(struct weft_wire_message *message);

#endif
