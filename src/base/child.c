/* SPDX-License-Identifier: BSD-3-Clause */
/* The child copies the parent's data as they are at the moment of the copy. The parent may have
 * changed them since the fork, unless it waits in its fork handler.
 *
 * If Weft is part of the executable, the child lacks Weft's own variables, too, and the table of
 * imported functions through which it calls libc. So everything that the copy needs lies in the
 * island, whole pages that children do inherit, together with the address of libc's syscall(). */
#include "base/child.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/size.h"

enum { ISLAND_BYTES = 4096 };

static union {
    struct {
        unsigned count;
        struct weft_child_piece pieces[WEFT_CHILD_PIECES];
        int fd;
        dev_t device;
        ino_t inode;
        long (*call)(long number, ...);
    } data;
    char page[ISLAND_BYTES];
} island __attribute__((aligned(ISLAND_BYTES)));

void weft_child_island(uintptr_t *begin, uintptr_t *end) {
    *begin = (uintptr_t)&island;
    *end = *begin + sizeof island;
}

/* --- Mappings that children lack ---------------------------------------------------------------
 */

/* Used for crash reports only. If there are more mappings than this, the oldest are forgotten. */
enum { DENIED_MAX = 64 };
static struct { _Atomic uintptr_t begin, end; } denied[DENIED_MAX];
static _Atomic unsigned ndenied;

void weft_child_deny(void *at, size_t bytes) {
    unsigned i = atomic_fetch_add(&ndenied, 1) % DENIED_MAX;
    atomic_store(&denied[i].begin, (uintptr_t)at);
    atomic_store(&denied[i].end, (uintptr_t)at + bytes);
    madvise(at, bytes, MADV_DONTFORK);
}

bool weft_child_lacks(const void *at) {
    for (int i = 0; i < DENIED_MAX; i++)
        if ((uintptr_t)at >= atomic_load(&denied[i].begin) &&
            (uintptr_t)at < atomic_load(&denied[i].end))
            return true;
    return false;
}

/* --- The executable's data ------------------------------------------------------------------- */

void weft_child_inherit(bool inherit) {
    for (unsigned i = 0; i < island.data.count; i++) {
        const struct weft_child_piece *piece = &island.data.pieces[i];
        madvise((void *)piece->begin, piece->end - piece->begin,
                inherit ? MADV_DOFORK : MADV_DONTFORK);
    }
}

bool weft_child_copy_from(int fd) {
    struct stat file;
    if (fstat(fd, &file) != 0)
        return false;
    island.data.fd = fd;
    island.data.device = file.st_dev;
    island.data.inode = file.st_ino;
    return true;
}

/* Does nothing if the island has no pages of its own, for then the data contain it. */
void weft_child_copy_later(const struct weft_child_piece *pieces, unsigned count, int fd) {
    void *found = dlsym(RTLD_NEXT, "syscall"); /* &syscall may be a stub of the executable */
    if ((uintptr_t)&island != weft_page_down((uintptr_t)&island) ||
        sizeof island != weft_page_up(sizeof island) || !weft_child_copy_from(fd))
        return;
    island.data.call = syscall;
    if (found)
        memcpy(&island.data.call, &found, sizeof found);
    for (unsigned i = 0; i < count; i++)
        island.data.pieces[i] = pieces[i];
    island.data.count = count;
    weft_child_inherit(false);
}

static bool is_same_file(void) {
    struct stat file;
    return island.data.call(SYS_fstat, (long)island.data.fd, &file) == 0 &&
           file.st_dev == island.data.device && file.st_ino == island.data.inode;
}

/* Reads the file's non-empty parts into its private mapping, so that the child owns these pages.
 * The kernel does the writing, so no sanitizer reports the gaps between objects as overflows. */
static bool own_pages(const struct weft_child_piece *piece) {
    long (*call)(long, ...) = island.data.call;
    long fd = island.data.fd, at, end = (long)piece->offset;
    long stop = end + (long)(piece->end - piece->begin);
    while (end < stop && (at = call(SYS_lseek, fd, end, (long)SEEK_DATA)) >= 0 && at < stop) {
        end = call(SYS_lseek, fd, at, (long)SEEK_HOLE);
        end = end < stop ? end : stop;
        while (at < end) {
            long copied =
                call(SYS_pread64, fd, piece->begin + (uintptr_t)at - piece->offset, end - at, at);
            if (copied <= 0)
                return false; /* instead of sharing pages that the parent still writes */
            at += copied;
        }
    }
    return true;
}

/* Must not touch errno before the mappings are in place. */
bool weft_child_copy(void) {
    if (!is_same_file())
        return false;
    for (unsigned i = 0; i < island.data.count; i++) {
        const struct weft_child_piece *piece = &island.data.pieces[i];
        if (island.data.call(SYS_mmap, piece->begin, piece->end - piece->begin,
                             (long)(PROT_READ | PROT_WRITE), (long)(MAP_PRIVATE | MAP_FIXED),
                             (long)island.data.fd, (long)piece->offset) != (long)piece->begin)
            return false;
    }
    int saved = errno;
    for (unsigned i = 0; i < island.data.count; i++)
        if (!own_pages(&island.data.pieces[i]))
            return false;
    island.data.count = 0;
    errno = saved;
    return true;
}

bool weft_child_repair(const siginfo_t *fault) {
    for (unsigned i = 0; fault->si_code == SEGV_MAPERR && i < island.data.count; i++)
        if ((uintptr_t)fault->si_addr >= island.data.pieces[i].begin &&
            (uintptr_t)fault->si_addr < island.data.pieces[i].end)
            return weft_child_copy();
    return false;
}
