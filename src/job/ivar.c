/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks the elements of a wait set once. */
#include "job/ivar.h"
#include <stdatomic.h>

static bool counts(const struct weft_ivars *set, size_t i) {
    return !set->status || set->status[i] == 0;
}

bool weft_ivars_met(const struct weft_ivars *set, size_t i) {
    size_t bytes = set->type.bytes;
    const char *bound = (const char *)set->cmp_values + (set->vector ? i * bytes : 0);
    const char *ivar = (const char *)set->ivars + i * bytes;
    return weft_ivar_compare(weft_ivar_key(set->type, ivar), set->cmp,
                             weft_ivar_key(set->type, bound));
}

bool weft_ivars_empty(const struct weft_ivars *set) {
    for (size_t i = 0; i < set->nelems; i++)
        if (counts(set, i))
            return false;
    return true;
}

bool weft_ivars_all(const struct weft_ivars *set) {
    for (size_t i = 0; i < set->nelems; i++)
        if (counts(set, i) && !weft_ivars_met(set, i))
            return false;
    return true;
}

/* Advances by steps of the golden ratio. A program that tests several sets in turn therefore also
 * starts at evenly spread elements in each set; with a plain counter it would not. */
static size_t next_start(size_t nelems) {
    static _Atomic uint32_t turn;
    uint32_t now = atomic_load_explicit(&turn, memory_order_relaxed) + UINT32_C(0x9E3779B9);
    atomic_store_explicit(&turn, now, memory_order_relaxed);
    return now * (nelems >> 32) +
           ((uint64_t)now * (uint32_t)nelems >> 32); /* now * nelems / 2^32 */
}

size_t weft_ivars_any(const struct weft_ivars *set) {
    size_t i = next_start(set->nelems);
    for (size_t seen = 0; seen < set->nelems; seen++) {
        if (counts(set, i) && weft_ivars_met(set, i))
            return i;
        i = i + 1 == set->nelems ? 0 : i + 1;
    }
    return SIZE_MAX;
}

size_t weft_ivars_some(const struct weft_ivars *set, size_t *indices) {
    size_t found = 0;
    for (size_t i = 0; i < set->nelems; i++)
        if (counts(set, i) && weft_ivars_met(set, i))
            indices[found++] = i;
    return found;
}
