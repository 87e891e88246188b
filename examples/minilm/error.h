/* SPDX-License-Identifier: BSD-3-Clause */
/* One error text for the whole program. The function that finds a fault says what is wrong and in
 * which file; its callers only pass -1 on, and main prints the text. */
#ifndef MINILM_ERROR_H
#define MINILM_ERROR_H

/* Stores the text and returns -1, so that a function can end with `return fail(...)`. */
int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The text of the last fail(); "" before the first. */
const char *fail_text(void);

#endif
