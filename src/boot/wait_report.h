/* SPDX-License-Identifier: BSD-3-Clause */
/* A report describes what the PEs that a long wait is for are doing, in groups of PEs that do the
 * same. This file also decides which PE logs the line: of several PEs that wait for the same event
 * only one does. */
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
        10,                        /* a wait is published after the time limit divided by this */
    WEFT_WAIT_REPORT_BUSY_MS = 50, /* interval of attempts while another PE has the turn */
};

struct weft_wait_report {
    struct weft_wait_report_group {
        const char *verb; /* "is" or "has" */
        char what[WEFT_WAIT_REPORT_WHAT_BYTES], names[400];
        int count;
    } group[WEFT_WAIT_REPORT_GROUPS];
    int ngroups, others; /* PEs that are in no group */
    int silent;          /* PEs that have joined and have published no wait */
};

/* Adds a PE to a group: `verb` "is" or "has", and `what` it is or has. */
void weft_wait_report_add(struct weft_wait_report *report, const struct weft_control *control,
                          int pe, const char *verb, const char *what);

/* Adds a PE without a published wait, described by its state and by what the kernel says of its
 * process. */
void weft_wait_report_add_silent(struct weft_wait_report *report,
                                 const struct weft_control *control, int pe);

/* Appends "PE 1 (pid 12), PE 3 (pid 14), which are ...; PE 2 (pid 13), which has ..." to the text.
 * `between` is ", which ", or " " for a sentence. */
void weft_wait_report_write(const struct weft_wait_report *report, const char *between, char *text,
                            size_t bytes);

__attribute__((format(printf, 3, 4))) void weft_wait_report_append(char *text, size_t bytes,
                                                                   const char *format, ...);

/* Returns the nanoseconds after which a wait of this PE is logged: WEFT_HANG_SECONDS, doubled after
 * each line, so that a program whose PEs often wait for long does not log too many lines. 0: never.
 */
uint64_t weft_wait_report_patience_ns(void);
void weft_wait_report_count_line(void);

/* Takes the turn for PE `pe`; returns false if another PE has it. *failures counts the failed
 * attempts of one wait: a PE that keeps its turn for two seconds is stopped, dead or blocked in its
 * output, and loses it. */
bool weft_wait_report_begin(struct weft_control *control, int pe, uint8_t *failures);
void weft_wait_report_end(struct weft_control *control, int pe);

#endif
