/* SPDX-License-Identifier: BSD-3-Clause */
/* A wait is looked at up to three times: to show it, to write the line, and where some PE shows
 * nothing, once more before that, because its wait may have been too short to be shown. */
#include "core/hang.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "boot/stall.h"
#include "core/job.h"
#include "core/team.h"
#include "core/wait.h"

enum {
    SHOWN_AFTER = 10, /* parts of the time after which the line comes */
    BUSY_MS = 20,     /* until the PE that tells just now has told */
    GROUPS_MAX = 6,
    NAMES_MAX = 4, /* of a group */
    TEXT_BYTES = 900,
};
enum look { SHOW, TELL, TELL_AGAIN, NEVER };

/* The time doubles with every line of this PE: a program whose PEs wait for long again and again
 * is not drowned in lines. */
static _Atomic uint64_t patience_ns;

/* --- Where a wait is ------------------------------------------------------------------------- */

/* The team in whose words the word lies, or NULL: all slots of all PEs look alike. */
static struct weft_team *team_of_word(const struct weft_word *word) {
    const struct weft_segment *scratch = &weft_windows.scratch;
    if (!word || (uintptr_t)word < scratch->base)
        return NULL;
    size_t offset = ((uintptr_t)word - scratch->base) % scratch->window.stride;
    size_t slot = offset / weft_team_slot_bytes();
    return slot < WEFT_TEAMS_MAX ? weft_team_in_slot((int)slot) : NULL;
}

/* Counts all that members of a team do together. */
static uint32_t round_of(const struct weft_team *team) {
    return team->barrier_epoch + team->farewell_epoch + team->post_epoch + team->packet_epoch;
}

static struct weft_stall_facts facts_of(const struct weft_waiter *waiter) {
    const struct weft_team *team = team_of_word(waiter->word);
    struct weft_stall_facts facts = {
        .pe = waiter->pe, .team = team ? team->slot : -1, .round = team ? round_of(team) : 0};
    snprintf(facts.call, sizeof facts.call, "%s", waiter->call);
    return facts;
}

/* Of a team or, where both are of none, of an active set. */
static bool is_same_call(const struct weft_stall_facts *a, const struct weft_stall_facts *b) {
    return a->team == b->team && a->round == b->round && strcmp(a->call, b->call) == 0;
}

/* --- What another PE does -------------------------------------------------------------------- */

/* A wait of `pe`: one on the same team rather than another. False: it shows none. */
static bool read_stall(int pe, int team, struct weft_stall_facts *facts, struct weft_stall **from) {
    struct weft_stall *stall = weft_job.control->pe[pe].stall;
    bool found = false;
    for (struct weft_stall *end = stall + WEFT_STALLS; stall < end; stall++) {
        struct weft_stall_facts theirs;
        if (!weft_stall_read(stall, &theirs) || (found && theirs.team != team))
            continue;
        *facts = theirs;
        *from = stall;
        found = true;
    }
    return found;
}

static void describe_stall(const struct weft_stall_facts *mine,
                           const struct weft_stall_facts *theirs, char *text, size_t bytes) {
    bool same_team = theirs->team >= 0 && theirs->team == mine->team;
    bool same_name = same_team && strcmp(theirs->call, mine->call) == 0;
    int32_t ahead = (int32_t)(theirs->round - mine->round);
    int at =
        snprintf(text, bytes, "in %s%s%s%s%s%s",
                 !same_name || ahead == 0 ? ""
                 : ahead < 0              ? "an earlier "
                                          : "a later ",
                 theirs->call, *theirs->where ? " (" : "", theirs->where, *theirs->where ? ")" : "",
                 theirs->team >= 0 && mine->team >= 0 && !same_team ? " of another team" : "");
    if (theirs->team < 0 && theirs->pe >= 0 && (size_t)at < bytes)
        snprintf(text + at, bytes - (size_t)at, ", where it waits for PE %d", theirs->pe);
}

static void describe_silent(int pe, char *text, size_t bytes) {
    const struct weft_control_pe *entry = &weft_job.control->pe[pe];
    uint32_t state = atomic_load((_Atomic uint32_t *)&entry->state);
    const char *activity = weft_stall_activity(atomic_load((_Atomic int32_t *)&entry->pid));
    if (state == WEFT_PE_ABSENT)
        snprintf(text, bytes, "before shmem_init");
    else if (state == WEFT_PE_LEFT)
        snprintf(text, bytes, "finalized");
    else
        snprintf(text, bytes, "in no call of Weft that lasts%s%s", *activity ? ": it " : "",
                 activity);
}

/* --- The line -------------------------------------------------------------------------------- */

/* PEs that do the same. */
struct group {
    char what[288], names[160];
    int count;
};

