/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports long waits: which PE waits, for which PE, and what that one is doing meanwhile. None of
 * this is executed in a short wait.
 *
 * A long wait is looked at two to four times: first to show it in the control page
 * (boot/long_wait.h), then to write the line. If some PE shows nothing, the line is delayed once,
 * because that PE's wait may have been too short to be shown. Among PEs on several hosts that wait
 * in the same call, the host of the lowest-numbered PE writes first, and the others look once more,
 * because it takes a moment until other hosts know that the line was written. */
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/env.h"
#include "boot/long_wait.h"
#include "boot/wait_report.h"
#include "core/awaited.h"
#include "core/team.h"

enum look { SHOW, REPORT, REPORT_AGAIN, REPORT_LAST };
enum { HEARD_MS = 300 }; /* the delay of other hosts' states, between two looks */

/* --- The place of a wait ---------------------------------------------------------------------- */

/* Returns the team whose words contain `word`, or NULL. All slots of all PEs have the same
 * layout. */
static struct weft_team *team_of_word(const struct weft_word *word) {
    const struct weft_window *scratch = &weft_windows.scratch.window;
    size_t offset;
    if (weft_window_slot_of(scratch, word, &offset) >= scratch->count)
        return NULL;
    size_t slot = offset / weft_team_slot_bytes();
    return slot < WEFT_TEAMS_MAX ? weft_team_in_slot((int)slot) : NULL;
}

/* Returns a count of all joint operations of the team's members. */
static uint32_t round_of(const struct weft_team *team) {
    return team->barrier_epoch + team->closing_epoch + team->post_epoch + team->packet_epoch;
}

static struct weft_long_wait_facts facts_of(const struct weft_waiter *waiter) {
    const struct weft_team *team = team_of_word(waiter->word);
    struct weft_long_wait_facts facts = {.pe = waiter->pe,
                                         .team = team ? team->slot : WEFT_LONG_WAIT_NO_TEAM,
                                         .round = team ? round_of(team) : 0};
    snprintf(facts.call, sizeof facts.call, "%s", weft_current_call);
    return facts;
}

/* Compares calls on a team or, if neither is on a team, on active sets. */
static bool is_same_call(const struct weft_long_wait_facts *a,
                         const struct weft_long_wait_facts *b) {
    return a->team == b->team && a->round == b->round && strcmp(a->call, b->call) == 0;
}

/* --- The call of another PE ------------------------------------------------------------------- */

/* Reads a wait that `pe` shows, preferably one on the same team. Returns false if it shows none. */
static bool shown_read(int pe, int team, struct weft_long_wait_facts *facts,
                       struct weft_long_wait **from) {
    struct weft_long_wait *shown = weft_job.control->pe[pe].wait;
    bool found = false;
    for (struct weft_long_wait *end = shown + WEFT_LONG_WAITS; shown < end; shown++) {
        struct weft_long_wait_facts theirs;
        if (!weft_long_wait_read(shown, &theirs) || (found && theirs.team != team))
            continue;
        *facts = theirs;
        *from = shown;
        found = true;
    }
    return found;
}

static void describe_long_wait(const struct weft_long_wait_facts *mine,
                               const struct weft_long_wait_facts *theirs, char *text,
                               size_t bytes) {
    bool same_team = theirs->team >= 0 && theirs->team == mine->team;
    bool same_name = same_team && strcmp(theirs->call, mine->call) == 0;
    int32_t ahead = (int32_t)(theirs->round - mine->round);
    int at = snprintf(text, bytes, "in %s%s%s",
                      !same_name || ahead == 0 ? ""
                      : ahead < 0              ? "an earlier "
                                               : "a later ",
                      weft_long_wait_call(theirs->call, theirs->where).text,
                      theirs->team >= 0 && mine->team >= 0 && !same_team ? " of another team" : "");
    if (theirs->team < 0 && theirs->pe >= 0 && (size_t)at < bytes)
        at += snprintf(text + at, bytes - (size_t)at, ", where it waits for PE %d", theirs->pe);
    if (*theirs->awaited && (size_t)at < bytes)
        snprintf(text + at, bytes - (size_t)at, ": %s", theirs->awaited);
}

/* --- The line -------------------------------------------------------------------------------- */

struct report {
    struct weft_long_wait_facts mine;
    const struct weft_team *team;               /* NULL if the wait is not on a team */
    const struct weft_member_list *member_list; /* of the team or active set */
    int npes;                                   /* of the team or active set, or 0 */
    struct weft_wait_report groups;
    bool mismatch; /* some PE is in a different call on the team */
    bool reported; /* another PE in the same call has written the line */
    bool later;    /* the first PE that waits in the call is on another host */
};

/* Returns whether the word announces a post: in a near member's own words, or in the inbox for a
 * far one. */
