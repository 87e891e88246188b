/* SPDX-License-Identifier: BSD-3-Clause */
/* The checks of checked mode, and their error lines. */
#include "api/checked.h"
#include <stdio.h>
#include "base/variable.h"
#include "core/arena.h"
#include "core/dispatch.h"
#include "core/heap.h"

/* Returns true if p lies in a heap; *begin receives the object there, or NULL if there is none. */
static bool find_object(const void *p, size_t bytes, void **begin, size_t *object_bytes) {
    const struct weft_heap *heap = weft_heap_of(p);
    *begin = NULL;
    if (!weft_window_holds(heap->window, p, bytes))
        return false;
    weft_arena_find(heap->arena, p, begin, object_bytes);
    return true;
}

/* The memory that a call reads or writes through one argument. */
struct argument_range {
    const char *argument; /* the argument's name */
    const void *p;
    size_t bytes;
    int pe; /* the PE whose memory the call accesses; -1: this PE only */
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
                       "it was freed, or never allocated",
                       range->argument, range->p);
    size_t offset = (size_t)((const char *)range->p - (const char *)begin);
    if (offset > object_bytes || range->bytes > object_bytes - offset)
        panic_leaves(range, "an object", object_bytes, offset);
}

void weft_checked_object(struct weft_argument argument) {
    check_range(&(struct argument_range){argument.name, argument.p, argument.bytes, -1});
}

static void check_alignment(const char *argument, const void *p, size_t alignment) {
    if ((uintptr_t)p % alignment != 0)
        weft_job_panic("argument %s is %p, not aligned to %zu bytes as its elements are: align it, "
                       "or use the routine's mem form",
                       argument, p, alignment);
}

void weft_checked_disjoint(struct weft_argument a, struct weft_argument b) {
    uintptr_t x = (uintptr_t)a.p, y = (uintptr_t)b.p;
    if (a.bytes != 0 && b.bytes != 0 && (x < y ? y - x < a.bytes : x - y < b.bytes))
        weft_job_panic(
            "arguments %s (%p, %zu bytes) and %s (%p, %zu bytes) overlap: pass disjoint objects",
            a.name, a.p, a.bytes, b.name, b.p, b.bytes);
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
    struct weft_argument local = {access->local_name, access->local, access->local_bytes};
    weft_checked_object(local);
    check_alignment(access->local_name, access->local, access->alignment);
    if (!access->strided && access->pe == weft_job.pe)
        weft_checked_disjoint((struct weft_argument){access->symmetric_name, access->symmetric,
                                                     access->symmetric_bytes},
                              local);
}

void weft_checked_group(const struct weft_group *group, const struct weft_same *arguments) {
    if (group->team)
        weft_consistency_check(group->team, arguments);
    else
        group->set->check(group, arguments);
}
