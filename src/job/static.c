/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the data, moves it before main, and gives forked children a copy of their own.
 *
 * Pages that were never touched are not copied, so a huge zero array costs nothing. Between the
 * copy and the mapping no function may be called that writes to the data. With a static sanitizer
 * runtime even mmap's wrapper would, so copying and mapping are plain system calls. */
#include "job/static.h"
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "base/child.h"
#include "base/crash.h"
#include "base/hash.h"
#include "base/size.h"
#include "boot/boot.h"
#include "job/job.h"

static struct weft_static data = {.fd = -1};

const struct weft_static *weft_static_data(void) {
    return &data;
}

/* --- Finding the data ------------------------------------------------------------------------ */

struct executable {
    uintptr_t base;
    const ElfW(Phdr) * headers;
    size_t nheaders;
};

static int take_first(struct dl_phdr_info *info, size_t size, void *out) {
    (void)size;
    struct executable *executable = out;
    executable->base = info->dlpi_addr;
    executable->headers = info->dlpi_phdr;
    executable->nheaders = info->dlpi_phnum;
    return 1; /* the main program comes first */
}

static const ElfW(Phdr) * find_header(const struct executable *e, uint32_t type) {
    for (size_t i = 0; i < e->nheaders; i++)
        if (e->headers[i].p_type == type)
            return &e->headers[i];
    return NULL;
}

/* Returns the string table of the dynamic section. glibc relocates the section's d_ptr on most
 * targets, but not on all. */
static const char *string_table(const struct executable *e, const ElfW(Dyn) * dynamic) {
    for (; dynamic->d_tag != DT_NULL; dynamic++)
        if (dynamic->d_tag == DT_STRTAB)
            return (const char *)(dynamic->d_un.d_ptr < e->base ? e->base + dynamic->d_un.d_ptr
                                                                : dynamic->d_un.d_ptr);
    return NULL;
}

/* Returns the loadable segment that contains p, or NULL. */
static const ElfW(Phdr) * find_load(const struct executable *e, const void *p) {
    for (size_t i = 0; i < e->nheaders; i++) {
        const ElfW(Phdr) *h = &e->headers[i];
        if (h->p_type == PT_LOAD && (uintptr_t)p - (e->base + h->p_vaddr) < h->p_memsz)
            return h;
    }
    return NULL;
}

/* Returns whether the executable contains libweft or lists it as a needed library. */
static bool links_weft(const struct executable *e) {
    if (find_load(e, &data))
        return true;
    const ElfW(Phdr) *header = find_header(e, PT_DYNAMIC);
    const ElfW(Dyn) *dynamic = header ? (const ElfW(Dyn) *)(e->base + header->p_vaddr) : NULL;
    const char *strings = dynamic ? string_table(e, dynamic) : NULL;
    for (; strings && dynamic->d_tag != DT_NULL; dynamic++)
        if (dynamic->d_tag == DT_NEEDED && strstr(strings + dynamic->d_un.d_val, "libweft"))
            return true;
    return false;
}

/* Returns a hash of layout and build id: equal for the same program, whatever its path and load
 * address. */
static uint64_t fingerprint(const struct executable *e) {
    uint64_t sum = WEFT_HASH_BASIS;
    for (size_t i = 0; i < e->nheaders; i++) {
        const ElfW(Phdr) *h = &e->headers[i];
        sum = weft_hash(sum, h, sizeof *h);
        if (h->p_type == PT_NOTE)
            sum = weft_hash(sum, (const void *)(e->base + h->p_vaddr), h->p_memsz);
    }
    return sum;
}

/* The writable pages of one loadable segment, without those that the loader has made read-only. */
struct writable {
    size_t nheaders; /* program headers examined so far */
    uintptr_t begin, end;
    uintptr_t file_end; /* pages from here on are zeros at the start */
};

static bool is_inside(const ElfW(Phdr) * h, const ElfW(Phdr) * load) {
    return h && h->p_vaddr >= load->p_vaddr && h->p_vaddr < load->p_vaddr + load->p_memsz;
}

