/* SPDX-License-Identifier: BSD-3-Clause */
/* Every option that oshrun knows, in one table: its own, which are those of Open MPI's and MPICH's
 * launchers where these have one for the same thing, and what scripts for those carry besides. */
#ifndef WEFT_LAUNCH_OPTION_TABLE_H
#define WEFT_LAUNCH_OPTION_TABLE_H

#include "launch/options.h"

/* The kinds of options, in the order of the help. */
enum weft_option_kind {
    WEFT_OPTION_START,
    WEFT_OPTION_PLACE,
    WEFT_OPTION_ENVIRONMENT,
    WEFT_OPTION_OUTPUT,
    WEFT_OPTION_HARMLESS, /* taken: it changes nothing here */
    WEFT_OPTION_REFUSED,  /* an error: the job would be another one than was asked for */
};

/* The launchers that act on an option: that of the command line, or those of all hosts, which find
 * it in their start text (launch/start.h). */
enum weft_option_scope { WEFT_OPTION_FRONT, WEFT_OPTION_HOSTS };

/* One occurrence on the command line. */
struct weft_option_use {
    const char *word; /* as it stands there, for messages */
    const char *value, *second;
    struct weft_program *program;
};

struct weft_option_row {
    enum weft_option_kind kind;
    enum weft_option_scope scope;
    const char *names;     /* separated by blanks; of one letter behind -, others behind - or -- */
    const char *arguments; /* their names, separated by blanks: at most two */
    int (*act)(struct weft_options *options, const struct weft_option_use *use); /* -1, or status */
    const char *text; /* for the help; why it is harmless or refused */
};

extern const struct weft_option_row weft_option_table[];
extern const int weft_option_table_count;

enum { WEFT_OPTION_NAME_BYTES = 32 };

/* The next of a row's names; false: there is none. */
bool weft_option_next(const char **names, char name[WEFT_OPTION_NAME_BYTES]);
int weft_option_arguments(const struct weft_option_row *row);

/* The row with this name, or NULL. */
const struct weft_option_row *weft_option_find(const char *name);

/* The name that is most like it, if one is like it at all. It lives until the next call. */
const char *weft_option_nearest(const char *name);

/* Acts on one occurrence of an option that is not refused. Keeps harmless options for --verbose,
 * and options for other hosts in options->for_hosts. Returns -1, or the exit status after an error,
 * which is printed. */
int weft_option_act(struct weft_options *options, const struct weft_option_row *row,
                    const struct weft_option_use *use);

/* Prints the harmless options that were given, and why they have no effect. */
void weft_option_show_notes(void);

#endif
