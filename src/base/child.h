/* SPDX-License-Identifier: BSD-3-Clause */
/* What children of this process get of memory that it shares with other PEs: nothing, or a copy.
 *
 * A child that inherited a shared mapping would store into its parent's variables. The handlers of
 * pthread_atfork prevent that for fork(), but _Fork() and clone(2) do not run them. So all such
 * memory is kept from children (MADV_DONTFORK). The executable's data, without which no child gets
 * far, is copied to a child by the fork handlers, or else at the child's first access, which
 * faults.
 */
#ifndef WEFT_BASE_CHILD_H
#define WEFT_BASE_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keeps a mapping from children. They can learn from weft_child_lacks that it is missing. */
void weft_child_deny(void *at, size_t bytes);

/* Whether the address lies in a mapping that was kept from children. */
bool weft_child_lacks(const void *at);

enum { WEFT_CHILD_PIECES = 9 };

/* [begin, end) is a shared mapping of a file from `offset` on. */
struct weft_child_piece {
    uintptr_t begin, end;
    size_t offset;
};

/* Keeps the executable's data from children, which copy it from `fd` when they need it. */
void weft_child_copy_later(const struct weft_child_piece *pieces, unsigned count, int fd);

/* In a child that has inherited the data: the file to copy from is another one. False if there is
 * none. */
bool weft_child_copy_from(int fd);

/* Lets the children that are made from now on inherit the data after all, or not. */
void weft_child_inherit(bool inherit);

/* In a child: puts a private copy of the data in its place. Needs nothing of the data, not even
 * the executable's table of imported functions. False if the file is not open there. */
bool weft_child_copy(void);

/* In the handler of SIGSEGV: whether the fault was that of a child which lacked the data, and now
 * has its copy. */
bool weft_child_repair(const siginfo_t *fault);

/* Pages that must stay outside of the pieces: what a child needs to know for its copy lies there.
 */
void weft_child_island(uintptr_t *begin, uintptr_t *end);

#endif
