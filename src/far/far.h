/* SPDX-License-Identifier: BSD-3-Clause */
/* Far PEs: the operations that reach them by messages (far/message.h), and the life of the engine
 * that transports the messages.
 *
 * A processor of the target's host applies each message, so that near and far calls are coherent on
 * one word. Messages are not trusted: a message names a window, slot, offset and length, which are
 * checked against the target's windows before any memory is touched. A bad message ends the job.
 *
 * Messages to one process are applied in the order in which they were sent. A PE that sees the word
 * of a put therefore sees its data, too. A quiet waits for acknowledgments. */
#ifndef WEFT_FAR_FAR_H
#define WEFT_FAR_FAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "job/operations.h"
#include "far/endpoints.h"

struct weft_strided;
struct weft_word;

/* The operation table of far PEs (far/rma.c). */
extern const struct weft_operations weft_far_operations;

/* Opens the engine, writes this PE's endpoint (far/endpoints.h, WEFT_FAR_ENDPOINT_BYTES) and
 * creates the file for the endpoints of all PEs, which the caller closes. This PE's windows must
 * have their slots. Local. Returns 0, or -errno after logging the reason. */
int weft_far_open(void *endpoint, int *file);

/* Starts delivery of messages, given the endpoints and endpoint files of all PEs in order. Called
 * once near memory is mapped. Returns 0, or -errno after logging the reason. */
int weft_far_start(const void *endpoints, const int *files);

/* Closes the engine at the end of a job, after its last barrier. Blocks until every PE calls it
 * with no message under way; meanwhile this PE still serves the others. */
void weft_far_finish(void);

/* Closes the engine at once: the job is over or did not start. Does nothing if no engine is
 * open. */
void weft_far_abandon(void);

/* Orders the messages to each PE. They are in order already if one process applies all of them, so
 * this only sends the open bundles (far/coalesce.h). If the host proxy applies the messages to a
 * PE's host memory and the PE itself those to its GPU memory, this is weft_far_quiet. */
void weft_far_fence(void);

/* Blocks until all that this process has sent, to any PE or to these PEs, has been applied, and all
 * answers have arrived. Near PEs in the list cost nothing; n is at least 1. */
void weft_far_quiet(void);
void weft_far_quiet_pes(const int *pes, size_t n);

/* As weft_far_quiet, and also waits for the messages that no quiet waits for
 * (weft_far_put_word). */
void weft_far_settle(void);

/* Blocks until no thread of this process is still applying a message: the thread that set a word
 * from a message looks for the word's sleepers afterwards. */
void weft_far_leave_words(void);

/* --- For the library's own code --------------------------------------------------------------
 *
 * Collectives, teams and locks call these functions, which end the job if an address is not
 * symmetric. Public calls use weft_far_operations, which returns an error. */

/* Puts to an object that `dest` names by its address in this PE's own slot of the heap, the statics
 * or the scratch. The caller may reuse `source` on return. */
void weft_far_put(void *dest, const void *source, size_t bytes, int pe);

/* As weft_far_put, then sets the word at the target and wakes its sleepers. `bytes` may be 0. No
 * quiet waits for this message alone. */
void weft_far_put_word(void *dest, const void *source, size_t bytes, struct weft_word *word,
                       uint32_t value, int pe);

/* Gets to any memory of this process. With `nbi` the data has arrived after the next quiet. */
void weft_far_get(void *dest, const void *source, size_t bytes, int pe, bool nbi);
void weft_far_get_strided(void *dest, const void *source, const struct weft_strided *shape, int pe,
                          bool nbi);

/* Performs an atomic on one of the library's own words, amo->dest, and blocks until the old value
 * has arrived in amo->fetch, if that is not NULL. With `wake` all futex sleepers of the word at the
 * target, which has 32 bits, are woken. */
void weft_far_amo(const struct weft_amo *amo, bool wake, int pe);

#endif
