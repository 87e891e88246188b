/* SPDX-License-Identifier: BSD-3-Clause */
/* UCX does not report its thread, but names it. The loader reads the number of a library's
 * destructors from the library's dynamic section when the process ends, so it reads the number
 * written there. */
#include "ucx/process.h"
#include <dirent.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool is_named(const char *tid, const char *name) {
    char path[64], found[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", tid);
    FILE *file = fopen(path, "re");
    bool named = file && fgets(found, sizeof found, file) && strcmp(found, name) == 0;
    if (file)
        fclose(file);
    return named;
}

unsigned ucx_process_threads(void) {
    DIR *tasks = opendir("/proc/self/task");
    unsigned count = 0;
    for (struct dirent *task; tasks && (task = readdir(tasks)) != NULL;)
        count += is_named(task->d_name, "async\n");
    if (tasks)
        closedir(tasks);
    return count;
}

/* Matches libucp, libucs, libuct and its modules, and libucm. */
static bool is_of_ucx(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strncmp(name, "libuc", 5) == 0 && name[5] && strchr("pstm", name[5]) &&
           (name[6] == '.' || name[6] == '_');
}

/* Returns whether the loader has made the page read-only after relocating the library. */
static bool is_sealed(const struct dl_phdr_info *library, uintptr_t page) {
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[i];
        if (part->p_type == PT_GNU_RELRO &&
            page - library->dlpi_addr - part->p_vaddr < part->p_memsz)
            return true;
    }
    return false;
}

static int destructors_forget(struct dl_phdr_info *library, size_t bytes, void *unused) {
    (void)bytes, (void)unused;
    ElfW(Dyn) *entry = NULL;
    for (int i = 0; i < library->dlpi_phnum && is_of_ucx(library->dlpi_name); i++)
        if (library->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (ElfW(Dyn) *)(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
    while (entry && entry->d_tag != DT_FINI_ARRAYSZ)
        entry = entry->d_tag == DT_NULL ? NULL : entry + 1;
    if (!entry || entry->d_un.d_val == 0)
        return 0;
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t page = (uintptr_t)&entry->d_un & ~(page_bytes - 1);
    if (mprotect((void *)page, page_bytes, PROT_READ | PROT_WRITE) != 0)
        return 0;
    entry->d_un.d_val = 0;
    if (is_sealed(library, page))
        mprotect((void *)page, page_bytes, PROT_READ);
    return 0;
}

void ucx_process_keep(void) {
    dl_iterate_phdr(destructors_forget, NULL);
}
