/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection to a process manager that speaks PMI, version 1 or 2: the socket that it left us
 * (PMI_FD) or the port where it listens (PMI_PORT, PMI_ID), and one question and answer at a time.
 *
 * Version 1 is lines of "key=value" with blanks between; version 2 begins like it and goes on with
 * messages of "key=value;", each behind its length in six digits. The first key is always cmd.
 * Sources: MPICH's documents "PMI-2 Wire Protocol" and "PMI v2 Design Thoughts". */
#ifndef WEFT_BOOT_PMI_H
#define WEFT_BOOT_PMI_H

#include <stdbool.h>
#include <stddef.h>

enum { WEFT_PMI_MESSAGE_MAX = 2048 };

/* The number of PEs that PMI's variables speak of, 0 without such variables. */
int weft_pmi_promises(void);

/* Connects and agrees on the version; *pe and *npes are -1 where they are not known yet. 0 or
 * -errno, logged. */
int weft_pmi_connect(int version, int *pe, int *npes);

/* Sends `question`, without its line end or length, and receives the answer, whose cmd has to be
 * `expected` and whose rc, if any, 0. 0 or -errno, logged. */
int weft_pmi_ask(const char *question, const char *expected, char answer[WEFT_PMI_MESSAGE_MAX]);

/* The value of a key in an answer; false when it has none or it does not fit. */
bool weft_pmi_value(const char *answer, const char *key, char *value, size_t bytes);

/* Says good-bye with `question`, to which nobody needs an answer, and closes. */
void weft_pmi_close(const char *question);

#endif
