/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole text files in memory. */
#ifndef MINILM_FILE_H
#define MINILM_FILE_H

#include <stddef.h>

/* Returns the file's bytes with a terminating 0, or NULL with fail_text(). The caller frees them.
 */
char *file_read(const char *path, size_t *bytes);

#endif
