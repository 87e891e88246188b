/* SPDX-License-Identifier: BSD-3-Clause */
/* The C library itself removes LD_LIBRARY_PATH and similar variables in a privileged program. This
 * file does so, before main, for the variables of Weft and of the libraries that it opens. */
#include "base/privilege.h"
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include "base/env.h"

bool weft_privileged(void) {
    return getauxval(AT_SECURE) != 0;
}

__attribute__((constructor(101))) static void forget_files(void) {
    static const char *const names[] = {
#define NAME(name) name,
        WEFT_ENV_FILES(NAME)
#undef NAME
    };
    for (size_t i = 0; weft_privileged() && i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

/* Stores the folder of this code with its slash, or "" if it is not known for certain. */
static void find_folder(char *folder, size_t bytes) {
    static const char here;
    Dl_info self;
    struct link_map *map = NULL;
    folder[0] = '\0';
    if (!dladdr1(&here, &self, (void **)&map, RTLD_DL_LINKMAP))
        return;
    bool contained = !map || !map->l_name[0]; /* Weft is part of the executable */
    const char *slash = self.dli_fname ? strrchr(self.dli_fname, '/') : NULL;
    if (slash && !(contained && weft_privileged()))
        snprintf(folder, bytes, "%.*s", (int)(slash + 1 - self.dli_fname), self.dli_fname);
}

void *weft_library_open_beside(const char *name) {
    enum { PATH_BYTES = 4096 };
    char folder[PATH_BYTES], path[PATH_BYTES + 64];
    find_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s%s", folder, name);
    void *library = folder[0] ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    return library ? library : dlopen(name, RTLD_NOW | RTLD_LOCAL);
}
