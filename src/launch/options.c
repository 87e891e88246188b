/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports mistakes on the command line, and reads numbers. */
#include "launch/options.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int weft_options_error(const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "oshrun: %s; see oshrun --help\n", text);
    return WEFT_STATUS_USAGE;
}

int weft_options_number(const char *text, int least, int most) {
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    bool plain = *text >= '0' && *text <= '9' && !*end && !errno;
    return plain && number >= least && number <= most ? (int)number : -1;
}
