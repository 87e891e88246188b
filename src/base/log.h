/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to a person: lines on stderr, and the text that belongs to a negative errno. The first
 * function that detects a failure reports it; callers only pass the code on. */
#ifndef WEFT_BASE_LOG_H
#define WEFT_BASE_LOG_H

#include <stdarg.h>
#include <stddef.h>
#include <sys/types.h>
#include "base/current_call.h"

/* Sets the PE that later lines begin with: "weft: PE 3 (pid 4711): ...". With -1 lines name no PE:
 * "weft: ...". */
void weft_log_set_pe(int pe);

/* Sets the pid that later lines contain, in a child of the PE. */
void weft_log_set_pid(pid_t pid);

/* Sets the host name that later lines contain: "weft: PE 3 (pid 4711 on b): ...". The string must
 * stay valid; "" or NULL removes it. */
void weft_log_set_host(const char *name);

/* Writes a line about an error with one write(2), so that lines of several PEs do not mix. A
 * handler, if set, gets the line first, without the prefix that names the PE, and consumes it by
 * returning nonzero. */
void weft_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
typedef int weft_log_handler(const char *line);
void weft_log_set_handler(weft_log_handler *handler);

/* Writes a line that reports no error, for example that a PE waits. No handler is called. */
void weft_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Makes text from outside safe to print in a line: ends it within `bytes`, and replaces line
 * breaks, characters that control a terminal, and invalid UTF-8 by question marks. */
void weft_log_make_printable(char *text, size_t bytes);

/* Keeps "CALL: text" for weft_last_error() of this thread, where CALL is the call that the thread
 * is in, and returns `code`, a negative errno. */
int weft_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Like weft_fail, for a text that belongs to no call or contains the call's name already. */
int weft_fail_bare(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns the text that was kept last, or "" if there was none. */
const char *weft_fail_text(void);

#endif
