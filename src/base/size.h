/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes: rounded to pages of this machine and to powers of two, and as a person reads them. */
#ifndef WEFT_BASE_SIZE_H
#define WEFT_BASE_SIZE_H

#include <stddef.h>
#include <unistd.h>

static inline size_t weft_page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* The begin of the page that an address lies in, or the whole pages that a size has room for. */
static inline size_t weft_page_down(size_t at) {
    return at & ~(weft_page_bytes() - 1);
}

/* The first begin of a page at an address or behind it, or the whole pages that hold a size. */
static inline size_t weft_page_up(size_t at) {
    return weft_page_down(at + weft_page_bytes() - 1);
}

/* The smallest power of two that is not less; 1 for 0. */
static inline size_t weft_power_of_two_up(size_t n) {
    size_t power = 1;
    while (power < n)
        power *= 2;
    return power;
}

/* A number of bytes as text: "64 bytes", "32 GiB", "1.50 MiB". A fraction has three digits, so that
 * "1.00 MiB" is about that and "1 MiB" is that. */
struct weft_size_text {
    char text[24];
};

/* The result serves as an argument of a message: weft_size(bytes).text lives to the end of the
 * call. */
struct weft_size_text weft_size(size_t bytes);

#endif
