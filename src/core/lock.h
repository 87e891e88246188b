/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks: a queue of tickets in PE 0's long of the symmetric object; zero is a free lock.
 *
 *   | serving: the ticket whose turn it is : 24 | : 6 | far ones sleep : 1 | slept on : 1 |
 *   | next: the first free ticket          : 24 | held by PE 0 : 8                       |
 *
 * The long of any other PE only says whether that PE holds the lock.
 *
 * A PE takes a ticket with one atomic add and waits for its turn: first come, first served, among
 * PEs and their threads. A queue of nodes (Mellor-Crummey and Scott, 1991) has one node per PE
 * here, the PE's own long, so a second thread of the PE would have none; and its release may have
 * to wait for a successor. Here a PE waits only for the holder.
 *
 * PEs that are far from PE 0 do the same by messages to it. Each sleeps on a bell of its own. If
 * far PEs sleep, a release rings the bells of all PEs, because it does not know whose turn it
 * is. */
#ifndef WEFT_CORE_LOCK_H
#define WEFT_CORE_LOCK_H

/* All functions return -EFAULT if `lock` is not a symmetric long. */

/* Waits for its turn and returns 0. Everything that earlier holders did is visible then. */
int weft_lock_set(long *lock);

/* Returns 0 if the lock was free and is held now, 1 if it was not free. */
int weft_lock_test(long *lock);

/* Completes this thread's accesses and releases the lock. Returns 0, or -EPERM if this PE does not
 * hold the lock. */
int weft_lock_clear(long *lock);

#endif