/* Finds the next segment with writable pages; returns false if there is none. */
static bool next_writable(const struct executable *e, struct writable *w) {
    const ElfW(Phdr) *relro = find_header(e, PT_GNU_RELRO);
    while (w->nheaders < e->nheaders) {
        const ElfW(Phdr) *h = &e->headers[w->nheaders++];
        if (h->p_type != PT_LOAD || !(h->p_flags & PF_W))
            continue;
        w->begin = weft_page_down(e->base + h->p_vaddr);
        w->end = weft_page_up(e->base + h->p_vaddr + h->p_memsz);
        w->file_end = weft_page_up(e->base + h->p_vaddr + h->p_filesz);
        uintptr_t fixed = is_inside(relro, h)
                              ? weft_page_down(e->base + relro->p_vaddr + relro->p_memsz)
                              : w->begin;
        if (fixed > w->begin)
            w->begin = fixed;
        if (w->file_end < w->begin)
            w->file_end = w->begin;
        if (w->begin < w->end)
            return true;
    }
    return false;
}

/* Adds the pages of the next segment; headers are in ascending order of addresses. If there are
 * more segments than a window can have holes between, the first ones are dropped. */
static void add_pages(struct weft_static *found, uintptr_t begin, uintptr_t end) {
    struct weft_holes *holes = &found->holes;
    if (begin == end)
        return;
    if (found->begin && holes->count == WEFT_HOLES_MAX)
        *found = (struct weft_static){.fd = -1};
    if (!found->begin)
        found->begin = begin;
    else if (begin > found->begin + found->bytes)
        holes->hole[holes->count++] = (struct weft_hole){found->bytes, begin - found->begin};
    found->bytes = end - found->begin;
}

/* Collects the writable segments; a linker makes several for large arrays. Skips a program without
 * a dynamic loader: its data includes the C library's state, which must not be shared. */
static void find_data(struct weft_static *found, const struct executable *e) {
    if (!find_header(e, PT_INTERP) || !links_weft(e))
        return;
    uintptr_t island, island_end;
    weft_child_island(&island, &island_end);
    for (struct writable next = {0}; next_writable(e, &next);) {
        bool inside = island >= next.begin && island_end <= next.end;
        add_pages(found, next.begin, inside ? island : next.end);
        if (inside)
            add_pages(found, island_end, next.end);
    }
    found->fingerprint = fingerprint(e);
}

/* --- Moving it ------------------------------------------------------------------------------- */

/* A run of pages to copy; pages after it have not been examined yet. */
struct run {
    uintptr_t begin, end;
};

/* Linux 6.7's PAGEMAP_SCAN (linux/fs.h there) skips ranges that have no page table. */
struct scan_region {
    uint64_t start, end, categories;
};
struct scan_request {
    uint64_t size, flags, start, end, walk_end, regions, nregions, max_pages;
    uint64_t inverted, required, any_of, returned;
};
#define SCAN_IOCTL   _IOWR('f', 16, struct scan_request)
#define SCAN_TOUCHED (UINT64_C(1) << 3 | UINT64_C(1) << 4) /* present, swapped */

/* Finds the first run of touched pages in [begin, end); the run is empty and at `end` if there is
 * none. Returns -1 if the kernel lacks the ioctl. */
static int scan_run(int pagemap, uintptr_t begin, uintptr_t end, struct run *run) {
    struct scan_region region = {.start = end, .end = end};
    struct scan_request request = {.size = sizeof request,
                                   .start = begin,
                                   .end = end,
                                   .regions = (uintptr_t)&region,
                                   .nregions = 1,
                                   .any_of = SCAN_TOUCHED,
                                   .returned = SCAN_TOUCHED};
    if (ioctl(pagemap, SCAN_IOCTL, &request) < 0)
        return -1;
    *run = (struct run){region.start, region.end};
    return 0;
}

