/* SPDX-License-Identifier: BSD-3-Clause */
/* A slot's memory is an unnamed memfd. It has its full size from the start and is sealed against
 * shrinking and growing, so that no peer can turn a store into a SIGBUS. Pages are committed
 * through the mapping or allocated when touched; untouched address space costs nothing. */
#include "job/window.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/child.h"
#include "base/machine.h"
#include "base/size.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

struct weft_windows weft_windows;

int weft_memfd_create(const char *name, size_t bytes) {
    struct rlimit limit; /* a larger file would raise SIGXFSZ; RLIM_INFINITY is the largest value */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur)
        return -EFBIG;
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(name, flags);
    if (fd < 0)
        return -errno;
    /* F_SEAL_WRITE is left out: the memory must stay writable. */
    if (ftruncate(fd, (off_t)bytes) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return weft_descriptor_keep(fd);
    int error = errno;
    close(fd);
    return -error;
}

/* Reserves address space and unmaps the excess. `alignment` is a power of two and at least a
 * page. */
static void *reserve(size_t bytes, size_t alignment) {
    size_t spare = alignment - weft_page_bytes();
    char *base =
        mmap(NULL, bytes + spare, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    size_t skip = -(uintptr_t)base & (alignment - 1);
    if (skip > 0)
        munmap(base, skip);
    if (spare > skip)
        munmap(base + skip + bytes, spare - skip);
    return base + skip;
}

/* Maps a piece of a member's memory. The part up to the segment's grown size is accessible, and no
 * part is included in core files. Forked children do not inherit the mapping. */
static int map_piece(const struct weft_segment *segment, char *at, size_t begin, size_t end,
                     int fd) {
    size_t grown = segment->window.bytes < end ? segment->window.bytes : end;
    if (mmap(at + begin, end - begin, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd,
             (off_t)begin) == MAP_FAILED)
        return -errno;
    madvise(at + begin, end - begin, MADV_DONTDUMP);
    weft_child_deny(at + begin, end - begin);
    /* Has an effect only if the system allows huge pages for shared memory. */
    madvise(at + begin, end - begin, MADV_HUGEPAGE);
    bool opens = grown > begin;
    return opens && mprotect(at + begin, grown - begin, PROT_READ | PROT_WRITE) != 0 ? -errno : 0;
}

/* Maps a member's memory, except for the holes, into its slot. */
static int map_slot(const struct weft_segment *segment, uint32_t slot, int fd, size_t bytes) {
    char *at = weft_window_slot_begin(&segment->window, slot);
    size_t begin, end = 0;
    int error = 0;
    while (error == 0 && weft_holes_next_piece(&segment->holes, end, bytes, &begin, &end))
        error = map_piece(segment, at, begin, end, fd);
    return error;
}

/* Defines the slots within the range reserved at `base`. */
static void lay_out(struct weft_segment *segment, const struct weft_slots *slots, uintptr_t base,
                    size_t stride, uintptr_t local) {
    segment->window = weft_window_make(base, stride, slots->count, local);
    segment->window.first = slots->first;
    segment->window.step = slots->step;
    segment->mine = slots->mine;
}

/* Tries one size; the caller halves it after -ENOMEM and -EFBIG. */
static int try_alloc(struct weft_segment *segment, const char *name, const struct weft_slots *slots,
                     size_t slot_bytes) {
    if (slot_bytes > SIZE_MAX / 2 / slots->count)
        return -ENOMEM;
    size_t divisor = slot_bytes & -slot_bytes; /* a power of two */
    void *base = reserve(slots->count * slot_bytes,
                         divisor < WEFT_SEGMENT_ALIGN ? divisor : WEFT_SEGMENT_ALIGN);
    if (!base)
        return -ENOMEM;
    uintptr_t own = (uintptr_t)base + slots->mine * slot_bytes;
    lay_out(segment, slots, (uintptr_t)base, slot_bytes, own);
    segment->slot_bytes = slot_bytes;
    segment->fd = weft_memfd_create(name, slot_bytes);
    int result =
        segment->fd < 0 ? segment->fd : map_slot(segment, slots->mine, segment->fd, slot_bytes);
    if (result == 0)
        weft_machine_prefer_node((void *)own, slot_bytes);
    else
        weft_segment_free(segment);
    return result;
}

int weft_segment_alloc(struct weft_segment *segment, const char *name,
                       const struct weft_slots *slots, size_t slot_bytes, size_t slot_bytes_min) {
    *segment = (struct weft_segment){.fd = -1};
    int result = -ENOMEM;
    for (size_t size = slot_bytes; size >= slot_bytes_min; size /= 2) {
        result = try_alloc(segment, name, slots, size);
        if (result != -ENOMEM && result != -EFBIG)
            break;
    }
    return result;
}

int weft_segment_alloc_at(struct weft_segment *segment, const struct weft_slots *slots,
                          const struct weft_backing *memory) {
    *segment = (struct weft_segment){.fd = -1}; /* the caller keeps the memory's descriptor */
    if (memory->holes)
        segment->holes = *memory->holes;
    size_t bytes = memory->bytes, stride = weft_page_up(bytes);
    void *base = reserve(slots->count * stride, weft_page_bytes());
    if (!base)
        return -ENOMEM;
    lay_out(segment, slots, (uintptr_t)base, stride, memory->local);
    segment->window.bytes = bytes;
    segment->slot_bytes = bytes;
    int result = map_slot(segment, slots->mine, memory->fd, bytes); /* a second mapping */
    if (result < 0)
        weft_segment_free(segment);
    return result;
}

int weft_segment_attach(struct weft_segment *segment, const int *fds, size_t slot_bytes) {
    int result = 0;
    for (uint32_t slot = 0; slot < segment->window.count; slot++)
        if (slot != segment->mine && result == 0)
            result = map_slot(segment, slot, fds[slot], slot_bytes);
    segment->slot_bytes = slot_bytes;
    return result;
}

/* Sets the protection of the pages of [offset, offset + bytes) in all slots. */
static int protect(const struct weft_segment *segment, size_t offset, size_t bytes, int how) {
    size_t begin = weft_page_down(offset), span = weft_page_up(offset + bytes) - begin;
    for (uint32_t slot = 0; slot < segment->window.count; slot++) {
        char *at = weft_window_slot_begin(&segment->window, slot);
        if (mprotect(at + begin, span, how) != 0)
            return -errno;
    }
    return 0;
}

/* Each accessible part adds mappings to every slot. If the process has too many mappings, makes
 * whole slots accessible, which takes one mapping per slot. */
int weft_segment_open(const struct weft_segment *segment, size_t offset, size_t bytes) {
    int error = bytes ? protect(segment, offset, bytes, PROT_READ | PROT_WRITE) : 0;
    return error == -ENOMEM ? protect(segment, 0, segment->slot_bytes, PROT_READ | PROT_WRITE)
                            : error;
}

/* Includes this PE's own memory in core files, or excludes it. The memory of peers belongs in
 * theirs. */
static void show_in_core(const struct weft_segment *segment, size_t offset, size_t bytes,
                         int advice) {
    size_t begin = weft_page_down(offset);
    char *own = weft_window_slot_begin(&segment->window, segment->mine);
    madvise(own + begin, weft_page_up(offset + bytes) - begin, advice);
}

/* Touches each page through the kernel, by a futex operation that adds 0 to a word there. It keeps
 * concurrent stores, and reports -EFAULT where a store would raise SIGBUS. */
static int touch_pages(char *at, size_t bytes) {
    uint32_t nobody = 0, add_0 = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_LT, 0);
    for (size_t done = 0; done < bytes; done += weft_page_bytes())
        if (syscall(SYS_futex, &nobody, FUTEX_WAKE_OP, 0, 0, at + done, add_0) < 0)
            return -errno;
    return 0;
}

