/* SPDX-License-Identifier: BSD-3-Clause */
/* A report says in words what the PEs do that a long wait is for, grouped by those that do the
 * same. It also decides whose turn it is to write the line: of several PEs that wait for the same,
 * one alone does. */
#ifndef WEFT_BOOT_WAIT_REPORT_H
#define WEFT_BOOT_WAIT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "boot/control.h"

enum {
    WEFT_WAIT_REPORT_GROUPS = 6,
    WEFT_WAIT_REPORT_WHAT_BYTES = 544,
    WEFT_WAIT_REPORT_TEXT_BYTES = 1900,
    WEFT_WAIT_REPORT_SHOWN_AFTER =
        10, /* parts of the time after which the line comes: then it is shown */
    WEFT_WAIT_REPORT_BUSY_MS = 50, /* until the next try, where another PE has its turn */
};

struct weft_wait_report {
    struct weft_wait_report_group {
        const char *verb; /* "is" or "has" */
        char what[WEFT_WAIT_REPORT_WHAT_BYTES], names[400];
        int count;
    } group[WEFT_WAIT_REPORT_GROUPS];
    int ngroups, others; /* PEs beyond the groups */
    int silent;          /* PEs that show nothing and are in the job */
};

/* Adds PE `pe` of the page, with its process: it "is" or "has" what `what` says. */
void weft_wait_report_add(struct weft_wait_report *report, const struct weft_control *control,
                          int pe, const char *verb, const char *what);

/* Adds one that shows no wait: what its state says, and the system of its process. */
void weft_wait_report_add_silent(struct weft_wait_report *report,
                                 const struct weft_control *control, int pe);

/* Appends "PE 1 (pid 12), PE 3 (pid 14), which are ...; PE 2 (pid 13), which has ..." to the text.
 * `between` is ", which ", or " " for a sentence of its own. */
void weft_wait_report_write(const struct weft_wait_report *report, const char *between, char *text,
                            size_t bytes);

__attribute__((format(printf, 3, 4))) void weft_wait_report_append(char *text, size_t bytes,
                                                                   const char *format, ...);

/* The nanoseconds until this PE's next line is due: WEFT_HANG_SECONDS, and twice as long after each
 * line, so that a program whose PEs wait for long again and again is not drowned in lines. 0:
 * never. */
uint64_t weft_wait_report_patience_ns(void);
void weft_wait_report_count_line(void);

/* Takes the turn of this PE `pe`: false where another one has it. *failures counts for one wait how
 * often that was so: a PE that keeps its turn for two seconds is stopped, dead or stuck in its
 * output, and loses it. */
bool weft_wait_report_begin(struct weft_control *control, int pe, uint8_t *failures);
void weft_wait_report_end(struct weft_control *control, int pe);

#endif