/* Finds the first run of touched pages by reading a piece of the page map: bit 63 of an entry means
 * present, 62 swapped. If the page map cannot be read, all pages count as touched. */
static void read_run(int pagemap, uintptr_t begin, uintptr_t end, struct run *run) {
    enum { PAGES_AT_ONCE = 512 };
    uint64_t entry[PAGES_AT_ONCE];
    size_t page = weft_page_bytes(), npages = (end - begin) / page, i = 0, stop;
    npages = npages < PAGES_AT_ONCE ? npages : PAGES_AT_ONCE;
    ssize_t bytes = (ssize_t)(npages * sizeof *entry);
    if (pread(pagemap, entry, (size_t)bytes, (off_t)(begin / page * sizeof *entry)) != bytes) {
        *run = (struct run){begin, end};
        return;
    }
    while (i < npages && entry[i] >> 62 == 0)
        i++;
    for (stop = i; stop < npages && entry[stop] >> 62 != 0;)
        stop++;
    *run = (struct run){begin + i * page, begin + stop * page};
}

/* Copies [begin, end) of the data to the same place of the memfd. */
static bool copy_run(const struct weft_static *from, struct run run) {
    while (run.begin < run.end) {
        long copied = syscall(SYS_pwrite64, from->fd, run.begin, run.end - run.begin,
                              run.begin - from->begin);
        if (copied <= 0)
            return false;
        run.begin += (uintptr_t)copied;
    }
    return true;
}

/* Copies the non-zero pages of a segment: all pages that the file fills, and those after them that
 * were touched. */
static bool copy_segment(const struct weft_static *from, const struct writable *w, int pagemap) {
    struct run run = {w->begin, w->file_end};
    bool complete = w->begin < from->begin || copy_run(from, run);
    while (complete && w->begin >= from->begin && run.end < w->end) {
        if (scan_run(pagemap, run.end, w->end, &run) < 0)
            read_run(pagemap, run.end, w->end, &run);
        complete = copy_run(from, run);
    }
    return complete;
}

static bool copy_pages(const struct weft_static *from, const struct executable *e) {
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    bool complete = true;
    for (struct writable next = {0}; complete && next_writable(e, &next);)
        complete = copy_segment(from, &next, pagemap);
    if (pagemap >= 0)
        syscall(SYS_close, pagemap);
    return complete;
}

/* Maps the memfd over the data. Arguments of syscall() are longs: an int may leave the upper half
 * of its stack slot undefined. */
static bool map_over(const struct weft_static *over) {
    bool complete = true;
    size_t begin, end = 0;
    while (complete && weft_holes_next_piece(&over->holes, end, over->bytes, &begin, &end))
        complete = syscall(SYS_mmap, over->begin + begin, end - begin,
                           (long)(PROT_READ | PROT_WRITE), (long)(MAP_SHARED | MAP_FIXED),
                           (long)over->fd, (long)begin) == (long)(over->begin + begin);
    return complete;
}

/* --- Forked children ------------------------------------------------------------------------- */

/* The child's copy of the data must show the moment of the fork, so the child makes it while the
 * parent's forking thread waits. The word for that lies in a page that both share. These handlers
 * do not run for children of _Fork() and clone(2), which copy later (base/child.h). */
static pthread_mutex_t fork_turn = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint32_t *fork_done;

enum { FORK_WAIT_S = 2 }; /* covers a child killed on its first steps, and a failed fork */

static void fork_prepare(void) {
    pthread_mutex_lock(&fork_turn);
    atomic_store(fork_done, 0);
    weft_child_inherit(true); /* other fork handlers may access the data before this one runs */
}

static void fork_parent(void) {
    struct timespec limit = {.tv_sec = FORK_WAIT_S};
    while (!atomic_load(fork_done))
        if (syscall(SYS_futex, fork_done, FUTEX_WAIT, 0, &limit, NULL, 0) != 0 &&
            errno == ETIMEDOUT)
            break;
    weft_child_inherit(false);
    pthread_mutex_unlock(&fork_turn);
}

