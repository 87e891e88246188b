/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/failure.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/machine.h"

static const char *host = "";

void weft_failure_set_host(const char *name) {
    host = name;
}

int weft_failure_say(int error, const char *format, ...) {
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    fprintf(stderr, "oshrun: cannot start%s%s: %s: %s%s\n", *host ? " on host " : "", host, what,
            strerror(-error), weft_remedy(error).text);
    return error;
}
