/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that have come and are held up: until their time, and in an order drawn at random where
 * the settings say so. Each lies in memory of its own, so that who looks at one behind its delivery
 * is found by the address sanitizer. */
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
    struct late_message **messages; /* in the order in which they came */
    size_t count, room;
    uint64_t random;
};

/* False when there is no memory. */
bool late_add(struct late *late, const struct settings *settings, const void *message, size_t bytes,
              uint64_t now_ns);

/* The caller's to free; NULL: none is due. */
struct late_message *late_take(struct late *late, const struct settings *settings, uint64_t now_ns);

/* When the next one is; UINT64_MAX: there is none. */
uint64_t late_due_ns(const struct late *late);

void late_free(struct late *late);

#endif
