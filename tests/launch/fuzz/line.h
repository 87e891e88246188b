/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections without a network, in place of boot/tls.c: what is read is what the fuzzer says, and
 * what is written is lost. They have numbers. */
#ifndef TESTS_LAUNCH_FUZZ_LINE_H
#define TESTS_LAUNCH_FUZZ_LINE_H

#include <stddef.h>
#include "boot/tls.h"

enum { LINES_MAX = 8 };

/* A fresh one in this place, whose reader closes it. */
struct weft_tls *line_open(int line);

/* Lost on one that is closed. */
void line_say(int line, const void *bytes, size_t count);
void line_end(int line);

#endif
