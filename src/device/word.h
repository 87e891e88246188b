/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals, atomics and looks at words in a GPU's memory, and the end of what has been begun. Errors
 * as in core/route.h. */
#ifndef WEFT_DEVICE_WORD_H
#define WEFT_DEVICE_WORD_H

#include "core/route.h"

int weft_device_signal(uint64_t *sig_addr, uint64_t signal, enum weft_signal_op op, int pe);

/* Where the word is in GPU memory, or `fetch`, or both. */
int weft_device_amo(const struct weft_amo *amo, int pe);

/* Copies this PE's words that a wait or test looks at to the host: [words, words + bytes) to
 * `snapshot`. What their writers ordered before them is visible then. */
void weft_device_look(void *snapshot, const void *words, size_t bytes);

/* Completes what the calls above have begun. Nothing, and cheap, if nothing is under way. */
void weft_device_quiet(void);

/* Gives back what the calls above need; before weft_device_close. Nothing is under way. */
void weft_device_rma_close(void);

#endif
