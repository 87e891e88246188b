/* SPDX-License-Identifier: BSD-3-Clause */
/* The turn is a word of the control page: 1 + the PE that has it. If a PE has lost its turn and
 * continues, two PEs may report: then there are two lines, which does no harm. */
#include "boot/wait_report.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/env.h"
#include "boot/long_wait.h"

enum {
    NAMES_MAX = 4,      /* PEs named in a group */
    FAILURES_MAX = 20,  /* of some 100 ms each, the period with which waits sleep */
    DOUBLINGS_MAX = 20, /* of the time limit, which is then a hundred days */
};

static _Atomic unsigned lines; /* logged by this PE */

void weft_wait_report_append(char *text, size_t bytes, const char *format, ...) {
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, bytes - used, format, arguments);
    va_end(arguments);
}

static void names_add(struct weft_wait_report_group *group, const struct weft_control *control,
                      int pe) {
    int pid = atomic_load((_Atomic int32_t *)&control->pe[pe].pid);
    weft_wait_report_append(group->names, sizeof group->names, "%sPE %d",
                            group->count > 1 ? ", " : "", pe);
    if (pid > 0)
        weft_wait_report_append(group->names, sizeof group->names, " (pid %d%s)", pid,
                                weft_boot_on(pe).text);
}

void weft_wait_report_add(struct weft_wait_report *report, const struct weft_control *control,
                          int pe, const char *verb, const char *what) {
    struct weft_wait_report_group *group = report->group, *end = group + report->ngroups;
    while (group < end && (strcmp(group->verb, verb) != 0 || strcmp(group->what, what) != 0))
        group++;
    if (group == report->group + WEFT_WAIT_REPORT_GROUPS) {
        report->others++;
        return;
    }
    if (group == end) {
        *group = (struct weft_wait_report_group){.verb = verb};
        snprintf(group->what, sizeof group->what, "%s", what);
        report->ngroups++;
    }
    if (group->count++ < NAMES_MAX)
        names_add(group, control, pe);
}

void weft_wait_report_add_silent(struct weft_wait_report *report,
                                 const struct weft_control *control, int pe) {
    const struct weft_control_pe *entry = &control->pe[pe];
    uint32_t state = atomic_load((_Atomic uint32_t *)&entry->state);
    bool here = weft_boot_is_here(pe);
    const char *activity =
        here ? weft_long_wait_activity(atomic_load((_Atomic int32_t *)&entry->pid)) : "";
    const char *verb = "has", *what = "not called shmem_init";
    char text[WEFT_WAIT_REPORT_WHAT_BYTES];
    if (state == WEFT_PE_LEFT) {
        what = "finalized";
    } else if (state != WEFT_PE_ABSENT) {
        verb = "is";
        what = "in no call of Weft that lasts (its own code, or a loop of tests or fetches)";
        report->silent++;
    }
    snprintf(text, sizeof text, "%s%s%s", what, *activity ? ": it " : "", activity);
    weft_wait_report_add(report, control, pe, verb, text);
}

void weft_wait_report_write(const struct weft_wait_report *report, const char *between, char *text,
                            size_t bytes) {
    for (int i = 0; i < report->ngroups; i++) {
        const struct weft_wait_report_group *group = &report->group[i];
        weft_wait_report_append(text, bytes, "%s%s", i ? "; " : "", group->names);
        if (group->count > NAMES_MAX)
            weft_wait_report_append(text, bytes, " and %d more", group->count - NAMES_MAX);
        const char *plural = strcmp(group->verb, "is") == 0 ? "are" : "have";
        weft_wait_report_append(text, bytes, "%s%s %s", between,
                                group->count > 1 ? plural : group->verb, group->what);
    }
    if (report->others)
        weft_wait_report_append(text, bytes, "; and %d other PEs", report->others);
}

uint64_t weft_wait_report_patience_ns(void) {
    unsigned doublings = atomic_load(&lines);
    uint64_t first_ns = (uint64_t)(weft_env.hang_seconds * 1e9);
    return first_ns << (doublings < DOUBLINGS_MAX ? doublings : DOUBLINGS_MAX);
}

void weft_wait_report_count_line(void) {
    atomic_fetch_add(&lines, 1);
}

bool weft_wait_report_begin(struct weft_control *control, int pe, uint8_t *failures) {
    uint32_t before = 0, mine = (uint32_t)pe + 1;
    if (atomic_compare_exchange_strong(&control->telling, &before, mine))
        return true;
    if (++*failures < FAILURES_MAX)
        return false;
    *failures = 0;
    return atomic_compare_exchange_strong(&control->telling, &before, mine);
}

void weft_wait_report_end(struct weft_control *control, int pe) {
    uint32_t mine = (uint32_t)pe + 1;
    atomic_compare_exchange_strong(&control->telling, &mine, 0);
}
