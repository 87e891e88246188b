/* SPDX-License-Identifier: BSD-3-Clause */
/* A number of bytes as a person reads it: "64 bytes", "32 GiB", "1.50 MiB". A fraction has three
 * digits, so that "1.00 MiB" is about that and "1 MiB" is that. */
#ifndef WEFT_BASE_SIZE_H
#define WEFT_BASE_SIZE_H

#include <stddef.h>

struct weft_size_text {
    char text[24];
};

/* The result serves as an argument of a message: weft_size(bytes).text lives to the end of the
 * call. */
struct weft_size_text weft_size(size_t bytes);

#endif
