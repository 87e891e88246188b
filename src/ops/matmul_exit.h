/* SPDX-License-Identifier: BSD-3-Clause */
/* Products and the end of the process. exit() runs in one thread while others go on, and the matmul
 * libraries' own exit handlers take down what a product still uses: so exit waits for the products
 * that are under way, and who begins one from then on stops for good. */
#ifndef WEFT_OPS_MATMUL_EXIT_H
#define WEFT_OPS_MATMUL_EXIT_H

/* What a library sets up at its first use, and registers handlers for, differs by kind: a type of
 * weft.h, or one of these. */
enum { WEFT_MATMUL_OPEN = 29, WEFT_MATMUL_PACK, WEFT_MATMUL_PACKED };

/* Around every call of a library. Not nested. */
void weft_matmul_begin(unsigned kind);
void weft_matmul_end(void);

#endif
