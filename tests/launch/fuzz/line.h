/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections without a network, in place of boot/tls.c: a read returns what the fuzzer has sent,
 * and writes are dropped. Connections are numbered. */
#ifndef TESTS_LAUNCH_FUZZ_LINE_H
#define TESTS_LAUNCH_FUZZ_LINE_H

#include <stddef.h>
#include "boot/tls.h"

enum { LINES_MAX = 8 };

/* Opens a new connection with this number. Its reader closes it. */
struct weft_tls *line_open(int line);

/* Sends bytes; dropped if the connection is closed. */
void line_say(int line, const void *bytes, size_t count);
void line_end(int line);

#endif
