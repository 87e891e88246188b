/* SPDX-License-Identifier: BSD-3-Clause */
/* The copy is of the parent's data as it is at that moment: the parent may have gone on since it
 * made the child, unless it waits in its fork handler.
 *
 * If Weft is part of the executable, its own variables are among the data that a child lacks, and
 * the table by which it calls libc. The island is exempt: whole pages that hold all that is needed,
 * with the address of libc's syscall(). */
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

/* --- What children lack ---------------------------------------------------------------------- */

/* For a line about a crash: of very many mappings the oldest are forgotten. */
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

/* Does nothing if the island has no pages of its own: then it is among the data. */
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

/* Reads what has content from the file into its private mapping, which makes the pages the child's.
 * The kernel writes, so no sanitizer takes the gaps between objects for an overflow. */
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
                return false; /* rather than see what the parent writes from now on */
            at += copied;
        }
    }
    return true;
}

/* errno is out of reach until the mappings are there. */
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