struct report {
    struct weft_stall_facts mine;
    const struct weft_team *team;     /* NULL: the wait is none of a team's */
    const struct weft_roster *roster; /* of the team, or of an active set */
    int npes;                         /* of those; 0: it is neither */
    struct group groups[GROUPS_MAX];
    int ngroups, others; /* PEs beyond the groups */
    int silent;          /* PEs that show nothing and are in the job */
    bool mismatch;       /* some PE is in another call of the team */
    bool told;           /* by another PE that waits in the same call */
};

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t bytes,
                                                         const char *format, ...) {
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, bytes - used, format, arguments);
    va_end(arguments);
}

static void add_to_group(struct report *report, int pe, const char *what) {
    struct group *group = report->groups;
    struct group *end = group + report->ngroups;
    while (group < end && strcmp(group->what, what) != 0)
        group++;
    if (group == report->groups + GROUPS_MAX) {
        report->others++;
        return;
    }
    if (group == end) {
        *group = (struct group){.count = 0};
        snprintf(group->what, sizeof group->what, "%s", what);
        report->ngroups++;
    }
    if (group->count++ < NAMES_MAX)
        append(group->names, sizeof group->names, "%sPE %d (pid %d)", group->count > 1 ? ", " : "",
               pe, (int)atomic_load(&weft_job.control->pe[pe].pid));
}

/* Whether the PE has done its part of what the wait is for, as far as the team's words say. */
static bool has_come(const struct weft_team *team, const struct weft_word *word, int member) {
    struct weft_team_words *theirs = weft_team_words_of(team, member);
    size_t offset = ((uintptr_t)word - weft_windows.scratch.base) %
                    weft_windows.scratch.window.stride % weft_team_slot_bytes();
    if (offset >= offsetof(struct weft_team_words, packets))
        return weft_word_reached(&theirs->packets[team->packet_epoch % WEFT_PACKETS].posted,
                                 team->packet_epoch) ||
               weft_word_reached(&theirs->packets_read, team->packet_epoch);
    if (offset == offsetof(struct weft_team_words, packets_read))
        return weft_word_reached(&theirs->packets_read, team->packet_epoch - WEFT_PACKETS);
    if (offset >= offsetof(struct weft_team_words, post) &&
        offset < offsetof(struct weft_team_words, progress))
        return weft_sync_posted((struct weft_team *)team, member);
    return false;
}

static void add_pe(struct report *report, int pe, bool also_same) {
    struct weft_stall_facts theirs;
    struct weft_stall *stall;
    char what[sizeof report->groups->what];
    if (!read_stall(pe, report->mine.team, &theirs, &stall)) {
        report->silent += atomic_load(&weft_job.control->pe[pe].state) == WEFT_PE_JOINED;
        describe_silent(pe, what, sizeof what);
    } else if (report->npes && is_same_call(&report->mine, &theirs)) {
        if (!also_same)
            return;
        snprintf(what, sizeof what, "in it, too: do their arguments differ? SHMEM_DEBUG=1 tells");
    } else {
        describe_stall(&report->mine, &theirs, what, sizeof what);
        report->mismatch |= theirs.team == report->mine.team && theirs.team >= 0 &&
                            strcmp(theirs.call, report->mine.call) != 0;
    }
    add_to_group(report, pe, what);
}

/* Whether a PE that waits in the same call has written the line. */
static bool is_told(const struct report *report) {
    struct weft_stall_facts theirs;
    struct weft_stall *stall;
    for (int member = 0; member < report->npes; member++) {
        int pe = weft_roster_pe(report->roster, member);
        if (pe != weft_job.pe && read_stall(pe, report->mine.team, &theirs, &stall) &&
            is_same_call(&report->mine, &theirs) && atomic_load(&stall->told))
            return true;
    }
    return false;
}

/* The members that have not come; where all seem to have, the one that is waited for. */
static void add_members(struct report *report, const struct weft_waiter *waiter) {
    report->told = is_told(report);
    for (int member = 0; member < report->npes; member++) {
        int pe = weft_roster_pe(report->roster, member);
        if (pe != weft_job.pe && !(report->team && has_come(report->team, waiter->word, member)))
            add_pe(report, pe, false);
    }
    if (report->ngroups == 0)
        add_pe(report, waiter->pe, true);
}

static void add_all(struct report *report) {
    for (int pe = 0; pe < weft_job.npes; pe++)
        if (pe != weft_job.pe)
            add_pe(report, pe, false);
}

static struct report report_of(const struct weft_waiter *waiter) {
    struct report report = {.team = team_of_word(waiter->word),
                            .mine = facts_of(waiter),
                            .roster = waiter->roster,
                            .npes = waiter->npes};
    if (report.team) {
        report.roster = &report.team->roster;
        report.npes = report.team->npes;
    }
    if (report.npes)
        add_members(&report, waiter);
    else if (waiter->pe >= 0)
        add_pe(&report, waiter->pe, false);
    else if (waiter->pe == WEFT_PE_ANY)
        add_all(&report);
    return report;
}

