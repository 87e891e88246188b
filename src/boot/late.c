/* SPDX-License-Identifier: BSD-3-Clause */
/* A PE that waits in an exchange is not told which others are in it. But each PE shows its wait
 * after a while, so a member that shows none, twice in a row, is late. */
#include "boot/late.h"
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "boot/attachment.h"
#include "boot/stall.h"
#include "boot/tally.h"

enum look { SHOW, TELL, TELL_AGAIN, NEVER };

static struct weft_control_pe *late_entry(int pe) {
    return &weft_attachment.control->pe[pe];
}

static int late_member(const struct weft_late *late, int i) {
    return late->pes ? late->pes[i] : i;
}

static bool stall_is_same(const struct weft_late *late, const struct weft_stall_facts *theirs) {
    return theirs->team == WEFT_STALL_EXCHANGE && theirs->round == late->which &&
           strcmp(theirs->call, weft_current_call) == 0;
}

/* Finds what the PE shows: this wait if it has come to it, or else another one, or NULL for none.
 */
static struct weft_stall *stall_find(const struct weft_late *late, int pe,
                                     struct weft_stall_facts *facts) {
    struct weft_stall *stall = late_entry(pe)->stall, *found = NULL;
    for (struct weft_stall *end = stall + WEFT_STALLS; stall < end; stall++) {
        struct weft_stall_facts theirs;
        if (!weft_stall_read(stall, &theirs) || (found && !stall_is_same(late, &theirs)))
            continue;
        *facts = theirs;
        found = stall;
    }
    return found;
}

static void late_add_pe(struct weft_tally *tally, const struct weft_late *late, int pe) {
    struct weft_stall_facts theirs;
    char what[WEFT_TALLY_WHAT_BYTES];
    if (!stall_find(late, pe, &theirs)) {
        weft_tally_add_silent(tally, weft_attachment.control, pe);
        return;
    }
    const char *activity =
        weft_boot_is_here(pe) ? weft_stall_activity(atomic_load(&late_entry(pe)->pid)) : "";
    bool here = stall_is_same(late, &theirs);
    if (here && strncmp(activity, "is stopped", 10) != 0)
        return;
    if (here)
        snprintf(what, sizeof what, "in it, too, and %s", activity);
    else
        snprintf(what, sizeof what, "in %s", weft_stall_call(theirs.call, theirs.where).text);
    weft_tally_add(tally, weft_attachment.control, pe, "is", what);
}

/* True if another PE that waits in this exchange has written the line. */
static bool late_is_reported(const struct weft_late *late) {
    struct weft_stall_facts theirs;
    for (int i = 0; i < late->count; i++) {
        int pe = late_member(late, i);
        struct weft_stall *stall = pe != weft_attachment.pe ? stall_find(late, pe, &theirs) : NULL;
        if (stall && stall_is_same(late, &theirs) && atomic_load(&stall->reported))
            return true;
    }
    return false;
}

static void late_tell(const struct weft_late *late, const struct weft_tally *tally,
                      uint64_t now_ns) {
    const char *where = late->stall ? late->stall->facts.where : "";
    char text[WEFT_TALLY_TEXT_BYTES] = "";
    weft_tally_append(text, sizeof text, "%s has waited %.3g s for ",
                      weft_stall_call(weft_current_call, where).text,
                      (double)(now_ns - late->since_ns) * 1e-9);
    if (tally->ngroups)
        weft_tally_write(tally, ", which ", text, sizeof text);
    else
        weft_tally_append(text, sizeof text, "%s, and all PEs are here", late->server);
    weft_note("%s (WEFT_HANG_SECONDS sets the time)", text);
    weft_tally_count_line();
}

/* False: another PE has its turn. */
static bool late_try_tell(struct weft_late *late, uint64_t now_ns) {
    struct weft_tally tally = {.ngroups = 0};
    if (!weft_tally_begin(weft_attachment.control, weft_attachment.pe, &late->failures))
        return false;
    for (int i = 0; i < late->count; i++)
        if (late_member(late, i) != weft_attachment.pe)
            late_add_pe(&tally, late, late_member(late, i));
    bool complete = late->looks == TELL_AGAIN || tally.silent == 0;
    if (complete && !late_is_reported(late))
        late_tell(late, &tally, now_ns);
    if (complete && late->stall)
        atomic_store(&late->stall->reported, 1);
    weft_tally_end(weft_attachment.control, weft_attachment.pe);
    late->looks = complete ? NEVER : TELL_AGAIN;
    return true;
}

static void late_show(struct weft_late *late) {
    struct weft_stall_facts facts = {.pe = -1, .team = WEFT_STALL_EXCHANGE, .round = late->which};
    snprintf(facts.call, sizeof facts.call, "%s", weft_current_call);
    weft_stall_where(facts.where, sizeof facts.where);
    late->stall = weft_stall_show(weft_attachment.control, weft_attachment.pe, &facts);
}

static void late_look(struct weft_late *late, uint64_t now_ns) {
    uint64_t patience_ns = weft_tally_patience_ns();
    if (late->looks == SHOW) {
        late_show(late);
        late->looks = TELL;
        late->look_ns = late->since_ns + patience_ns;
    } else if (!late_try_tell(late, now_ns)) {
        late->look_ns = now_ns + WEFT_TALLY_BUSY_MS * WEFT_NS_PER_MS;
    } else {
        uint64_t again_ns = patience_ns / WEFT_TALLY_SHOWN_AFTER * 5 / 4;
        late->look_ns = late->looks == TELL_AGAIN ? now_ns + again_ns : UINT64_MAX;
    }
}

void weft_late_turn(struct weft_late *late) {
    uint64_t now_ns = weft_clock_ns();
    if (late->since_ns == 0) {
        uint64_t patience_ns = weft_tally_patience_ns();
        late->since_ns = now_ns;
        late->look_ns = patience_ns ? now_ns + patience_ns / WEFT_TALLY_SHOWN_AFTER : UINT64_MAX;
    }
    if (now_ns >= late->look_ns)
        late_look(late, now_ns);
}

void weft_late_end(struct weft_late *late) {
    if (late->stall)
        weft_stall_hide(late->stall);
    late->stall = NULL;
}
