/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the control page and describes the cause in its abort fields. The page is sealed against
 * resizing, so that no PE can remove the memory of the others. */
#include "boot/control.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/futex.h"
#include "base/log.h"
#include "base/machine.h"
#include "boot/alive.h"
#include "boot/wire.h"

static int memfd_make(size_t bytes) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur)
        return -EFBIG; /* otherwise ftruncate would kill this process with SIGXFSZ */
    int memfd = memfd_create("weft-control", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memfd < 0)
        return -errno;
    if (ftruncate(memfd, (off_t)bytes) == 0 &&
        fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return memfd;
    int code = -errno;
    close(memfd);
    return code;
}

static int page_map(int memfd, size_t bytes, struct weft_control **control) {
    int flags = memfd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, memfd, 0);
    if (page == MAP_FAILED)
        return -errno;
    *control = page;
    return 0;
}

static void page_fill(struct weft_control *control, int npes, int nhosts) {
    for (int pe = 0; pe < npes; pe++)
        weft_alive_init(&control->pe[pe].alive);
    control->magic = WEFT_CONTROL_MAGIC;
    control->layout = WEFT_CONTROL_LAYOUT;
    control->npes = npes;
    control->cores = 1;
    control->nhosts = nhosts;
    atomic_init(&control->abort_pe, -1);
}

int weft_control_create(int npes, int nhosts, struct weft_control **control, int *memfd) {
    size_t bytes = weft_control_bytes(npes, nhosts);
    int file = memfd ? memfd_make(bytes) : -1;
    if (memfd && file < 0)
        return file;
    int error = page_map(file, bytes, control);
    if (error == 0)
        page_fill(*control, npes, nhosts);
    else if (memfd)
        close(file);
    if (error == 0 && memfd)
        *memfd = file;
    return error;
}

static int page_check(const struct weft_control *page, size_t bytes, int npes) {
    if (bytes < sizeof *page || page->magic != WEFT_CONTROL_MAGIC) {
        weft_log("the file received as control page is not a control page");
        return -EINVAL;
    }
    if (page->layout != WEFT_CONTROL_LAYOUT) {
        weft_log("the control page has layout %u, this library needs %u: oshrun and libweft are of "
                 "different versions",
                 page->layout, WEFT_CONTROL_LAYOUT);
        return -EPROTO;
    }
    if (page->npes != npes || bytes < weft_control_bytes(npes, 0)) {
        weft_log("the control page is for %d PEs, and this job has %d", page->npes, npes);
        return -EINVAL;
    }
    size_t room = (bytes - weft_control_bytes(npes, 0)) / sizeof(struct weft_host);
    if (page->nhosts < 1 || (size_t)page->nhosts > room) {
        weft_log("the control page is for %d hosts, and has room for %zu", page->nhosts, room);
        return -EINVAL;
    }
    return 0;
}

int weft_control_map(int fd, int npes, struct weft_control **control) {
    struct stat stat;
    if (fstat(fd, &stat) < 0 || !S_ISREG(stat.st_mode) || stat.st_size == 0) {
        weft_log("descriptor %d is not a control page", fd);
        return -EINVAL;
    }
    struct weft_control *page = NULL;
    size_t bytes = (size_t)stat.st_size;
    int error = page_map(fd, bytes, &page);
    if (error) {
        weft_log("cannot map the control page (mmap): %s%s", strerror(-error),
                 weft_remedy(error).text);
        return error;
    }
    error = page_check(page, bytes, npes);
    if (error == 0)
        *control = page;
    else
        munmap(page, bytes);
    return error;
}

void weft_control_write_hosts(struct weft_control *control, const struct weft_hosts_given *given) {
    control->host = given->here;
    if (given->network)
        control->network = *given->network;
    for (int pe = 0; pe < given->npes; pe++)
        control->pe[pe].host = given->host_of[pe];
    memcpy(weft_control_hosts(control, given->npes), given->host,
           (size_t)given->nhosts * sizeof *given->host);
}

int weft_control_read_hosts(struct weft_control *control, int npes) {
    struct weft_network network = control->network;
    struct weft_hosts_given given = {.npes = npes,
                                     .nhosts = control->nhosts,
                                     .here = control->host,
                                     .host = weft_control_hosts(control, npes),
                                     .network = &network};
    if (given.nhosts == 1)
        return 0;
    int32_t *host_of = calloc((size_t)npes, sizeof *host_of);
    for (int pe = 0; host_of && pe < npes; pe++)
        host_of[pe] = control->pe[pe].host;
    given.host_of = host_of;
    int error = host_of ? weft_hosts_set(&given) : -ENOMEM;
    free(host_of);
    if (error)
        weft_log("cannot keep the %d hosts of the control page: %s%s", given.nhosts,
                 strerror(-error), weft_remedy(error).text);
    return error;
}

int weft_control_find_gone(const struct weft_control *control, int npes,
                           const struct weft_wire_members *members,
                           const struct weft_wire_members *gave) {
    uint32_t departures = UINT32_MAX;
    for (int pe = 0; pe < npes; pe++) {
        if (!weft_wire_members_has(gave, pe))
            continue;
        uint32_t its = atomic_load(&control->pe[pe].departures);
        departures = its < departures ? its : departures;
    }
    for (int pe = 0; pe < npes; pe++) {
        const struct weft_control_pe *it = &control->pe[pe];
        if (weft_wire_members_has(members, pe) && !weft_wire_members_has(gave, pe) &&
            (atomic_load(&it->departures) > departures || atomic_load(&it->state) == WEFT_PE_LEFT))
            return pe;
    }
    return -1;
}