/* Allocates the pages through the mapping, because the descriptor's number may belong to the
 * program by now. Linux 5.14 has MADV_POPULATE_WRITE. */
static int populate(char *at, size_t bytes) {
    int result;
    do
        result = madvise(at, bytes, MADV_POPULATE_WRITE) == 0 ? 0 : -errno;
    while (result == -EINTR || result == -EAGAIN);
    if (result == -EINVAL)
        result = touch_pages(at, bytes);
    return result == -EFAULT ? -ENOMEM : result;
}

int weft_segment_commit_range(struct weft_segment *segment, size_t offset, size_t bytes) {
    if (offset > segment->slot_bytes || bytes > segment->slot_bytes - offset)
        return -ENOMEM;
    int error = weft_segment_open(segment, offset, bytes);
    size_t begin = weft_page_down(offset);
    char *own = weft_window_slot_begin(&segment->window, segment->mine);
    return bytes && error == 0 ? populate(own + begin, weft_page_up(offset + bytes) - begin)
                               : error;
}

/* Sets how much of the slot is symmetric memory. Other threads may be reading the value. */
static void show_bytes(struct weft_segment *segment, size_t bytes) {
    __atomic_store_n(&segment->window.bytes, bytes, __ATOMIC_RELAXED);
}

/* A device registers each extent, so there are at most WEFT_EXTENTS_MAX: when the table is full,
 * the last extent grows. */
