/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole text files in memory. */
#ifndef MINILM_FILE_H
#define MINILM_FILE_H

#include <stddef.h>

/* The file's bytes with a terminating 0, to be freed by the caller; NULL with fail_text(). */
char *file_read(const char *path, size_t *bytes);

#endif
