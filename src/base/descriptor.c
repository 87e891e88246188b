/* SPDX-License-Identifier: BSD-3-Clause */
/* A table by descriptor number records which file each kept number stands for. Its pieces are
 * allocated when first needed, and stay. There is no lock, because forked children close
 * descriptors, too. */
#include "base/descriptor.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HIGH_MAX = 4096, /* the kernel copies a table of this length at each fork */
    PIECE = 256,
    PIECES = 4096, /* covers descriptor numbers below a million */
};

struct identity {
    _Atomic uint64_t device, inode; /* inode 0: the number is not kept */
};

static _Atomic(struct identity *) pieces[PIECES];

/* Returns the entry of a number, or NULL if the table has no entry. */
static struct identity *identity_at(int fd, bool make) {
    if (fd < 0 || fd >= PIECE * PIECES)
        return NULL;
    struct identity *piece = atomic_load(&pieces[fd / PIECE]);
    if (!piece && make) {
        struct identity *made = calloc(PIECE, sizeof *made);
        if (made && !atomic_compare_exchange_strong(&pieces[fd / PIECE], &piece, made))
            free(made); /* another thread was faster */
        else
            piece = made;
    }
    return piece ? &piece[fd % PIECE] : NULL;
}

static void identity_set(int fd, const struct stat *file) {
    struct identity *identity = identity_at(fd, file != NULL);
    if (!identity)
        return;
    atomic_store(&identity->device, file ? file->st_dev : 0);
    atomic_store(&identity->inode, file ? file->st_ino : 0);
}

static int high_begin(void) {
    struct rlimit limit;
    rlim_t half = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / 2 : 0;
    return half < HIGH_MAX ? (int)half : HIGH_MAX;
}

int weft_descriptor_keep(int fd) {
    struct stat file;
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, high_begin());
    if (high >= 0) {
        close(fd);
        fd = high;
    }
    if (fd >= 0 && fstat(fd, &file) == 0)
        identity_set(fd, &file);
    return fd;
}

bool weft_descriptor_is_ours(int fd) {
    struct stat file;
    if (fd < 0 || fstat(fd, &file) != 0)
        return false;
    struct identity *identity = identity_at(fd, false);
    uint64_t inode = identity ? atomic_load(&identity->inode) : 0;
    return inode == 0 || (inode == file.st_ino && atomic_load(&identity->device) == file.st_dev);
}

void weft_descriptor_close(int fd) {
    if (weft_descriptor_is_ours(fd))
        close(fd);
    identity_set(fd, NULL);
}