static bool is_of_post(const struct weft_team *team, size_t offset) {
    size_t inbox = team->far ? (size_t)((char *)team->inbox - (char *)team->words) : SIZE_MAX;
    if (offset >= inbox)
        return (offset - inbox) % sizeof *team->inbox < offsetof(struct weft_inbox, progress);
    return offset >= offsetof(struct weft_team_words, post) &&
           offset < offsetof(struct weft_team_words, progress);
}

/* Returns whether the member has done its part of the awaited operation, as far as the team's words
 * show. Only the posts among a far member's words are visible here. */
static bool has_come(const struct weft_team *team, const struct weft_word *word, int member) {
    size_t offset = 0;
    weft_window_slot_of(&weft_windows.scratch.window, word, &offset);
    offset %= weft_team_slot_bytes();
    if (is_of_post(team, offset))
        return weft_sync_posted((struct weft_team *)team, member);
    if (weft_team_member_is_far(team, member))
        return false;
    struct weft_team_words *theirs = weft_team_words_of(team, member);
    if (offset >= offsetof(struct weft_team_words, packets))
        return weft_word_reached(&theirs->packets[team->packet_epoch % WEFT_PACKETS].posted,
                                 team->packet_epoch) ||
               weft_word_reached(&theirs->packets_read, team->packet_epoch);
    if (offset == offsetof(struct weft_team_words, packets_read))
        return weft_word_reached(&theirs->packets_read, team->packet_epoch - WEFT_PACKETS);
    return false;
}

static void add_pe(struct report *report, int pe, bool also_same) {
    struct weft_long_wait_facts theirs;
    struct weft_long_wait *shown;
    char what[WEFT_WAIT_REPORT_WHAT_BYTES];
    if (!shown_read(pe, report->mine.team, &theirs, &shown)) {
        weft_wait_report_add_silent(&report->groups, weft_job.control, pe);
        return;
    }
    if (report->npes && is_same_call(&report->mine, &theirs)) {
        if (!also_same)
            return;
        snprintf(what, sizeof what,
                 "in this call, too: do their arguments differ? SHMEM_DEBUG=1 checks that");
    } else {
        describe_long_wait(&report->mine, &theirs, what, sizeof what);
        report->mismatch |= theirs.team == report->mine.team && theirs.team >= 0 &&
                            strcmp(theirs.call, report->mine.call) != 0;
    }
    weft_wait_report_add(&report->groups, weft_job.control, pe, "is", what);
}

/* Checks whether a PE that waits in the same call has written the line, or should write it
 * first. */
static void look_at_others(struct report *report) {
    struct weft_long_wait_facts theirs;
    struct weft_long_wait *shown;
    int first = weft_job.pe;
    for (int member = 0; member < report->npes; member++) {
        int pe = weft_member_pe(report->member_list, member);
        if (pe == weft_job.pe || !shown_read(pe, report->mine.team, &theirs, &shown) ||
            !is_same_call(&report->mine, &theirs))
            continue;
        first = pe < first ? pe : first;
        report->reported |= atomic_load(&shown->reported) != 0;
    }
    report->later = !weft_boot_is_here(first);
}

/* Adds the members that have not arrived. If all seem to have, adds the one that is waited for. */
static void add_members(struct report *report, const struct weft_waiter *waiter) {
    look_at_others(report);
    for (int member = 0; member < report->npes; member++) {
        int pe = weft_member_pe(report->member_list, member);
        if (pe != weft_job.pe && !(report->team && has_come(report->team, waiter->word, member)))
            add_pe(report, pe, false);
    }
    if (report->groups.ngroups == 0)
        add_pe(report, waiter->pe, true);
}

static struct report report_of(const struct weft_waiter *waiter) {
    struct report report = {.team = team_of_word(waiter->word),
                            .mine = facts_of(waiter),
                            .member_list = waiter->member_list,
                            .npes = waiter->npes};
    if (report.team) {
        report.member_list = &report.team->member_list;
        report.npes = report.team->npes;
    }
    if (report.npes)
        add_members(&report, waiter);
    else if (waiter->pe >= 0)
        add_pe(&report, waiter->pe, false);
    else if (waiter->pe == WEFT_PE_ANY)
        for (int pe = 0; pe < weft_job.npes; pe++)
            if (pe != weft_job.pe)
                add_pe(&report, pe, false);
    return report;
}

/* Appends the present values of the words that are waited for. */
static void append_awaited(const struct weft_waiter *waiter, const char *between, char *text,
                           size_t bytes) {
    char awaited[sizeof((struct weft_long_wait_facts *)0)->awaited];
    if (!waiter->awaited)
        return;
    waiter->awaited->write(waiter->awaited, awaited, sizeof awaited);
    weft_wait_report_append(text, bytes, "%s%s", between, awaited);
}

