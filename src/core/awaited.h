/* SPDX-License-Identifier: BSD-3-Clause */
/* Says in words what a wait for the user's words waits for, for the messages about waits that last:
 * "flag (static, ring+0x4040) is 0, waits for == 1". A wait makes the record only once it waits. */
#ifndef WEFT_CORE_AWAITED_H
#define WEFT_CORE_AWAITED_H

#include "job/ivar.h"
#include "job/wait.h"

/* Element `at` of the set, or WEFT_AWAITED_ANY of them. The set's words may be a GPU's. */
struct weft_awaited_ivars {
    struct weft_awaited awaited;
    const struct weft_ivars *set;
    size_t at;
};
#define WEFT_AWAITED_ANY SIZE_MAX

/* Writes the text for such a record: the first member of it. */
void weft_awaited_write_ivars(const struct weft_awaited *awaited, char *text, size_t bytes);

#define WEFT_AWAITED_IVARS(set, at) \
    &(const struct weft_awaited_ivars){{weft_awaited_write_ivars}, set, at}.awaited

enum { WEFT_AWAITED_OBJECT_BYTES = 112 };

/* Writes how a person knows an object: a variable by its name, what is in the heap by where its
 * object begins. */
void weft_awaited_write_object(const void *object, char *text, size_t bytes);

#endif
