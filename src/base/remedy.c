/* SPDX-License-Identifier: BSD-3-Clause */
/* An errno says that a limit was reached, but not which. So the text names every limit of this
 * process that the failed call may have reached, with its value. */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/machine.h"
#include "base/size.h"

static const char processes_met[] =
    "; the limit of the system (kernel.pid_max) or of a container (pids.max) on processes is met: "
    "raise it, or start fewer PEs";

/* Returns the soft limit, or UINT64_MAX if there is none. */
static uint64_t limit_of(int resource) {
    struct rlimit limit;
    return getrlimit((__rlimit_resource_t)resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
               ? limit.rlim_cur
               : UINT64_MAX;
}

__attribute__((format(printf, 2, 3))) static void add(struct weft_remedy *remedy,
                                                      const char *format, ...) {
    size_t used = strlen(remedy->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(remedy->text + used, sizeof remedy->text - used, format, arguments);
    va_end(arguments);
}

static void add_number(struct weft_remedy *remedy, int resource, char option) {
    uint64_t limit = limit_of(resource);
    if (limit != UINT64_MAX)
        add(remedy, "; ulimit -%c is %llu: raise it", option, (unsigned long long)limit);
}

static void add_bytes(struct weft_remedy *remedy, int resource, char option, const char *what) {
    uint64_t limit = limit_of(resource);
    if (limit != UINT64_MAX)
        add(remedy, "; the limit on %s is %s: raise it (ulimit -%c)", what, weft_size(limit).text,
            option);
}

/* After mlockall(2) every mapping counts as locked: the kernel refuses one that is larger than the
 * limit. */
static bool mappings_are_locked(void) {
    uint64_t limit = limit_of(RLIMIT_MEMLOCK);
    if (limit > SIZE_MAX / 4)
        return false;
    size_t bytes = (size_t)limit + (size_t)sysconf(_SC_PAGESIZE);
    void *probe = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (probe == MAP_FAILED)
        return errno == EAGAIN;
    munmap(probe, bytes);
    return false;
}

static void add_memory(struct weft_remedy *remedy) {
    if (mappings_are_locked())
        add_bytes(remedy, RLIMIT_MEMLOCK, 'l', "locked memory, which mlockall(2) has asked for,");
    add_bytes(remedy, RLIMIT_AS, 'v', "address space");
    if (!remedy->text[0])
        add(remedy,
            "; the machine, or a memory cgroup, has no more memory, or the process too many "
            "mappings (vm.max_map_count)");
}

static void add_processes(struct weft_remedy *remedy) {
    if (mappings_are_locked())
        add_bytes(remedy, RLIMIT_MEMLOCK, 'l', "locked memory, which mlockall(2) has asked for,");
    else if (limit_of(RLIMIT_NPROC) != UINT64_MAX)
        add(remedy, "; ulimit -u is %llu, and pids.max of a container may be less: raise them",
            (unsigned long long)limit_of(RLIMIT_NPROC));
    else
        add(remedy, "%s", processes_met);
}

struct weft_remedy weft_remedy(int error) {
    struct weft_remedy remedy = {""};
    int kept = errno;
    if (error == -EMFILE)
        add_number(&remedy, RLIMIT_NOFILE, 'n');
    else if (error == -ENFILE)
        add(&remedy, "; the system's limit on open files (fs.file-max) is met");
    else if (error == -EFBIG)
        add_bytes(&remedy, RLIMIT_FSIZE, 'f', "the size of a file");
    else if (error == -ENOMEM)
        add_memory(&remedy);
    else if (error == -EAGAIN)
        add_processes(&remedy);
    else if (error == -EPERM || error == -ENOSYS || error == -EACCES)
        add(&remedy, "; a sandbox (seccomp) or the kernel forbids this system call: allow it");
    errno = kept;
    return remedy;
}
