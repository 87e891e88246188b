/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/awaited.h"
#include <stdio.h>
#include "base/place.h"
#include "base/symbol.h"
#include "core/arena.h"
#include "core/heap.h"
#include "core/view.h"

static bool write_static(const void *object, char *text, size_t bytes) {
    struct weft_symbol symbol;
    char offset[32] = "";
    if (!weft_place_wanted() || !weft_symbol_in_program(object) ||
        !weft_symbol_find(object, WEFT_SYMBOL_OBJECT, &symbol))
        return false;
    size_t inside = *symbol.name ? (uintptr_t)object - symbol.begin : 0;
    if (inside)
        snprintf(offset, sizeof offset, "+%zu", inside);
    if (*symbol.name)
        snprintf(text, bytes, "%s%s (static, %s+0x%zx)", symbol.name, offset, symbol.module,
                 (uintptr_t)object - symbol.base);
    else
        snprintf(text, bytes, "%p (static, %s+0x%zx)", object, symbol.module,
                 (uintptr_t)object - symbol.base);
    return true;
}

void weft_awaited_write_object(const void *object, char *text, size_t bytes) {
    const struct weft_heap *heap = weft_heap_of(object);
    void *begin;
    size_t object_bytes;
    if (weft_window_holds(heap->window, object, 1) &&
        weft_arena_find(heap->arena, object, &begin, &object_bytes))
        snprintf(text, bytes, "%p (heap, byte %zu of an object of %zu)", object,
                 (size_t)((const char *)object - (const char *)begin), object_bytes);
    else if (!write_static(object, text, bytes))
        snprintf(text, bytes, "%p", object);
}

/* Writes the number that a key stands for (job/ivar.h). */
static void write_number(struct weft_ivar_type type, uint64_t key, char *text, size_t bytes) {
    int unused = 64 - 8 * (int)type.bytes;
    if (type.is_signed)
        snprintf(text, bytes, "%lld", (long long)(int64_t)(key ^ UINT64_C(1) << 63) >> unused);
    else
        snprintf(text, bytes, "%llu", (unsigned long long)(key >> unused));
}

static const char *sign_of(int cmp) {
    switch (cmp) {
    case SHMEM_CMP_EQ:
        return "==";
    case SHMEM_CMP_NE:
        return "!=";
    case SHMEM_CMP_GT:
        return ">";
    case SHMEM_CMP_GE:
        return ">=";
    case SHMEM_CMP_LT:
        return "<";
    default:
        return "<=";
    }
}

static uint64_t bound_of(const struct weft_ivars *set, size_t at) {
    size_t index = set->vector ? at : 0;
    return weft_ivar_key(set->type, (const char *)set->cmp_values + index * set->type.bytes);
}

static void write_any(const struct weft_ivars *set, const char *object, char *text, size_t bytes) {
    char bound[32];
    write_number(set->type, bound_of(set, 0), bound, sizeof bound);
    if (set->vector)
        snprintf(text, bytes, "no element of the %zu at %s meets its condition", set->nelems,
                 object);
    else
        snprintf(text, bytes, "no element of the %zu at %s is %s %s", set->nelems, object,
                 sign_of(set->cmp), bound);
}

void weft_awaited_write_ivars(const struct weft_awaited *awaited, char *text, size_t bytes) {
    const struct weft_awaited_ivars *ivars = (const struct weft_awaited_ivars *)awaited;
    const struct weft_ivars *set = ivars->set;
    size_t at = ivars->at == WEFT_AWAITED_ANY ? 0 : ivars->at;
    const void *word = (const char *)set->ivars + at * set->type.bytes;
    char object[WEFT_AWAITED_OBJECT_BYTES], value[32], bound[32];
    weft_awaited_write_object(word, object, sizeof object);
    if (ivars->at == WEFT_AWAITED_ANY && set->nelems > 1) {
        write_any(set, object, text, bytes);
        return;
    }
    write_number(set->type, weft_view_key(set->type, word), value, sizeof value);
    write_number(set->type, bound_of(set, at), bound, sizeof bound);
    snprintf(text, bytes, "%s is %s, waits for %s %s", object, value, sign_of(set->cmp), bound);
}
