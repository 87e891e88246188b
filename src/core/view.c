/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of words that this processor cannot load directly. */
#include "core/view.h"
#include <stdlib.h>

uint64_t weft_view_slow_key(const struct weft_operations *operations, struct weft_ivar_type type,
                            const void *word) {
    uint64_t seen;
    operations->look(&seen, word, type.bytes);
    return weft_ivar_key(type, &seen);
}

void weft_view_open(struct weft_view *view, const struct weft_ivars *set) {
    *view = (struct weft_view){*set, weft_dispatch_of_memory(set->ivars, NULL), set->ivars, NULL};
    if (!view->operations)
        return;
    size_t bytes = set->nelems * set->type.bytes;
    view->copy = malloc(bytes);
    if (!view->copy)
        weft_job_panic("no memory for a copy of %zu bytes of words of the GPU", bytes);
    view->set.ivars = view->copy;
}

void weft_view_close(struct weft_view *view) {
    free(view->copy);
}

void weft_view_copy(const struct weft_view *view) {
    size_t bytes = view->set.nelems * view->set.type.bytes;
    view->operations->look(view->copy, view->words, bytes);
}
