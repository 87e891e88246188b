/* SPDX-License-Identifier: BSD-3-Clause */
/* The symbols of the program and of its libraries, as their files have them. The dynamic loader
 * knows only those that a file exports; a C program's own functions and variables are in the symbol
 * table beside those, until `strip` removes it. Nothing here allocates, so that a process that has
 * crashed may ask, too. */
#ifndef WEFT_BASE_SYMBOL_H
#define WEFT_BASE_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weft_symbol_kind { WEFT_SYMBOL_FUNCTION, WEFT_SYMBOL_OBJECT };

struct weft_symbol {
    char module[64]; /* the file's name without its folders */
    uintptr_t base;  /* of the module: what addr2line and nm call 0 */
    char name[96];   /* "" if no symbol covers the address */
    uintptr_t begin; /* the symbol's first byte */
    size_t bytes;    /* its size */
};

/* Finds the module that the address lies in, and the symbol of this kind that covers it. Returns
 * false if the address is in no module. A global symbol is preferred to a local one. */
bool weft_symbol_find(const void *at, enum weft_symbol_kind kind, struct weft_symbol *found);

/* Calls `take` for each variable of the executable, in no order; if it is stripped, for those that
 * it exports. */
void weft_symbol_each_variable(void (*take)(uintptr_t begin, size_t bytes));

/* Whether the address is in the executable, and not in a library. */
bool weft_symbol_in_program(const void *at);

#endif
