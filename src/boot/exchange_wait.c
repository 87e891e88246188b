/* SPDX-License-Identifier: BSD-3-Clause */
/* A PE that waits in an exchange cannot see which contributions have arrived. But each PE publishes
 * its wait after a while, so a member that has published no wait at two looks in a row is late. */
#include "boot/exchange_wait.h"
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "boot/attachment.h"
#include "boot/long_wait.h"
#include "boot/wait_report.h"

enum look { SHOW, TELL, TELL_AGAIN, NEVER };

static struct weft_control_pe *wait_entry(int pe) {
    return &weft_attachment.control->pe[pe];
}

static int wait_member(const struct weft_exchange_wait *wait, int i) {
    return wait->pes ? wait->pes[i] : i;
}

static bool long_wait_is_same(const struct weft_exchange_wait *wait,
                              const struct weft_long_wait_facts *theirs) {
    return theirs->team == WEFT_LONG_WAIT_EXCHANGE && theirs->round == wait->which &&
           strcmp(theirs->call, weft_current_call) == 0;
}

/* Finds a published wait of the PE: its wait in this exchange if there is one, otherwise another
 * one, otherwise NULL. */
static struct weft_long_wait *long_wait_find(const struct weft_exchange_wait *wait, int pe,
                                             struct weft_long_wait_facts *facts) {
    struct weft_long_wait *shown = wait_entry(pe)->wait, *found = NULL;
    for (struct weft_long_wait *end = shown + WEFT_LONG_WAITS; shown < end; shown++) {
        struct weft_long_wait_facts theirs;
        if (!weft_long_wait_read(shown, &theirs) || (found && !long_wait_is_same(wait, &theirs)))
            continue;
        *facts = theirs;
        found = shown;
    }
    return found;
}

static void wait_add_pe(struct weft_wait_report *report, const struct weft_exchange_wait *wait,
                        int pe) {
    struct weft_long_wait_facts theirs;
    char what[WEFT_WAIT_REPORT_WHAT_BYTES];
    if (!long_wait_find(wait, pe, &theirs)) {
        weft_wait_report_add_silent(report, weft_attachment.control, pe);
        return;
    }
    const char *activity =
        weft_boot_is_here(pe) ? weft_long_wait_activity(atomic_load(&wait_entry(pe)->pid)) : "";
    bool here = long_wait_is_same(wait, &theirs);
    if (here && strncmp(activity, "is stopped", 10) != 0)
        return;
    if (here)
        snprintf(what, sizeof what, "in it, too, and %s", activity);
    else
        snprintf(what, sizeof what, "in %s", weft_long_wait_call(theirs.call, theirs.where).text);
    weft_wait_report_add(report, weft_attachment.control, pe, "is", what);
}

/* Returns whether another PE that waits in this exchange has logged the line. */
static bool wait_is_reported(const struct weft_exchange_wait *wait) {
    struct weft_long_wait_facts theirs;
    for (int i = 0; i < wait->count; i++) {
        int pe = wait_member(wait, i);
        struct weft_long_wait *shown =
            pe != weft_attachment.pe ? long_wait_find(wait, pe, &theirs) : NULL;
        if (shown && long_wait_is_same(wait, &theirs) && atomic_load(&shown->reported))
            return true;
    }
    return false;
}

static void wait_tell(const struct weft_exchange_wait *wait, const struct weft_wait_report *report,
                      uint64_t now_ns) {
    const char *where = wait->shown ? wait->shown->facts.where : "";
    char text[WEFT_WAIT_REPORT_TEXT_BYTES] = "";
    weft_wait_report_append(text, sizeof text, "%s has waited %.3g s for ",
                            weft_long_wait_call(weft_current_call, where).text,
                            (double)(now_ns - wait->since_ns) * 1e-9);
    if (report->ngroups)
        weft_wait_report_write(report, ", which ", text, sizeof text);
    else
        weft_wait_report_append(text, sizeof text, "%s, although all PEs have arrived",
                                wait->server);
    weft_note("%s (WEFT_HANG_SECONDS sets the time)", text);
    weft_wait_report_count_line();
}

/* Returns false if another PE has the turn to report. */
static bool wait_try_tell(struct weft_exchange_wait *wait, uint64_t now_ns) {
    struct weft_wait_report report = {.ngroups = 0};
    if (!weft_wait_report_begin(weft_attachment.control, weft_attachment.pe, &wait->failures))
        return false;
    for (int i = 0; i < wait->count; i++)
        if (wait_member(wait, i) != weft_attachment.pe)
            wait_add_pe(&report, wait, wait_member(wait, i));
    bool complete = wait->looks == TELL_AGAIN || report.silent == 0;
    if (complete && !wait_is_reported(wait))
        wait_tell(wait, &report, now_ns);
    if (complete && wait->shown)
        atomic_store(&wait->shown->reported, 1);
    weft_wait_report_end(weft_attachment.control, weft_attachment.pe);
    wait->looks = complete ? NEVER : TELL_AGAIN;
    return true;
}

static void wait_show(struct weft_exchange_wait *wait) {
    struct weft_long_wait_facts facts = {
        .pe = -1, .team = WEFT_LONG_WAIT_EXCHANGE, .round = wait->which};
    snprintf(facts.call, sizeof facts.call, "%s", weft_current_call);
    weft_long_wait_where(facts.where, sizeof facts.where);
    wait->shown = weft_long_wait_show(weft_attachment.control, weft_attachment.pe, &facts);
}

static void wait_look(struct weft_exchange_wait *wait, uint64_t now_ns) {
    uint64_t patience_ns = weft_wait_report_patience_ns();
    if (wait->looks == SHOW) {
        wait_show(wait);
        wait->looks = TELL;
        wait->look_ns = wait->since_ns + patience_ns;
    } else if (!wait_try_tell(wait, now_ns)) {
        wait->look_ns = now_ns + WEFT_WAIT_REPORT_BUSY_MS * WEFT_NS_PER_MS;
    } else {
        uint64_t again_ns = patience_ns / WEFT_WAIT_REPORT_SHOWN_AFTER * 5 / 4;
        wait->look_ns = wait->looks == TELL_AGAIN ? now_ns + again_ns : UINT64_MAX;
    }
}

void weft_exchange_wait_turn(struct weft_exchange_wait *wait) {
    uint64_t now_ns = weft_clock_ns();
    if (wait->since_ns == 0) {
        uint64_t patience_ns = weft_wait_report_patience_ns();
        wait->since_ns = now_ns;
        wait->look_ns =
            patience_ns ? now_ns + patience_ns / WEFT_WAIT_REPORT_SHOWN_AFTER : UINT64_MAX;
    }
    if (now_ns >= wait->look_ns)
        wait_look(wait, now_ns);
}

void weft_exchange_wait_end(struct weft_exchange_wait *wait) {
    if (wait->shown)
        weft_long_wait_hide(wait->shown);
    wait->shown = NULL;
}
