/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that the library keeps for longer than a call.
 *
 * Programs close numbers that they have not opened (closefrom, daemons, os.closerange) and open
 * files of their own, which get the lowest free numbers. So a kept descriptor has a high number,
 * above 1023 if the limit on open files allows it, and what it stands for is remembered: the
 * library closes it, and uses it for what could do harm, only while the number still stands for
 * the same file or socket. */
#ifndef WEFT_BASE_DESCRIPTOR_H
#define WEFT_BASE_DESCRIPTOR_H

#include <stdbool.h>

/* Moves `fd` to a high number and remembers what it stands for. Returns the new number, or `fd`
 * itself if no higher one is free or fd is negative. Safe in any thread; never fails. */
int weft_descriptor_keep(int fd);

/* Whether `fd` stands for what it stood for when it was kept. True of an open descriptor that was
 * never kept; false of a negative one. All eventfds and epolls count as the same file. */
bool weft_descriptor_is_ours(int fd);

/* Closes `fd` if it is ours, and forgets it. Nothing if it is negative. */
void weft_descriptor_close(int fd);

#endif
