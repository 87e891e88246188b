/* SPDX-License-Identifier: BSD-3-Clause */
/* Weft's own code is that of its shared library. As a part of a program it is a section, weft_text
 * (the Makefile names it), whose ends the linker knows: names would not tell it apart where they
 * are stripped. */
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

/* A program that has neither the section nor the library is made of Weft's objects: a test of the
 * insides, in which nothing is told apart. */
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

/* Whether the C library has called Weft, as at exit or in a thread of Weft's own, or the code that
 * starts the program. */
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
