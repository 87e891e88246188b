/* SPDX-License-Identifier: BSD-3-Clause */
#include "late.h"
#include <stdlib.h>
#include <string.h>

bool late_add(struct late *late, const struct settings *settings, const void *message, size_t bytes,
              uint64_t now_ns) {
    if (late->count == late->room) {
        size_t room = late->room ? 2 * late->room : 64;
        void *messages = realloc(late->messages, room * sizeof *late->messages);
        if (!messages)
            return false;
        late->messages = messages;
        late->room = room;
    }
    struct late_message *held = malloc(sizeof *held + bytes);
    if (!held)
        return false;
    uint64_t delay_ns = settings->delay_us * 1000;
    if (settings->reorder > 1 && delay_ns)
        delay_ns = random_next(&late->random) % (delay_ns + 1);
    *held = (struct late_message){.due_ns = now_ns + delay_ns, .bytes = bytes};
    memcpy(held->message, message, bytes);
    late->messages[late->count++] = held;
    return true;
}

struct late_message *late_take(struct late *late, const struct settings *settings,
                               uint64_t now_ns) {
    size_t window = settings->reorder > 1 ? (size_t)settings->reorder : 1, due[64], ndue = 0;
    for (size_t i = 0; i < late->count && i < window && ndue < 64; i++)
        if (late->messages[i]->due_ns <= now_ns)
            due[ndue++] = i;
    if (ndue == 0)
        return NULL;
    size_t taken = due[random_next(&late->random) % ndue];
    struct late_message *message = late->messages[taken];
    memmove(&late->messages[taken], &late->messages[taken + 1],
            (--late->count - taken) * sizeof *late->messages);
    return message;
}

uint64_t late_due_ns(const struct late *late) {
    uint64_t due_ns = UINT64_MAX;
    for (size_t i = 0; i < late->count; i++)
        if (late->messages[i]->due_ns < due_ns)
            due_ns = late->messages[i]->due_ns;
    return due_ns;
}

void late_free(struct late *late) {
    for (size_t i = 0; i < late->count; i++)
        free(late->messages[i]);
    free(late->messages);
    *late = (struct late){0};
}