/* Appends the case that any PE may end the wait. */
static void append_anybody(const struct weft_waiter *waiter, const struct report *report,
                           char *text, size_t bytes) {
    append_awaited(waiter, ": ", text, bytes);
    if (weft_job.npes == 1) {
        weft_wait_report_append(text, bytes, ", and there is no other PE");
        return;
    }
    weft_wait_report_append(text, bytes, "; any PE may %s. ",
                            waiter->awaited ? "send it" : "end it");
    weft_wait_report_write(&report->groups, " ", text, bytes);
}

static void report_write(const struct weft_waiter *waiter, const struct report *report,
                         uint64_t now_ns) {
    const char *where = waiter->shown ? waiter->shown->facts.where : "";
    char text[WEFT_WAIT_REPORT_TEXT_BYTES] = "";
    weft_wait_report_append(text, sizeof text, "%s has waited %.3g s",
                            weft_long_wait_call(weft_current_call, where).text,
                            (double)(now_ns - waiter->since_ns) * 1e-9);
    if (waiter->pe == WEFT_PE_ANY && !waiter->member_list) {
        append_anybody(waiter, report, text, sizeof text);
    } else {
        weft_wait_report_append(text, sizeof text,
                                waiter->pe == WEFT_PE_NONE ? " for a GPU" : " for ");
        weft_wait_report_write(&report->groups, ", which ", text, sizeof text);
        append_awaited(waiter, "; ", text, sizeof text);
    }
    if (report->mismatch)
        weft_wait_report_append(
            text, sizeof text,
            ". These are different collective calls: all members of a team must make the same "
            "ones in the same order");
    weft_note("%s (WEFT_HANG_SECONDS sets the time)", text);
}

/* --- The watch ------------------------------------------------------------------------------- */

static void show(struct weft_waiter *waiter) {
    struct weft_long_wait_facts facts = facts_of(waiter);
    weft_long_wait_where(facts.where, sizeof facts.where);
    if (waiter->awaited)
        waiter->awaited->write(waiter->awaited, facts.awaited, sizeof facts.awaited);
    waiter->shown = weft_long_wait_show(weft_job.control, weft_job.pe, &facts);
}

/* Writes the line unless another PE of the call has; returns whether the report is finished.
 * Only one PE of a host at a time does this, so that of several waiting in one call a single one
 * writes the line. */
static bool try_report(struct weft_waiter *waiter, uint64_t now_ns) {
    if (!weft_wait_report_begin(weft_job.control, weft_job.pe, &waiter->failures))
        return false;
    struct report report = report_of(waiter);
    bool complete = report.later ? waiter->looks == REPORT_LAST
                                 : waiter->looks > REPORT || report.groups.silent == 0;
    if (complete && !report.reported) {
        report_write(waiter, &report, now_ns);
        weft_wait_report_count_line();
    }
    if (complete && waiter->shown)
        atomic_store(&waiter->shown->reported, 1);
    weft_wait_report_end(weft_job.control, weft_job.pe);
    waiter->looks += !complete;
    return complete;
}

static void look(struct weft_waiter *waiter, uint64_t now_ns) {
    uint64_t shown_ns = weft_wait_watch.after_ns, heard_ns = HEARD_MS * WEFT_NS_PER_MS;
    uint64_t later_ns = shown_ns + shown_ns / 4;
    if (weft_boot_nhosts() > 1 && later_ns < heard_ns)
        later_ns = heard_ns;
    enum look now = waiter->looks;
    if (now == SHOW) {
        show(waiter);
        waiter->looks = REPORT;
        waiter->look_ns = waiter->since_ns + weft_wait_report_patience_ns();
    } else if (try_report(waiter, now_ns)) {
        waiter->look_ns = UINT64_MAX;
    } else {
        waiter->look_ns = waiter->looks != now ? now_ns + later_ns
                                               : now_ns + WEFT_WAIT_REPORT_BUSY_MS * WEFT_NS_PER_MS;
    }
}

/* Ends the job if a signal handler makes a collective call within one on the same team: this PE has
 * already counted an operation that its peers have not, so neither call would end. The last barrier
 * of shmem_finalize has words of its own, so exit() may be called in a handler. */
static void refuse_nested(const struct weft_waiter *waiter) {
    const struct weft_team *team = team_of_word(waiter->word);
    if (team && !weft_sync_closes(team, waiter->word) && team == team_of_word(waiter->outer->word))
        weft_job_panic(
            "called within %s on the same team, which this thread is waiting in: a signal handler "
            "must not make collective calls; set a flag in it, and make the call after %s",
            waiter->outer->call, waiter->outer->call);
}

void weft_hang_watch(void) {
    uint64_t patience_ns = (uint64_t)(weft_env.hang_seconds * 1e9);
    weft_wait_watch =
        (struct weft_wait_watch){.look = patience_ns ? look : NULL,
                                 .nested = refuse_nested,
                                 .after_ns = patience_ns / WEFT_WAIT_REPORT_SHOWN_AFTER};
}
