/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks: a queue of tickets in PE 0's long of the symmetric object; zero is a free lock.
 *
 *   | serving: the ticket whose turn it is : 24 | : 6 | far ones sleep : 1 | slept on : 1 |
 *   | next: the first free ticket          : 24 | held by PE 0 : 8                       |
 *
 * The longs of the other PEs say only whether that PE holds the lock.
 *
 * Whoever comes takes a ticket with one atomic add and waits for its turn: first come, first
 * served, among PEs and their threads alike. A queue of nodes (Mellor-Crummey and Scott, 1991) has
 * one node for each PE here, its own long, and so no place for the second thread of a PE; and its
 * release may have to wait for a successor. Here nobody waits but for the holder.
 *
 * PEs that are far from PE 0 do the same by messages to it. They sleep on a bell of their own,
 * which whoever releases the lock rings on all PEs if far ones sleep: it does not know whose turn
 * it is.
 */
#ifndef WEFT_CORE_LOCK_H
#define WEFT_CORE_LOCK_H

/* All return -EFAULT where `lock` is no symmetric long. */

/* Waits for its turn; 0. What the holders before did is visible then. */
int weft_lock_set(long *lock);

/* 0: it was free and is held now; 1: it was not. */
int weft_lock_test(long *lock);

/* Completes this thread's accesses and lets the next one in; 0, or -EPERM when this PE does
 * not hold it. */
int weft_lock_clear(long *lock);

#endif
