/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides what child processes get of the memory that this process shares with other PEs: nothing,
 * or a copy.
 *
 * A child that inherited a shared mapping would store into its parent's variables. The handlers of
 * pthread_atfork prevent that for fork(), but _Fork() and clone(2) do not run them. So no child
 * inherits such memory (MADV_DONTFORK). The executable's data, without which a child cannot run
 * far, are copied by the fork handlers, or else when the child's first access faults. */
#ifndef WEFT_BASE_CHILD_H
#define WEFT_BASE_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Excludes a mapping from child processes, which can ask weft_child_lacks about an address. */
void weft_child_deny(void *at, size_t bytes);

/* Returns whether the address lies in a mapping that was excluded from child processes. */
bool weft_child_lacks(const void *at);

enum { WEFT_CHILD_PIECES = 9 };

/* [begin, end) is a shared mapping of a file, from `offset` on. */
struct weft_child_piece {
    uintptr_t begin, end;
    size_t offset;
};

/* Excludes the executable's data from child processes, which copy them from `fd` when they need
 * them. */
void weft_child_copy_later(const struct weft_child_piece *pieces, unsigned count, int fd);

/* For a child that has inherited the data: sets another file as the source of later copies. Returns
 * false if `fd` is not open. */
bool weft_child_copy_from(int fd);

/* Sets whether children created from now on inherit the data. */
void weft_child_inherit(bool inherit);

/* For a child: replaces the shared data by a private copy. Uses nothing in the data, not even the
 * executable's table of imported functions. Returns false if the file is no longer open in the
 * child. */
bool weft_child_copy(void);

/* For the handler of SIGSEGV: if a child faulted because it lacked the data, copies them and
 * returns true. */
bool weft_child_repair(const siginfo_t *fault);

/* Returns the bounds of the pages that must stay outside the pieces, because the copy itself uses
 * them. */
void weft_child_island(uintptr_t *begin, uintptr_t *end);

#endif
