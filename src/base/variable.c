/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/variable.h"
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/symbol.h"

static struct {
    struct weft_variable *all; /* ordered by address, disjoint */
    size_t count, room;
    bool incomplete; /* memory ran out while they were read */
} variables;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void variable_add(uintptr_t begin, size_t bytes) {
    if (variables.count == variables.room) {
        size_t room = variables.room ? 2 * variables.room : 256;
        struct weft_variable *more = realloc(variables.all, room * sizeof *more);
        if (!more) {
            variables.incomplete = true;
            return;
        }
        variables.all = more;
        variables.room = room;
    }
    variables.all[variables.count++] = (struct weft_variable){begin, bytes};
}

static int variable_compare(const void *a, const void *b) {
    const struct weft_variable *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Merges aliases, and symbols for parts of a variable, with the variable. */
static void variables_join(void) {
    size_t last = 0;
    for (size_t i = 1; i < variables.count; i++) {
        struct weft_variable *before = &variables.all[last], *next = &variables.all[i];
        uintptr_t end = next->begin + next->bytes;
        if (next->begin >= before->begin + before->bytes)
            variables.all[++last] = *next;
        else if (end > before->begin + before->bytes)
            before->bytes = end - before->begin;
    }
    variables.count = variables.count ? last + 1 : 0;
}

static void variables_read(void) {
    weft_symbol_each_variable(variable_add);
    if (variables.incomplete) {
        weft_log("no memory for the %zu variables of the program: accesses beyond their ends are "
                 "not detected",
                 variables.count);
        variables.count = 0;
    }
    if (variables.count)
        qsort(variables.all, variables.count, sizeof *variables.all, variable_compare);
    variables_join();
}

bool weft_variable_find(const void *at, struct weft_variable *found) {
    pthread_once(&once, variables_read);
    size_t low = 0,
           high = variables.count; /* the first variable that begins after `at` is in between */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (variables.all[middle].begin <= (uintptr_t)at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || (uintptr_t)at - variables.all[low - 1].begin >= variables.all[low - 1].bytes)
        return false;
    *found = variables.all[low - 1];
    return true;
}

/* Removes the number that compilers append to static variables of functions: "a.0". */
void weft_variable_name(const struct weft_variable *variable, char *name, size_t bytes) {
    struct weft_symbol symbol;
    bool known = weft_symbol_find((const void *)variable->begin, WEFT_SYMBOL_OBJECT, &symbol);
    snprintf(name, bytes, "%s", known ? symbol.name : "");
    char *dot = strrchr(name, '.');
    if (dot && isdigit((unsigned char)dot[1]) && dot[1 + strspn(dot + 1, "0123456789")] == '\0')
        *dot = '\0';
}
