/* SPDX-License-Identifier: BSD-3-Clause */
/* Put, get, atomics and looks at words where a GPU's memory is on one side or both.
 *
 * Errors as in core/rma.h. The blocking forms are complete when they return; what a non-blocking
 * one has begun is completed by weft_device_quiet. A failure of the driver ends the job with one
 * line. Which calls come here is decided by weft_device_concerns. */
#ifndef WEFT_DEVICE_RMA_H
#define WEFT_DEVICE_RMA_H

#include "core/amo.h"
#include "core/ivar.h"
#include "core/rma.h"
#include "device/device.h"

int weft_device_put(void *dest, const void *source, size_t bytes, int pe, bool nbi,
                    const char *call);
int weft_device_get(void *dest, const void *source, size_t bytes, int pe, bool nbi,
                    const char *call);

/* An element in GPU memory, whose value the host has or wants. */
int weft_device_put_value(void *dest, const void *value, size_t bytes, int pe, const char *call);
int weft_device_get_value(void *value, const void *source, size_t bytes, int pe, const char *call);

int weft_device_put_strided(void *dest, const void *source, const struct weft_strided *shape,
                            int pe, const char *call);
int weft_device_get_strided(void *dest, const void *source, const struct weft_strided *shape,
                            int pe, const char *call);
int weft_device_put_signal(void *dest, const void *source, size_t bytes, uint64_t *sig_addr,
                           uint64_t signal, enum weft_signal_op op, int pe, bool nbi,
                           const char *call);
int weft_device_signal(uint64_t *sig_addr, uint64_t signal, enum weft_signal_op op, int pe,
                       const char *call);

/* As weft_amo, where the word is in GPU memory, or `fetched`, or both. */
int weft_device_amo(enum weft_amo_op op, size_t bytes, void *dest, const void *value,
                    const void *cond, void *fetched, int pe, const char *call);

/* Copies this PE's words that a wait or test looks at to the host: [words, words + bytes) to
 * `snapshot`. What their writers ordered before them is visible then. */
void weft_device_look(void *snapshot, const void *words, size_t bytes, const char *call);

/* Completes what the calls above have begun. Nothing, and cheap, if nothing is under way. */
void weft_device_quiet(const char *call);

/* Gives back what the calls above need; before weft_device_close. Nothing is under way. */
void weft_device_rma_close(void);

#endif
