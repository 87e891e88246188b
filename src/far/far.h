/* SPDX-License-Identifier: BSD-3-Clause */
/* PEs that are far: what messages to them say (far/message.h), and what is done where one arrives.
 *
 * The target's own processor applies each message, so that near and far calls are coherent on one
 * word. Nothing is taken on trust: a message names window, slot, offset and bytes, which are
 * checked against this PE's window before anything is touched, and a bad one ends the job.
 *
 * Messages to one PE are applied in the order in which they were sent. Whoever sees the word of a
 * put sees its data, too; a fence is nothing; a quiet waits for acknowledgments. */
#ifndef WEFT_FAR_FAR_H
#define WEFT_FAR_FAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "job/operations.h"
#include "far/endpoints.h"

struct weft_strided;
struct weft_word;

/* The operations of public calls on memory of far PEs (far/rma.c). */
extern const struct weft_operations weft_far_operations;

/* Opens the engine, writes this PE's endpoint (far/endpoints.h) and makes the file that has room
 * for the endpoints of all, which the caller closes. This PE's windows have their slots by then.
 * Local; 0 or -errno, logged. */
int weft_far_open(void *endpoint, int *file);

/* Takes the endpoints and the files of all PEs, one after the other, when near memory is mapped.
 * From here on messages are delivered. 0 or -errno, logged. */
int weft_far_start(const void *endpoints, const int *files);

/* At the end of a job, behind the last barrier: waits until all PEs have come here with nothing
 * under way, while this one still serves them; then there is no engine any more. */
void weft_far_finish(void);

/* The same without a farewell: the job is over, or was never brought up. Nothing where nothing is
 * open. */
void weft_far_abandon(void);

/* What has been sent goes now, and waits for no more to go with. */
void weft_far_fence(void);

/* Waits until all that this process has sent so far, or sent to these PEs, is applied there, and
 * the answers to it are here. PEs that are near need nothing of that. */
void weft_far_quiet(void);
void weft_far_quiet_pes(const int *pes, size_t n);

/* The same, of all that the library has said by the way, too (weft_far_put_word). */
void weft_far_settle(void);

/* Behind it no thread looks any more at a word that this one has seen set: the one that has applied
 * a message looks for sleepers still when the word is there. */
void weft_far_leave_words(void);

/* For the library's own objects. On `pe` they are named by their address in this PE's own slot of
 * the heap, the statics or the scratch; a name that is none ends the job. A source is the caller's
 * again on return. */
void weft_far_put(void *dest, const void *source, size_t bytes, int pe);

/* The same; behind the data the word is set and its sleepers are woken. `bytes` may be 0. No quiet
 * waits for it alone. */
void weft_far_put_word(void *dest, const void *source, size_t bytes, struct weft_word *word,
                       uint32_t value, int pe);

/* To any memory of this process. With `nbi` what is fetched is there behind a quiet. */
void weft_far_get(void *dest, const void *source, size_t bytes, int pe, bool nbi);
void weft_far_get_strided(void *dest, const void *source, const struct weft_strided *shape, int pe,
                          bool nbi);

/* The word before, where `fetch` asks for it, and else 0. With `wake` all sleepers of that 32-bit
 * word at the target are woken (futex). */
uint64_t weft_far_amo(enum weft_amo_op op, size_t bytes, bool fetch, void *word, uint64_t value,
                      uint64_t cond, bool wake, int pe);

#endif