/* A PE that is killed after it has set abort_claimed would leave the abort word unwritten. So the
 * second PE waits a moment and then writes it. The word is written last, so that a reader of it
 * sees the other fields. */
void weft_control_abort(struct weft_control *control, const struct weft_cause *cause) {
    if (atomic_exchange(&control->abort_claimed, 1) != 0)
        weft_clock_sleep_ms(1);
    if (weft_control_aborted(control))
        return;
    atomic_store(&control->abort_pe, cause->pe);
    atomic_store(&control->abort_detail, cause->detail);
    atomic_store(&control->abort, (uint32_t)cause->kind);
    weft_futex_wake(&control->abort, WEFT_FUTEX_ALL);
}

struct weft_cause weft_control_cause(const struct weft_control *control, int npes) {
    struct weft_control *page =
        (struct weft_control *)control; /* atomic loads need a non-const pointer */
    struct weft_cause cause = {.kind = (enum weft_end_kind)atomic_load(&page->abort)};
    cause.pe = atomic_load(&page->abort_pe);
    cause.detail = atomic_load(&page->abort_detail);
    if (cause.pe < 0 || cause.pe >= npes) {
        cause.pe = -1;
    } else {
        cause.pid = atomic_load(&page->pe[cause.pe].pid);
        cause.state = (enum weft_pe_state)atomic_load(&page->pe[cause.pe].state);
    }
    return cause;
}

static const char *state_text(enum weft_pe_state state) {
    switch (state) {
    case WEFT_PE_ABSENT:
        return "before shmem_init";
    case WEFT_PE_LEFT:
        return "while others wait for it";
    default: /* joined, or overwritten */
        return "without shmem_finalize";
    }
}

/* Writes "by signal 9 (Killed)". */
static void signal_text(int number, char *text, size_t bytes) {
    const char *name = number > 0 && number < 65 ? strsignal(number) : "unknown";
    snprintf(text, bytes, "by signal %d (%s)", number, name);
}

/* Writes the words that follow the PE's name: how it ended. */
static void pe_end_text(const struct weft_cause *cause, char *text, size_t bytes) {
    char part[96];
    signal_text(cause->detail, part, sizeof part);
    switch (cause->kind) {
    case WEFT_ABORT_DIED:
        if (cause->detail)
            snprintf(text, bytes, "was killed %s", part);
        else
            snprintf(text, bytes, "%s",
                     cause->state == WEFT_PE_LEFT ? "ended while others wait for it" : "died");
        break;
    case WEFT_ABORT_EXITED:
        if (cause->state == WEFT_PE_ABSENT && cause->detail == 0)
            snprintf(text, bytes, "ended well without ever calling Weft's shmem_init");
        else
            snprintf(text, bytes, "exited with status %d %s", cause->detail,
                     state_text(cause->state));
        break;
    case WEFT_ABORT_GLOBAL_EXIT:
        snprintf(text, bytes, "called shmem_global_exit(%d)", cause->detail);
        break;
    case WEFT_ABORT_LEFT:
        snprintf(text, bytes, "exited with status %d without shmem_finalize", cause->detail);
        break;
    case WEFT_ABORT_CUT:
        weft_boot_pes_text(cause->detail, part, sizeof part);
        snprintf(text, bytes, "cannot reach host %s (%s), although it is alive",
                 weft_boot_host_name(cause->detail), part);
        break;
    case WEFT_ABORT_EXECED:
        snprintf(text, bytes, "became another program without shmem_finalize");
        break;
    default:
        snprintf(text, bytes, "ended the job after an error");
    }
}

/* Writes "PE 3 (pid 4711 on b)". The pid of a PE on another host may be unknown. */
static void pe_name_text(const struct weft_cause *cause, char *text, size_t bytes) {
    struct weft_on on = weft_boot_on(cause->pe);
    if (cause->pid > 0)
        snprintf(text, bytes, "PE %d (pid %d%s)", cause->pe, cause->pid, on.text);
    else
        snprintf(text, bytes, "PE %d%s", cause->pe, on.text);
}

void weft_cause_text(const struct weft_cause *cause, char *text, size_t bytes) {
    char what[192], name[128];
    if (cause->kind == WEFT_ABORT_NONE) {
        text[0] = '\0';
    } else if (cause->kind == WEFT_ABORT_HOST) {
        weft_boot_pes_text(cause->detail, what, sizeof what);
        snprintf(text, bytes, "host %s (%s) does not answer", weft_boot_host_name(cause->detail),
                 what);
    } else if (cause->kind == WEFT_ABORT_FRONT) {
        snprintf(text, bytes, "the launcher on the host that started the job does not answer");
    } else if (cause->kind == WEFT_ABORT_LAUNCHER) {
        signal_text(cause->detail, what, sizeof what);
        snprintf(text, bytes, "the launcher was told to end %s", what);
    } else if (cause->kind == WEFT_ABORT_TIMEOUT) {
        snprintf(text, bytes, "the job has had its %d s (--timeout)", cause->detail);
    } else if (cause->pe < 0) {
        snprintf(text, bytes, "a PE has overwritten the job's control page");
    } else {
        pe_end_text(cause, what, sizeof what);
        pe_name_text(cause, name, sizeof name);
        snprintf(text, bytes, "%s %s", name, what);
    }
}
