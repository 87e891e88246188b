/* SPDX-License-Identifier: BSD-3-Clause */
/* A program with more rights than the user who started it (set-user-ID, set-group-ID, capabilities
 * of its file) must not be steered by what that user has left to it: it joins no job that is
 * inherited or announced (boot/source_find.c), and reads no variable that names a file, a library
 * or a program. */
#ifndef WEFT_BASE_PRIVILEGE_H
#define WEFT_BASE_PRIVILEGE_H

#include <stdbool.h>

/* Returns true if this process is such a program, according to the kernel (AT_SECURE). */
bool weft_privileged(void);

/* Opens a library that is installed beside Weft's own, or else wherever the loader finds it.
 * Returns NULL on failure; dlerror has the text. A privileged program that contains Weft's code
 * uses the loader's places only: its own path (argv[0]) comes from the caller. */
void *weft_library_open_beside(const char *name);

#endif
