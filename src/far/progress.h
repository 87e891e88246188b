/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress of messages: they are delivered only when a thread polls the engine.
 *
 * A thread that waits for a far PE polls on every turn. In addition the library has a progress
 * thread, which stays away while other threads poll and otherwise sleeps on the engine's
 * descriptor. So a PE that computes still serves its peers. The progress thread also sends bundles
 * of small messages that no thread waits for. */
#ifndef WEFT_FAR_PROGRESS_H
#define WEFT_FAR_PROGRESS_H

/* Polls the engine once unless another thread does: applies the messages that have arrived and
 * sends answers and acknowledgments. Never blocks. Does nothing if no PE is far. */
void weft_far_look(void);

/* Wakes the progress thread if it sleeps. */
void weft_far_progress_wake(void);

/* Starts the thread; returns 0, or -errno after logging the reason. Stops the thread and joins
 * it. */
int weft_far_progress_start(void);
void weft_far_progress_stop(void);

/* Called before the end of a job: if the caller is the progress thread, starts another one in its
 * place. */
void weft_far_progress_hand_over(void);

#endif
