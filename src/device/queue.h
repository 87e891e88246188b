/* SPDX-License-Identifier: BSD-3-Clause */
/* What calls of the host have enqueued on the GPU's stream, and how far the GPU has come.
 *
 * A ticket is a number that the stream writes into a word of the host behind all work that was
 * enqueued before it; who waits for the work looks at the word. That is cheaper than to ask the
 * driver, and looks at the abort word between two looks. Where the word cannot be registered the
 * driver is asked all the same. All functions are called between weft_gpu_enter and _leave; a
 * failure of the driver ends the job. */
#ifndef WEFT_DEVICE_QUEUE_H
#define WEFT_DEVICE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ends the job with the text that a failed call left. */
void weft_device_must(int result);

/* Work has been enqueued without a ticket: a quiet has to bring one. */
void weft_device_note(void);

uint32_t weft_device_ticket(void);
void weft_device_await(uint32_t ticket);

/* Waits for what this thread has enqueued. */
static inline void weft_device_complete(void) {
    weft_device_await(weft_device_ticket());
}

/* A word of GPU memory <- the value, 4 or 8 bytes of it, by the stream itself and without a kernel,
 * and a ticket behind it, in one call of the driver: the value travels within the command. False,
 * and nothing has been enqueued, where the driver does not do this. */
bool weft_device_write_word(void *word, uint64_t value, size_t bytes);

/* Waits for everything that this PE has enqueued. */
void weft_device_drain(void);

/* Whether there is nothing to wait for. Cheap. */
bool weft_device_drained(void);

/* Memory of the host within the GPU's reach, for one thread at a time: what passes through on its
 * way to memory that the GPU does not reach. NULL, and nothing is taken, where there is none. */
enum { WEFT_DEVICE_STAGING_BYTES = 64 << 10 };
void *weft_device_staging_take(void);
void weft_device_staging_give(void);

/* With the GPU's stream still there. */
void weft_device_queue_close(void);

#endif
