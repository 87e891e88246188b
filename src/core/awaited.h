/* SPDX-License-Identifier: BSD-3-Clause */
/* Describes what a wait for a user's word waits for, for the lines about long waits: "flag (static,
 * ring+0x4040) is 0, waits for == 1". A wait makes this record only if its condition does not hold
 * at once. */
#ifndef WEFT_CORE_AWAITED_H
#define WEFT_CORE_AWAITED_H

#include "job/ivar.h"
#include "job/wait.h"

/* Waits for element `at` of the set, or for any element (WEFT_AWAITED_ANY). The words may be in GPU
 * memory. */
struct weft_awaited_ivars {
    struct weft_awaited awaited;
    const struct weft_ivars *set;
    size_t at;
};
#define WEFT_AWAITED_ANY SIZE_MAX

/* Writes the text for such a record, given its first member. */
void weft_awaited_write_ivars(const struct weft_awaited *awaited, char *text, size_t bytes);

#define WEFT_AWAITED_IVARS(set, at) \
    &(const struct weft_awaited_ivars){{weft_awaited_write_ivars}, set, at}.awaited

enum { WEFT_AWAITED_OBJECT_BYTES = 112 };

/* Describes an object for the user: a variable by its name, heap memory by its position within its
 * object. */
void weft_awaited_write_object(const void *object, char *text, size_t bytes);

/* Starts watching this PE's waits, each for WEFT_HANG_SECONDS (core/hang.c). */
void weft_hang_watch(void);

#endif