static const char *awaited_text(const struct weft_waiter *waiter) {
    if (waiter->pe == WEFT_PE_NONE)
        return " for a GPU";
    if (waiter->pe != WEFT_PE_ANY || waiter->roster)
        return " for ";
    return weft_job.npes > 1 ? " for any PE: " : ", and there is no other PE";
}

static void tell(const struct weft_waiter *waiter, const struct report *report, uint64_t now_ns) {
    const char *where = waiter->stall ? waiter->stall->facts.where : "";
    char text[TEXT_BYTES] = "";
    append(text, sizeof text, "%s%s%s%s has waited %.3g s%s", waiter->call, *where ? " (" : "",
           where, *where ? ")" : "", (double)(now_ns - waiter->since_ns) * 1e-9,
           awaited_text(waiter));
    for (int i = 0; i < report->ngroups; i++) {
        const struct group *group = &report->groups[i];
        append(text, sizeof text, "%s%s", i ? "; " : "", group->names);
        if (group->count > NAMES_MAX)
            append(text, sizeof text, " and %d more", group->count - NAMES_MAX);
        append(text, sizeof text, ", which %s %s", group->count > 1 ? "are" : "is", group->what);
    }
    if (report->others)
        append(text, sizeof text, "; and %d other PEs", report->others);
    if (report->mismatch)
        append(text, sizeof text,
               ". These are different collective calls: all members of a team must make the same "
               "ones in the same order");
    weft_note("%s (WEFT_HANG_SECONDS sets the time)", text);
}

/* --- The watch ------------------------------------------------------------------------------- */

static void show(struct weft_waiter *waiter) {
    struct weft_stall_facts facts = facts_of(waiter);
    weft_stall_where(facts.where, sizeof facts.where);
    waiter->stall = weft_stall_show(weft_job.control, weft_job.pe, &facts);
}

/* One PE at a time, so that of several which wait in one call one alone writes the line. False:
 * not yet. */
static bool try_tell(struct weft_waiter *waiter, uint64_t now_ns) {
    _Atomic uint32_t *telling = &weft_job.control->telling;
    uint32_t nobody = 0;
    if (!atomic_compare_exchange_strong(telling, &nobody, (uint32_t)weft_job.pe + 1))
        return false;
    struct report report = report_of(waiter);
    bool told = waiter->looks == TELL_AGAIN || report.silent == 0;
    if (told && !report.told) {
        tell(waiter, &report, now_ns);
        atomic_store(&patience_ns, 2 * atomic_load(&patience_ns));
    }
    if (told && waiter->stall)
        atomic_store(&waiter->stall->told, 1);
    atomic_store(telling, 0);
    if (!told)
        waiter->looks = TELL_AGAIN;
    return told;
}

static void look(struct weft_waiter *waiter, uint64_t now_ns) {
    uint64_t shown_ns = weft_wait_watch.after_ns;
    switch ((enum look)waiter->looks) {
    case SHOW:
        show(waiter);
        waiter->looks = TELL;
        waiter->look_ns = waiter->since_ns + atomic_load(&patience_ns);
        break;
    case TELL:
        waiter->look_ns = now_ns + BUSY_MS * UINT64_C(1000000);
        if (try_tell(waiter, now_ns))
            waiter->looks = NEVER;
        else if (waiter->looks == TELL_AGAIN)
            waiter->look_ns = now_ns + shown_ns + shown_ns / 4;
        break;
    case TELL_AGAIN:
        waiter->look_ns = now_ns + BUSY_MS * UINT64_C(1000000);
        if (try_tell(waiter, now_ns))
            waiter->looks = NEVER;
        break;
    case NEVER:
        waiter->look_ns = UINT64_MAX;
    }
}

/* A signal handler that makes a collective call within one on the same team has counted up what
 * its peers have not: neither comes to its end. The words of shmem_finalize are others; exit() may
 * be called from there. */
static void refuse_nested(const struct weft_waiter *waiter) {
    const struct weft_team *team = team_of_word(waiter->word);
    const struct weft_word *farewell = team ? team->words->rounds[1] : NULL;
    bool parts = farewell && waiter->word >= farewell && waiter->word < farewell + WEFT_SYNC_ROUNDS;
    if (team && !parts && team == team_of_word(waiter->outer->word))
        weft_job_panic("%s: called within %s on the same team, which this thread is waiting in: a "
                       "signal handler must not make collective calls; set a flag in it, and call "
                       "behind %s",
                       waiter->call, waiter->outer->call, waiter->outer->call);
}

void weft_hang_watch(void) {
    patience_ns = (uint64_t)(weft_env.hang_seconds * 1e9);
    weft_wait_watch = (struct weft_wait_watch){.look = patience_ns ? look : NULL,
                                               .nested = refuse_nested,
                                               .after_ns = patience_ns / SHOWN_AFTER};
}