/* In a child: creates a memfd with a copy of all data in place of the descriptor that the program
 * has closed. */
static bool copy_anew(struct weft_static *mine) {
    mine->fd = weft_memfd_create("weft-static", mine->bytes);
    bool complete = mine->fd >= 0;
    size_t begin, end = 0;
    while (complete && weft_holes_next_piece(&mine->holes, end, mine->bytes, &begin, &end))
        complete = copy_run(mine, (struct run){mine->begin + begin, mine->begin + end});
    return complete && weft_child_copy_from(mine->fd);
}

static void fork_child(void) {
    if ((!weft_descriptor_is_ours(data.fd) && !copy_anew(&data)) || !weft_child_copy())
        _exit(127); /* otherwise the child would write to the parent's data */
    weft_descriptor_close(data.fd);
    data.fd = -1;
    atomic_store(fork_done, 1);
    syscall(SYS_futex, fork_done, FUTEX_WAKE, 1, NULL, NULL, 0);
    pthread_mutex_init(&fork_turn, NULL);
}

static bool watch_forks(void) {
    void *shared =
        mmap(NULL, sizeof *fork_done, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return false;
    fork_done = shared;
    return pthread_atfork(fork_prepare, fork_parent, fork_child) == 0;
}

static void keep_from_children(const struct weft_static *mine) {
    struct weft_child_piece pieces[WEFT_HOLES_MAX + 1];
    unsigned count = 0;
    size_t begin, end = 0;
    _Static_assert(WEFT_HOLES_MAX + 1 <= WEFT_CHILD_PIECES, "");
    while (weft_holes_next_piece(&mine->holes, end, mine->bytes, &begin, &end))
        pieces[count++] = (struct weft_child_piece){mine->begin + begin, mine->begin + end, begin};
    weft_child_copy_later(pieces, count, mine->fd);
}

/* Moves the data if a launcher or the program has announced peers. On failure the data stays in
 * place and is not symmetric; using it as symmetric memory is reported as misuse. */
static void move(void) {
    static bool moved; /* moved, or the attempt failed */
    struct executable e = {0};
    dl_iterate_phdr(take_first, &e);
    if (!data.begin)
        find_data(&data, &e);
    if (moved || !data.begin || !weft_boot_expected() || !watch_forks())
        return;
    moved = true;
    data.fd = weft_memfd_create("weft-static", data.bytes);
    if (data.fd < 0 || !copy_pages(&data, &e) || !map_over(&data)) {
        weft_descriptor_close(data.fd);
        data.fd = -1;
        return;
    }
    keep_from_children(&data);
    weft_crash_repair_children();
}

__attribute__((constructor)) static void move_before_main(void) {
    move();
}

/* With more than one thread, another could write to the data between the copy and the mapping. */
static bool is_single_thread(void) {
    struct stat tasks; /* a directory has two links plus one for each subdirectory */
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3;
}

void weft_static_move_late(void) {
    if (data.fd < 0 && is_single_thread())
        move();
}

const char *weft_static_refusal(const void *p) {
    struct executable e = {0};
    dl_iterate_phdr(take_first, &e);
    const ElfW(Phdr) *h = find_load(&e, p);
    if (!h || !(h->p_flags & PF_W))
        return NULL;
    if (!find_header(&e, PT_INTERP))
        return "in a program linked with -static: pass memory of shmem_malloc, or link with "
               "-static-weft instead";
    if (!links_weft(&e))
        return "where only a library that the program loads is linked with Weft: pass memory of "
               "shmem_malloc, or link the program itself with Weft";
    if (data.fd >= 0 && weft_job.npes > 1 && !weft_segment_is_mapped(&weft_windows.statics))
        return "where PEs run different programs, or a PE closed descriptors before shmem_init "
               "that it had not opened: pass memory of shmem_malloc";
    return NULL;
}
