/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of all options that oshrun knows: its own, with the names that Open MPI's and MPICH's
 * launchers have for the same thing, and other options that scripts for those launchers pass. */
#ifndef WEFT_LAUNCH_OPTION_TABLE_H
#define WEFT_LAUNCH_OPTION_TABLE_H

#include "launch/options.h"

/* The kinds of options, in the order in which the help prints them. */
enum weft_option_kind {
    WEFT_OPTION_START,
    WEFT_OPTION_PLACE,
    WEFT_OPTION_ENVIRONMENT,
    WEFT_OPTION_OUTPUT,
    WEFT_OPTION_HARMLESS, /* accepted, without an effect */
    WEFT_OPTION_REFUSED,  /* an error: the job would differ from what was asked for */
};

/* The launcher that acts on an option: only the one that reads the command line, or the daemons of
 * all hosts, which get the option in their start text (launch/start.h). */
enum weft_option_scope { WEFT_OPTION_FRONT, WEFT_OPTION_HOSTS };

/* One occurrence of an option on the command line. */
struct weft_option_use {
    const char *word; /* as written there, for error lines */
    const char *value, *second;
    struct weft_program *program;
};

struct weft_option_row {
    enum weft_option_kind kind;
    enum weft_option_scope scope;
    const char *names;     /* separated by blanks; "-" precedes a letter, "-" or "--" a name */
    const char *arguments; /* names of the arguments, separated by blanks; at most two */
    int (*act)(struct weft_options *options,
               const struct weft_option_use *use); /* returns -1, or the exit status */
    const char *text; /* for the help, or why the option is harmless or refused */
};

extern const struct weft_option_row weft_option_table[];
extern const int weft_option_table_count;

enum { WEFT_OPTION_NAME_BYTES = 32 };

/* Copies the row's next name and advances *names; returns false if there is none. */
bool weft_option_next(const char **names, char name[WEFT_OPTION_NAME_BYTES]);
int weft_option_arguments(const struct weft_option_row *row);

/* Returns the row with this name, or NULL. */
const struct weft_option_row *weft_option_find(const char *name);

/* Returns the most similar name, or NULL if no name is similar. Valid until the next call. */
const char *weft_option_nearest(const char *name);

/* Acts on one occurrence of an option that is not refused. Records harmless options for --verbose,
 * and options for all hosts in options->for_hosts. Returns -1, or the exit status after an error,
 * which is printed. */
int weft_option_act(struct weft_options *options, const struct weft_option_row *row,
                    const struct weft_option_use *use);

/* Prints the harmless options that were used, and why they have no effect. */
void weft_option_show_notes(void);

#endif
