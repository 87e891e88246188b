/* SPDX-License-Identifier: BSD-3-Clause */
/* Who makes progress: messages arrive only where somebody looks.
 *
 * A thread of this process that waits looks by itself, at every turn of a wait for a far PE. Behind
 * them stands a thread of the library's own, which keeps out of the way while others look, and else
 * sleeps on the engine's descriptor: a PE that computes serves its peers all the same. It sends
 * bundles of small messages that nobody waits for, too. */
#ifndef WEFT_FAR_PROGRESS_H
#define WEFT_FAR_PROGRESS_H

/* One look at the engine, if nobody else is looking: what has arrived is applied, answers and
 * acknowledgments go out. Never blocks. Nothing where no PE is far. */
void weft_far_look(void);

/* Ends a sleep of the thread, if it is in one. */
void weft_far_progress_wake(void);

/* Starts and ends the thread. 0 or -errno, logged. It is gone when the second returns. */
int weft_far_progress_start(void);
void weft_far_progress_stop(void);

/* Before the end of a job: if the calling thread is that one, another takes its place. */
void weft_far_progress_hand_over(void);

#endif
