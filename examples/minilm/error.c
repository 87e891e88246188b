/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's error text. */
#include "error.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char last[512];

int fail(const char *format, ...) {
    char fresh[sizeof last]; /* an argument may be the old text */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fresh, sizeof fresh, format, arguments);
    va_end(arguments);
    strcpy(last, fresh);
    return -1;
}

const char *fail_text(void) {
    return last;
}
