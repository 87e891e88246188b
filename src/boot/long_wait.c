/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of an entry increases: FREE -> FILLED (its owner writes) -> SHOWN -> FREE. A reader
 * only uses what it has read if the state was SHOWN, with the same value, before and after. */
#include "boot/long_wait.h"
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "base/place.h"

enum { FREE, FILLED, SHOWN, STATES };

static _Atomic(weft_where_handler *) where_handler;

struct weft_long_wait *weft_long_wait_show(struct weft_control *control, int pe,
                                           const struct weft_long_wait_facts *facts) {
    struct weft_long_wait *wait = control->pe[pe].wait;
    for (struct weft_long_wait *end = wait + WEFT_LONG_WAITS; wait < end; wait++) {
        uint32_t state = atomic_load(&wait->state);
        if (state % STATES != FREE ||
            !atomic_compare_exchange_strong(&wait->state, &state, state + 1))
            continue;
        wait->facts = *facts;
        atomic_store(&wait->reported, 0);
        atomic_store(&wait->state, state + 2);
        return wait;
    }
    return NULL;
}

/* The state stays a multiple of STATES when it wraps around. Any PE may have overwritten it. */
void weft_long_wait_hide(struct weft_long_wait *wait) {
    uint32_t state = atomic_load(&wait->state);
    atomic_store(&wait->state, state < UINT32_MAX - STATES ? state - state % STATES + STATES : 0);
}

void weft_long_wait_write(struct weft_long_wait *wait, const struct weft_long_wait_facts *facts,
                          bool reported) {
    weft_long_wait_hide(wait);
    if (!facts)
        return;
    uint32_t state = atomic_load(&wait->state);
    atomic_store(&wait->state, state + FILLED);
    wait->facts = *facts;
    atomic_store(&wait->reported, reported);
    atomic_store(&wait->state, state + SHOWN);
}

bool weft_long_wait_read(struct weft_long_wait *wait, struct weft_long_wait_facts *facts) {
    uint32_t state = atomic_load(&wait->state);
    if (state % STATES != SHOWN)
        return false;
    *facts = wait->facts;
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load(&wait->state) != state)
        return false;
    weft_log_make_printable(facts->call, sizeof facts->call);
    weft_log_make_printable(facts->where, sizeof facts->where);
    weft_log_make_printable(facts->awaited, sizeof facts->awaited);
    return true;
}

/* Returns the state letter, which follows the program's name; the name is in parentheses and may
 * contain some itself. */
static char state_letter(int pid) {
    char path[32], line[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    char *known = file ? fgets(line, sizeof line, file) : NULL;
    char *name_end = known ? strrchr(line, ')') : NULL;
    if (file)
        fclose(file);
    return name_end && strlen(name_end) > 2 ? name_end[2] : '\0';
}

const char *weft_long_wait_activity(int pid) {
    switch (pid > 0 ? state_letter(pid) : '\0') {
    case 'R':
        return "runs";
    case 'S':
        return "sleeps";
    case 'D':
        return "waits for a device";
    case 'T':
        return "is stopped";
    case 't':
        return "is stopped by a debugger";
    default:
        return "";
    }
}

struct weft_long_wait_text weft_long_wait_call(const char *call, const char *where) {
    struct weft_long_wait_text made;
    const char *at = strstr(where, " at ");
    bool same = at && (size_t)(at - where) == strlen(call) && strncmp(where, call, at - where) == 0;
    const char *before = same ? "" : call, *between = at ? " (" : " at ";
    snprintf(made.text, sizeof made.text, "%s%s%s%s", before, same || !*where ? "" : between, where,
             at && !same ? ")" : "");
    return made;
}

void weft_long_wait_set_where_handler(weft_where_handler *handler) {
    atomic_store(&where_handler, handler);
}

bool weft_long_wait_where_handled(void) {
    return atomic_load(&where_handler) != NULL;
}

void weft_long_wait_where(char *where, size_t bytes) {
    weft_where_handler *handler = atomic_load(&where_handler);
    void *calls[WEFT_PLACE_CALLS];
    where[0] = '\0';
    if (handler)
        handler(where, bytes);
    else if (strcmp(weft_current_call, WEFT_NO_CALL) != 0 && weft_place_calls(calls) > 0)
        weft_place_write_call(calls[0], where, bytes);
    weft_log_make_printable(where, bytes);
}
