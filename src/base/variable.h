/* SPDX-License-Identifier: BSD-3-Clause */
/* The executable's variables: where each begins and ends according to the symbol table, which is
 * read at the first question. */
#ifndef WEFT_BASE_VARIABLE_H
#define WEFT_BASE_VARIABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft_variable {
    uintptr_t begin;
    size_t bytes;
};

/* Finds the variable of the executable that contains the address. Symbols that overlap count as one
 * variable. Returns false if there is none or the executable is stripped. */
bool weft_variable_find(const void *at, struct weft_variable *found);

/* Writes the variable's name as in the source, or "" if it is not known. */
void weft_variable_name(const struct weft_variable *variable, char *name, size_t bytes);

#endif
