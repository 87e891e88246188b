/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that crashes reports the place, and then dies as it would have without the report: of
 * the same signal, with its core file. */
#ifndef WEFT_BASE_CRASH_H
#define WEFT_BASE_CRASH_H

/* Installs handlers for the signals of crashes that have the default action. A program's own
 * handler, a sanitizer's and Python's faulthandler stay, and a handler that is set later replaces
 * this one. Does nothing under sanitizers, with WEFT_BACKTRACE=0, in a privileged program, whose
 * caller must not learn addresses, and when it is called again. In child processes only an access
 * to symmetric memory, which they do not have, is reported. */
void weft_crash_watch(void);

/* Lets a child process that lacks the executable's data copy them at its first access
 * (base/child.h), unless the program handles SIGSEGV itself. */
void weft_crash_repair_children(void);

#endif
