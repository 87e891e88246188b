/* SPDX-License-Identifier: BSD-3-Clause */
/* The symbols of the program and its libraries, read from their files. The dynamic loader only
 * knows exported symbols; a C program's other functions and variables are in the file's symbol
 * table until `strip` removes it. No function here allocates, so a process that has crashed may
 * call them. */
#ifndef WEFT_BASE_SYMBOL_H
#define WEFT_BASE_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weft_symbol_kind { WEFT_SYMBOL_FUNCTION, WEFT_SYMBOL_OBJECT };

struct weft_symbol {
    char module[64]; /* the file's name without its folders */
    uintptr_t base;  /* load address of the module: addr2line and nm count from here */
    char name[96];   /* "" if no symbol covers the address */
    uintptr_t begin; /* the symbol's first byte */
    size_t bytes;    /* its size */
};

/* Finds the module that contains the address, and the symbol of this kind that covers it. Returns
 * false if the address is in no module. Prefers a global symbol to a local one. */
bool weft_symbol_find(const void *at, enum weft_symbol_kind kind, struct weft_symbol *found);

/* Calls `take` for each variable of the executable, in no order; if it is stripped, only for
 * exported ones. */
void weft_symbol_each_variable(void (*take)(uintptr_t begin, size_t bytes));

/* Returns whether the address is in the executable rather than in a library. */
bool weft_symbol_in_program(const void *at);

#endif
