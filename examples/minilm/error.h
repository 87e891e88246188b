/* SPDX-License-Identifier: BSD-3-Clause */
/* One error text for the whole program. The function that finds an error describes it and names the
 * file; its callers only return -1, and main prints the text. */
#ifndef MINILM_ERROR_H
#define MINILM_ERROR_H

/* Stores the text and returns -1, so that a function can end with `return fail(...)`. */
int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns the text of the last fail(), or "" before the first. */
const char *fail_text(void);

#endif
