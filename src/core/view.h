/* SPDX-License-Identifier: BSD-3-Clause */
/* Access to this PE's own words for waits and tests, in any kind of memory. Words that the
 * processor does not load directly are read through a copy, renewed each time. */
#ifndef WEFT_CORE_VIEW_H
#define WEFT_CORE_VIEW_H

#include <stdint.h>
#include "job/ivar.h"
#include "core/dispatch.h"
#include "core/misuse.h"

/* Returns the key of one word. */
WEFT_COLD uint64_t weft_view_slow_key(const struct weft_operations *operations,
                                      struct weft_ivar_type type, const void *word);
static inline uint64_t weft_view_key(struct weft_ivar_type type, const void *word) {
    const struct weft_operations *operations = weft_dispatch_of_memory(word, NULL);
    return __builtin_expect(operations != NULL, 0) ? weft_view_slow_key(operations, type, word)
                                                   : weft_ivar_key(type, word);
}

/* A set of words that the processor can load: the words themselves, or a copy of them. */
struct weft_view {
    struct weft_ivars set;
    const struct weft_operations *operations; /* NULL if the set has the words themselves */
    const void *words;
    void *copy;
};

void weft_view_open(struct weft_view *view, const struct weft_ivars *set);
void weft_view_close(struct weft_view *view);

/* Returns the set with its current values. */
WEFT_COLD void weft_view_copy(const struct weft_view *view);
static inline const struct weft_ivars *weft_view_look(const struct weft_view *view) {
    if (view->operations)
        weft_view_copy(view);
    return &view->set;
}

#endif
