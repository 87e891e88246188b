/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes: rounded to steps, to this machine's pages and to powers of two, and written for a person.
 */
#ifndef WEFT_BASE_SIZE_H
#define WEFT_BASE_SIZE_H

#include <stddef.h>
#include <unistd.h>

/* Returns n / step, rounded up. */
static inline size_t weft_steps_up(size_t n, size_t step) {
    return (n + step - 1) / step;
}

/* Rounds up to a multiple of `step`. */
static inline size_t weft_round_up(size_t n, size_t step) {
    return weft_steps_up(n, step) * step;
}

static inline size_t weft_page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Rounds an address or a size down to a multiple of the page size. */
static inline size_t weft_page_down(size_t at) {
    return at & ~(weft_page_bytes() - 1);
}

/* Rounds an address or a size up to a multiple of the page size. */
static inline size_t weft_page_up(size_t at) {
    return weft_page_down(at + weft_page_bytes() - 1);
}

/* Returns the smallest power of two that is at least `n`; 1 for 0. */
static inline size_t weft_power_of_two_up(size_t n) {
    size_t power = 1;
    while (power < n)
        power *= 2;
    return power;
}

/* A number of bytes as text: "64 bytes", "32 GiB", "1.50 MiB". Units are powers of 1024. A fraction
 * has three digits, so "1.00 MiB" is approximate and "1 MiB" is exact. */
struct weft_size_text {
    char text[24];
};

/* Returns a text for use as a function argument: weft_size(bytes).text lives until the end of the
 * call. */
struct weft_size_text weft_size(size_t bytes);

#endif
