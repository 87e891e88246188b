/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that the library keeps for longer than a call.
 *
 * Programs close numbers that they have not opened (closefrom, daemons, os.closerange) and open
 * files of their own, which get the lowest free numbers. So a kept descriptor has a high number,
 * above 1023 if the limit on open files allows it, and its file is remembered: the library closes
 * it, and uses it for anything that could do harm, only while the number still stands for the same
 * file or socket. */
#ifndef WEFT_BASE_DESCRIPTOR_H
#define WEFT_BASE_DESCRIPTOR_H

#include <stdbool.h>

/* Moves `fd` to a high number and remembers its file. Returns the new number, or `fd` itself if no
 * higher one is free or fd is negative. Safe in any thread; never fails. */
int weft_descriptor_keep(int fd);

/* Returns whether `fd` still stands for the same file as when it was kept. Returns true for an open
 * descriptor that was never kept, and false for a negative one. All eventfds and epolls count as
 * the same file. */
bool weft_descriptor_is_ours(int fd);

/* Closes `fd` if it still stands for the kept file, and forgets it. Does nothing if it is negative.
 */
void weft_descriptor_close(int fd);

#endif
