/* SPDX-License-Identifier: BSD-3-Clause */
/* How many names a folder has: of /proc/self/fd, how many descriptors are open, and some more. */
#ifndef TESTS_ENTRIES_H
#define TESTS_ENTRIES_H

#include <dirent.h>

static inline int entries_of(const char *path) {
    DIR *folder = opendir(path);
    int count = 0;
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

#endif
