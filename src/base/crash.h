/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that crashes says where, and then dies as it would have: with its core, of its signal.
 */
#ifndef WEFT_BASE_CRASH_H
#define WEFT_BASE_CRASH_H

/* Handles the signals of crashes that nobody handles: a program's own handler, a sanitizer's and
 * Python's faulthandler stay, and one that is set later replaces this. Nothing under sanitizers,
 * with WEFT_BACKTRACE=0, and in a privileged program, whose caller must not learn where things lie;
 * nothing the second time. Of children only an access to symmetric memory, which they do not have,
 * is reported. */
void weft_crash_watch(void);

/* From now on a child process that lacks the executable's data gets a copy at its first access
 * (base/child.h), if the program does not handle SIGSEGV itself. */
void weft_crash_repair_children(void);

#endif
