/* SPDX-License-Identifier: BSD-3-Clause */
/* Results that earlier runs have kept, in a file of the user: one line for each key, with a value
 * of eight words and a remark for people. The file is $XDG_CACHE_HOME/weft/products, or that below
 * ~/.cache. Without such a folder, or if the file cannot be read or written, nothing is kept. */
#ifndef WEFT_FUSED_MEMO_H
#define WEFT_FUSED_MEMO_H

#include <stdbool.h>
#include <stdint.h>

enum { WEFT_MEMO_WORDS = 8 };

/* Finds the value that was kept last for a key. Lines that are damaged count as missing. */
bool weft_memo_find(uint64_t key, uint64_t value[WEFT_MEMO_WORDS]);

/* Calls `visit` for each line that is not damaged, in their order. */
typedef void weft_memo_visitor(void *context, uint64_t key, const uint64_t *value,
                               const char *remark);
void weft_memo_visit(weft_memo_visitor *visit, void *context);

/* Returns the word for b's order, in remarks and in error texts. */
static inline const char *weft_memo_order(bool transposed) {
    return transposed ? "columns" : "rows";
}

/* Keeps a value. `remark` has no line breaks; `weft info --plan` finds the lines of a shape by it.
 */
void weft_memo_keep(uint64_t key, const uint64_t value[WEFT_MEMO_WORDS], const char *remark);

#endif
