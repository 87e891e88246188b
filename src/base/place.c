/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells Weft's own code from the program's. In the shared library all code is Weft's. Linked into a
 * program, Weft's code is the section weft_text (the Makefile names it), whose ends the linker
 * provides: names would not do, because they may be stripped. */
#include "base/place.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "base/env.h"
#include "base/privilege.h"
#include "base/symbol.h"

extern const char __start_weft_text[] __attribute__((weak, visibility("hidden")));
extern const char __stop_weft_text[] __attribute__((weak, visibility("hidden")));

void weft_place_write(const void *code, char *text, size_t bytes) {
    struct weft_symbol symbol;
    if (!weft_symbol_find(code, WEFT_SYMBOL_FUNCTION, &symbol))
        snprintf(text, bytes, "%p", code);
    else
        snprintf(text, bytes, "%s+0x%zx%s%s%s", symbol.module, (uintptr_t)code - symbol.base,
                 *symbol.name ? " (" : "", symbol.name, *symbol.name ? ")" : "");
}

bool weft_place_wanted(void) {
    return strcmp(weft_env.backtrace, "0") != 0 && !weft_privileged();
}

/* A program with neither the section nor the library is made of Weft's objects: a test of
 * internals, in which no code is told apart. */
static bool is_own_code(const void *code) {
    Dl_info its, ours;
    const void *own = (const void *)(uintptr_t)weft_place_write;
    if (__start_weft_text)
        return (uintptr_t)code - (uintptr_t)__start_weft_text <
               (uintptr_t)__stop_weft_text - (uintptr_t)__start_weft_text;
    return dladdr(code, &its) && dladdr(own, &ours) && its.dli_fbase == ours.dli_fbase &&
           !weft_symbol_in_program(own);
}

static bool is_main(const void *code) {
    struct weft_symbol symbol;
    return weft_symbol_in_program(code) && weft_symbol_find(code, WEFT_SYMBOL_FUNCTION, &symbol) &&
           (strcmp(symbol.name, "main") == 0 || strncmp(symbol.name, "main.", 5) == 0);
}

/* Returns whether the code belongs to the C library, which calls Weft at exit and in threads of
 * Weft, or to the code that starts the program. */
static bool is_start_or_end(const void *code) {
    struct weft_symbol symbol;
    return weft_symbol_find(code, WEFT_SYMBOL_FUNCTION, &symbol) &&
           (strncmp(symbol.module, "libc.", 5) == 0 || strcmp(symbol.name, "_start") == 0);
}

int weft_place_calls(void *calls[WEFT_PLACE_CALLS]) {
    if (!weft_place_wanted())
        return 0;
    int count = backtrace(calls, WEFT_PLACE_CALLS), first = 0, end;
    while (first < count && is_own_code((char *)calls[first] - 1))
        first++;
    while (first < count && is_start_or_end((char *)calls[first] - 1))
        first++;
    for (end = first; end < count; end++)
        if (is_main((char *)calls[end] - 1)) {
            count = end + 1;
            break;
        }
    memmove(calls, calls + first, (size_t)(count - first) * sizeof *calls);
    return count - first;
}
