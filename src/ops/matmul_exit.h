/* SPDX-License-Identifier: BSD-3-Clause */
/* Products at the end of the process. exit() runs in one thread while others continue, and the exit
 * handlers of the matmul libraries free memory that a product still uses. So exit waits for the
 * products in progress, and a thread that begins another one afterwards sleeps until the process
 * ends. */
#ifndef WEFT_OPS_MATMUL_EXIT_H
#define WEFT_OPS_MATMUL_EXIT_H

/* Makes the exit handlers of this library, a handle of dlopen, wait for the products. */
void weft_matmul_outlast(void *library);

/* Enclose every call of a library. They must not be nested. */
void weft_matmul_begin(void);
void weft_matmul_end(void);

#endif
