/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that may do more than whoever started it (set-user-ID, set-group-ID, capabilities of
 * its file) must not be steered by what that user has left to it: it joins no job that is inherited
 * or announced (boot/source.c), and reads no variable that names a file, a library or a program. */
#ifndef WEFT_BASE_PRIVILEGE_H
#define WEFT_BASE_PRIVILEGE_H

#include <stdbool.h>

/* True if this process is such a program, which the kernel says (AT_SECURE). */
bool weft_privileged(void);

/* Opens a library that is installed beside Weft's own, and otherwise where the loader looks. NULL,
 * with dlerror's text. In a privileged program that contains Weft's code there is no "beside": what
 * it is called there (argv[0]) is the caller's word. */
void *weft_library_open_beside(const char *name);

#endif
