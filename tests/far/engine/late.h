/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that have arrived and are delayed: until their time, and in a random order if the
 * settings say so. Each has memory of its own, so that the address sanitizer finds a caller that
 * reads a message after its delivery. */
#ifndef TESTS_FAR_ENGINE_LATE_H
#define TESTS_FAR_ENGINE_LATE_H

#include "settings.h"

struct late_message {
    uint64_t due_ns;
    size_t bytes;
    uint64_t unused; /* messages are aligned to 8, and here never to 16 */
    uint64_t message[];
};

struct late {
    struct late_message **messages; /* in the order of arrival */
    size_t count, room;
    uint64_t random;
};

/* Returns false if there is no memory. */
bool late_add(struct late *late, const struct settings *settings, const void *message, size_t bytes,
              uint64_t now_ns);

/* Returns a due message, which the caller frees, or NULL. */
struct late_message *late_take(struct late *late, const struct settings *settings, uint64_t now_ns);

/* Returns the time when the next message is due, or UINT64_MAX. */
uint64_t late_due_ns(const struct late *late);

void late_free(struct late *late);

#endif
