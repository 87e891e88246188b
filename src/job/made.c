/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/made.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/place.h"
#include "boot/long_wait.h"

static const struct {
    const char *one, *many, *state, *act;
} words[] = {
    [WEFT_MADE_OBJECT] = {"object", "objects", "not freed", "made"},
    [WEFT_MADE_TEAM] = {"team", "teams", "not destroyed", "made"},
    [WEFT_MADE_CONTEXT] = {"context", "contexts", "not destroyed", "made"},
    [WEFT_MADE_LOCK] = {"lock", "locks", "still held", "set"},
};

struct made {
    enum weft_made_kind kind;
    const void *what; /* NULL once listed */
    size_t bytes;
    const void *call; /* of a C program: the return address, or NULL if places are not reported */
    char *where;      /* the place as reported by the program's handler */
};

static struct {
    pthread_mutex_t mutex;
    struct made *all;
    size_t count, room;
    bool incomplete; /* some entries were dropped for lack of memory */
} kept = {.mutex = PTHREAD_MUTEX_INITIALIZER};

enum { LINES_MAX = 16 };

static void place_note(struct made *made) {
    void *calls[WEFT_PLACE_CALLS];
    char where[WEFT_PLACE_BYTES];
    if (weft_long_wait_where_handled()) {
        weft_long_wait_where(where, sizeof where);
        made->where = *where ? strdup(where) : NULL;
    } else if (weft_place_calls(calls) > 0) {
        made->call = calls[0];
    }
}

void weft_made_keep(enum weft_made_kind kind, const void *what, size_t bytes) {
    struct made made = {.kind = kind, .what = what, .bytes = bytes};
    place_note(&made);
    pthread_mutex_lock(&kept.mutex);
    if (kept.count == kept.room) {
        size_t room = kept.room ? 2 * kept.room : 64;
        struct made *more = realloc(kept.all, room * sizeof *more);
        kept.all = more ? more : kept.all;
        kept.room = more ? room : kept.room;
    }
    if (kept.count < kept.room) {
        kept.all[kept.count++] = made;
    } else {
        kept.incomplete = true;
        free(made.where);
    }
    pthread_mutex_unlock(&kept.mutex);
}

static void entry_remove(size_t i) {
    free(kept.all[i].where);
    kept.count--;
    memmove(&kept.all[i], &kept.all[i + 1], (kept.count - i) * sizeof *kept.all);
}

/* Searches from the end: most programs free what they made last. */
void weft_made_forget(enum weft_made_kind kind, const void *what) {
    pthread_mutex_lock(&kept.mutex);
    for (size_t i = kept.count; i-- > 0;)
        if (kept.all[i].kind == kind && kept.all[i].what == what) {
            entry_remove(i);
            break;
        }
    pthread_mutex_unlock(&kept.mutex);
}

void weft_made_sweep(enum weft_made_kind kind, bool (*is_alive)(const void *what)) {
    pthread_mutex_lock(&kept.mutex);
    for (size_t i = kept.count; i-- > 0;)
        if (kept.all[i].kind == kind && !is_alive(kept.all[i].what))
            entry_remove(i);
    pthread_mutex_unlock(&kept.mutex);
}

/* --- The list -------------------------------------------------------------------------------- */

static bool is_same_place(const struct made *a, const struct made *b) {
    return a->kind == b->kind && a->call == b->call &&
           strcmp(a->where ? a->where : "", b->where ? b->where : "") == 0;
}

/* Writes one line for all entries made at the same place as `first`. */
static void place_list(struct made *first) {
    char place[WEFT_PLACE_BYTES] = "", size[48] = "";
    size_t count = 0, bytes = 0;
    for (struct made *made = first; made < kept.all + kept.count; made++)
        if (made->what && is_same_place(made, first)) {
            count++;
            bytes += made->bytes;
            if (made != first)
                made->what = NULL;
        }
    if (first->where)
        snprintf(place, sizeof place, "%s", first->where);
    else if (first->call)
        weft_place_write_call(first->call, place, sizeof place);
    if (first->kind == WEFT_MADE_OBJECT)
        snprintf(size, sizeof size, ", %zu bytes%s", bytes, count > 1 ? " in all" : "");
    weft_note("%s at the end of the job: %zu %s%s (%s%p)%s%s%s%s", words[first->kind].state, count,
              count > 1 ? words[first->kind].many : words[first->kind].one, size,
              count > 1 ? "the first is " : "", first->what, *place ? ", " : "",
              *place ? words[first->kind].act : "", *place ? " in " : "", place);
    first->what = NULL;
}

void weft_made_list(void) {
    size_t lines = 0, more = 0;
    pthread_mutex_lock(&kept.mutex);
    for (size_t i = 0; i < kept.count; i++)
        if (kept.all[i].what && lines < LINES_MAX) {
            place_list(&kept.all[i]);
            lines++;
        } else if (kept.all[i].what) {
            more++;
        }
    if (more > 0)
        weft_note("and %zu more not freed at the end of the job", more);
    if (kept.incomplete)
        weft_note("this list is incomplete: there was no memory to record everything");
    while (kept.count > 0)
        free(kept.all[--kept.count].where);
    free(kept.all);
    kept.all = NULL;
    kept.room = 0;
    kept.incomplete = false;
    pthread_mutex_unlock(&kept.mutex);
}
