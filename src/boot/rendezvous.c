/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets of other users may have similar names; they are tried and closed. A connect never blocks:
 * a listening socket whose queue is full is tried again later. */
#include "boot/rendezvous.h"
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/hash.h"
#include "boot/source.h"

enum { PREFIX_BYTES = 32, NAME_BYTES = sizeof((struct sockaddr_un *)0)->sun_path - 1 };

static void name_write_prefix(const unsigned char *key, char *prefix) {
    uint64_t sum = weft_hash(WEFT_HASH_BASIS, key, WEFT_JOB_KEY_BYTES);
    snprintf(prefix, PREFIX_BYTES, "weft-%016" PRIx64 "-", sum);
}

/* Makes an abstract address: the name follows a zero byte, and its length is part of it. */
static socklen_t address_fill(struct sockaddr_un *address, const char *name) {
    size_t length = strlen(name);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path + 1, name, length);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

static bool socket_is_own_user(int socket, pid_t *pid) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.uid != geteuid())
        return false;
    *pid = peer.pid;
    return true;
}

static int name_listen(const char *name) {
    struct sockaddr_un address;
    int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listening < 0)
        return -errno;
    socklen_t bytes = address_fill(&address, name);
    if (bind(listening, (struct sockaddr *)&address, bytes) == 0 &&
        listen(listening, SOMAXCONN) == 0)
        return listening;
    int code = -errno;
    close(listening);
    return code;
}

int weft_rendezvous_listen(const unsigned char *key) {
    char prefix[PREFIX_BYTES], name[NAME_BYTES];
    uint64_t noise;
    if (getrandom(&noise, sizeof noise, 0) != sizeof noise)
        return -EIO;
    name_write_prefix(key, prefix);
    snprintf(name, sizeof name, "%s%016" PRIx64, prefix, noise);
    return name_listen(name);
}

int weft_rendezvous_accept(int listening, pid_t *pid) {
    int peer = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    if (peer < 0)
        return errno == ECONNABORTED || errno == EINTR ? -EACCES : -errno;
    if (socket_is_own_user(peer, pid))
        return peer;
    close(peer);
    return -EACCES;
}

static int name_connect(const char *name) {
    struct sockaddr_un address;
    pid_t pid;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    socklen_t bytes = address_fill(&address, name);
    if (connect(fd, (struct sockaddr *)&address, bytes) == 0 && socket_is_own_user(fd, &pid))
        return fd;
    close(fd);
    return -EACCES;
}

int weft_rendezvous_connect(FILE *listing, const unsigned char *key) {
    char prefix[PREFIX_BYTES], line[512];
    name_write_prefix(key, prefix);
    while (fgets(line, sizeof line, listing)) {
        char *name = strchr(line, '@');
        if (!name || strncmp(name + 1, prefix, strlen(prefix)) != 0)
            continue;
        name[1 + strcspn(name + 1, " \n")] = '\0';
        int fd = strlen(name + 1) < NAME_BYTES ? name_connect(name + 1) : -EACCES;
        if (fd != -EACCES)
            return fd;
    }
    return -ENOENT;
}