static void note_extent(struct weft_segment *segment, size_t offset, size_t bytes) {
    struct weft_extent *last = segment->nextents ? &segment->extents[segment->nextents - 1] : NULL;
    if (last && segment->nextents == WEFT_EXTENTS_MAX)
        last->bytes = offset + bytes - last->offset;
    else
        segment->extents[segment->nextents++] =
            (struct weft_extent){.offset = offset, .bytes = bytes};
}

int weft_segment_grow(struct weft_segment *segment, size_t bytes, size_t at_once) {
    size_t have = segment->window.bytes;
    if (bytes <= have)
        return 0;
    size_t more = bytes - have;
    int result = weft_segment_open(segment, have, more);
    if (result == 0)
        result = weft_segment_commit_range(segment, have, more < at_once ? more : at_once);
    if (result < 0) {
        weft_segment_return(segment, have, more);
        protect(segment, have, more, PROT_NONE);
        return result;
    }
    show_in_core(segment, have, more, MADV_DODUMP);
    note_extent(segment, have, more);
    show_bytes(segment, bytes);
    return 0;
}

int weft_segment_return(struct weft_segment *segment, size_t offset, size_t bytes) {
    size_t begin = weft_page_up(offset);
    size_t end = weft_page_down(offset + bytes);
    char *own = weft_window_slot_begin(&segment->window, segment->mine);
    bool done = begin >= end || madvise(own + begin, end - begin, MADV_REMOVE) == 0;
    return done || errno == EINVAL ? 0 : -errno; /* EINVAL: the program has locked it in memory */
}

static void forget_extents(struct weft_segment *segment, size_t limit) {
    while (segment->nextents && segment->extents[segment->nextents - 1].offset >= limit)
        segment->nextents--;
    struct weft_extent *last = segment->nextents ? &segment->extents[segment->nextents - 1] : NULL;
    if (last && last->bytes > limit - last->offset)
        last->bytes = limit - last->offset;
}

int weft_segment_shrink(struct weft_segment *segment, size_t bytes) {
    size_t had = segment->window.bytes;
    forget_extents(segment, bytes);
    show_bytes(segment, bytes);
    if (had <= bytes)
        return 0;
    int result = weft_segment_return(segment, bytes, had - bytes);
    int error = protect(segment, bytes, had - bytes, PROT_NONE);
    show_in_core(segment, bytes, had - bytes, MADV_DONTDUMP);
    return result ? result : error;
}

/* Counts the pages in memory, without swapped ones; needs no descriptor. */
static size_t pages_count(const struct weft_segment *segment) {
    enum { PAGES_AT_ONCE = 4096 };
    unsigned char present[PAGES_AT_ONCE];
    size_t page = weft_page_bytes(), most = PAGES_AT_ONCE * page, found = 0;
    char *own = weft_window_slot_begin(&segment->window, segment->mine);
    for (size_t at = 0, bytes; at < segment->window.bytes; at += bytes) {
        bytes = weft_page_up(segment->window.bytes) - at;
        bytes = bytes < most ? bytes : most;
        if (mincore(own + at, bytes, present) != 0)
            return found;
        for (size_t i = 0; i < bytes / page; i++)
            found += present[i] & 1 ? page : 0;
    }
    return found;
}

size_t weft_segment_present(const struct weft_segment *segment) {
    struct stat file;
    if (weft_descriptor_is_ours(segment->fd) && fstat(segment->fd, &file) == 0)
        return (size_t)file.st_blocks * 512;
    return pages_count(segment);
}

/* Without the descriptor, which the program may have closed, or on a system that cannot report
 * data, all pages count as written. */
bool weft_segment_find_data(const struct weft_segment *segment, size_t from, size_t end,
                            size_t *begin, size_t *stop) {
    if (from >= end)
        return false;
    bool tells = weft_descriptor_is_ours(segment->fd);
    off_t data = tells ? lseek(segment->fd, (off_t)from, SEEK_DATA) : -1;
    if (tells && data < 0 && errno == ENXIO)
        return false;
    *begin = data < 0 ? from : (size_t)data;
    off_t hole = data < 0 ? -1 : lseek(segment->fd, data, SEEK_HOLE);
    *stop = hole < 0 || (size_t)hole > end ? end : (size_t)hole;
    return *begin < end;
}

void weft_segment_free(struct weft_segment *segment) {
    if (weft_segment_is_mapped(segment)) {
        munmap(weft_window_slot_begin(&segment->window, 0),
               segment->window.count * segment->window.stride);
        weft_descriptor_close(segment->fd);
    }
    *segment = (struct weft_segment){.fd = -1};
}
