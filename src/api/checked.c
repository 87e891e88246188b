/* SPDX-License-Identifier: BSD-3-Clause */
/* The checks of checked mode, and their lines. */
#include "api/checked.h"
#include <stdio.h>
#include "base/variable.h"
#include "core/arena.h"
#include "core/dispatch.h"
#include "core/heap.h"

/* True if p lies in a heap; *begin receives the object there, NULL when there is none. */
static bool find_object(const void *p, size_t bytes, void **begin, size_t *object_bytes) {
    const struct weft_heap *heap = weft_heap_of(p);
    *begin = NULL;
    if (!weft_window_holds(heap->window, p, bytes))
        return false;
    weft_arena_find(heap->arena, p, begin, object_bytes);
    return true;
}

/* What a call reads or writes from `p` on. */
struct argument_range {
    const char *argument; /* that gives it */
    const void *p;
    size_t bytes;
    int pe; /* whose copy of it the call accesses; -1: no other PE's */
};

static _Noreturn void panic_leaves(const struct argument_range *range, const char *object,
                                   size_t object_bytes, size_t offset) {
    char target[24] = "";
    if (range->pe >= 0)
        snprintf(target, sizeof target, " (for PE %d)", range->pe);
    weft_job_panic("argument %s is %p, %zu bytes into %s of %zu bytes: an access of %zu bytes "
                   "leaves it%s: at most %zu bytes fit",
                   range->argument, range->p, offset, object, object_bytes, range->bytes, target,
                   offset < object_bytes ? object_bytes - offset : 0);
}

static void check_variable(const struct argument_range *range) {
    enum { NAME_BYTES = 96 };
    struct weft_variable variable;
    char name[NAME_BYTES], object[NAME_BYTES + sizeof "variable "];
    if (!weft_variable_find(range->p, &variable))
        return;
    size_t offset = (uintptr_t)range->p - variable.begin;
    if (range->bytes <= variable.bytes - offset)
        return;
    weft_variable_name(&variable, name, sizeof name);
    snprintf(object, sizeof object, "variable %s", name);
    panic_leaves(range, object, variable.bytes, offset);
}

static void check_range(const struct argument_range *range) {
    void *begin;
    size_t object_bytes = 0;
    if (!find_object(range->p, range->bytes, &begin, &object_bytes)) {
        check_variable(range);
        return;
    }
    if (!begin)
        weft_job_panic("argument %s is %p, in memory of the symmetric heap that is not allocated: "
                       "it was freed, or never given out",
                       range->argument, range->p);
    size_t offset = (size_t)((const char *)range->p - (const char *)begin);
    if (offset > object_bytes || range->bytes > object_bytes - offset)
        panic_leaves(range, "an object", object_bytes, offset);
}

void weft_checked_object(const char *argument, const void *p, size_t bytes) {
    check_range(&(struct argument_range){argument, p, bytes, -1});
}

static void check_alignment(const char *argument, const void *p, size_t alignment) {
    if ((uintptr_t)p % alignment != 0)
        weft_job_panic("argument %s is %p, not aligned to %zu bytes as its elements are: align it, "
                       "or use the routine's mem form",
                       argument, p, alignment);
}

void weft_checked_disjoint(const char *a_name, const void *a, size_t a_bytes, const char *b_name,
                           const void *b, size_t b_bytes) {
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    if (a_bytes != 0 && b_bytes != 0 && (x < y ? y - x < a_bytes : x - y < b_bytes))
        weft_job_panic(
            "arguments %s (%p, %zu bytes) and %s (%p, %zu bytes) overlap: pass disjoint objects",
            a_name, a, a_bytes, b_name, b, b_bytes);
}

void weft_checked_access(const struct weft_access *access) {
    weft_entry_check(weft_current_call);
    if (access->symmetric_bytes == 0)
        return;
    if (!weft_dispatch_symmetric(access->symmetric, access->symmetric_bytes, access->pe))
        weft_misuse_access(weft_current_call, access->symmetric_name, access->symmetric,
                           access->symmetric_bytes, access->pe);
    check_range(&(struct argument_range){access->symmetric_name, access->symmetric,
                                         access->symmetric_bytes, access->pe});
    check_alignment(access->symmetric_name, access->symmetric, access->alignment);
    if (!access->local_name)
        return;
    weft_checked_object(access->local_name, access->local, access->local_bytes);
    check_alignment(access->local_name, access->local, access->alignment);
    if (!access->strided && access->pe == weft_job.pe)
        weft_checked_disjoint(access->symmetric_name, access->symmetric, access->symmetric_bytes,
                              access->local_name, access->local, access->local_bytes);
}

void weft_checked_group(const struct weft_group *group, const struct weft_same *arguments) {
    if (group->team)
        weft_consistency_check(group->team, arguments);
    else
        group->set->check(group, arguments);
}
