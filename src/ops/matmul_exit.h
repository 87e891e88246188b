/* SPDX-License-Identifier: BSD-3-Clause */
/* Products and the end of the process. exit() runs in one thread while others go on, and the matmul
 * libraries' own exit handlers take down what a product still uses: so exit waits for the products
 * that are under way, and who begins one from then on stops for good. */
#ifndef WEFT_OPS_MATMUL_EXIT_H
#define WEFT_OPS_MATMUL_EXIT_H

/* The exit handlers of this library, of dlopen, wait for the products from now on. */
void weft_matmul_outlast(void *library);

/* Around every call of a library. Not nested. */
void weft_matmul_begin(void);
void weft_matmul_end(void);

#endif
