/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's error text. */
#include "error.h"
#include <stdarg.h>
#include <stdio.h>

static char text[512];

int fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return -1;
}

const char *fail_text(void) {
    return text;
}
