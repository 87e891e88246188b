/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to a person: lines on stderr, and the text that belongs to a negative errno. The first
 * function that knows of a failure reports it; callers only pass the code on. */
#ifndef WEFT_BASE_LOG_H
#define WEFT_BASE_LOG_H

#include <stdarg.h>
#include <stddef.h>
#include "base/current_call.h"

/* Names the PE that later lines begin with: "weft: PE 3 (pid 4711): ...". -1 names none: "weft:
 * ...". */
void weft_log_set_pe(int pe);

/* Has them name its host, too: "weft: PE 3 (pid 4711 on b): ...". The name must stay; "" or NULL:
 * none. */
void weft_log_set_host(const char *name);

/* Writes one line with one write(2), so that lines of several PEs do not mix. The line tells of an
 * error, so a handler is asked first; it may take the line, without the part that names the PE. */
void weft_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
typedef int weft_log_handler(const char *line);
void weft_log_set_handler(weft_log_handler *handler);

/* Writes a line that tells of no error, such as that a PE waits; no handler is asked. */
void weft_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Makes text of others fit for a line of ours: ends it within `bytes`, and replaces what would
 * begin a line of its own, what a terminal obeys, and what is no UTF-8, by question marks. */
void weft_log_make_printable(char *text, size_t bytes);

/* Keeps "CALL: text", of the call that this thread is in, for its weft_last_error(), and returns
 * `code`, a negative errno. */
int weft_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same of a text that stands without a call, or has its name elsewhere. */
int weft_fail_bare(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The text that was kept last; "" when there was none. */
const char *weft_fail_text(void);

#endif
