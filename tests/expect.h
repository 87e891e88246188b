/* SPDX-License-Identifier: BSD-3-Clause */
/* Expectations of the calls of weft.h, which return 0 or a negative errno. */
#ifndef TESTS_EXPECT_H
#define TESTS_EXPECT_H

#include <string.h>
#include <weft.h>
#include "tap.h"

static inline void expect_done(int rc, const char *what) {
    EXPECT(rc == 0, "%s: %d: %s", what, rc, weft_last_error());
}

/* The error, and a text in its message. */
static inline void expect_error(int rc, int code, const char *text) {
    EXPECT(rc == code && strstr(weft_last_error(), text), "%d, \"%s\"; expected %d, \"%s\"", rc,
           weft_last_error(), code, text);
}

#endif
