/* SPDX-License-Identifier: BSD-3-Clause */
/* Every option that oshrun knows, in one table: its own, which are those of Open MPI's and MPICH's
 * launchers where these have one for the same thing, and what scripts for those carry besides. */
#ifndef WEFT_LAUNCH_KNOWN_H
#define WEFT_LAUNCH_KNOWN_H

#include "launch/options.h"

/* The kinds of options, in the order of the help. */
enum weft_known_kind {
    WEFT_KNOWN_START,
    WEFT_KNOWN_PLACE,
    WEFT_KNOWN_ENVIRONMENT,
    WEFT_KNOWN_OUTPUT,
    WEFT_KNOWN_HARMLESS, /* taken: it changes nothing here */
    WEFT_KNOWN_REFUSED,  /* an error: the job would be another one than was asked for */
};

/* The launchers that act on an option: that of the command line, or those of all hosts, which find
 * it in their start text (launch/start.h). */
enum weft_known_scope { WEFT_KNOWN_FRONT, WEFT_KNOWN_HOSTS };

/* One occurrence on the command line. */
struct weft_known_use {
    const char *word; /* as it stands there, for messages */
    const char *value, *second;
    struct weft_program *program;
};

struct weft_known_row {
    enum weft_known_kind kind;
    enum weft_known_scope scope;
    const char *names;     /* separated by blanks; of one letter behind -, others behind - or -- */
    const char *arguments; /* their names, separated by blanks: at most two */
    int (*act)(struct weft_options *options, const struct weft_known_use *use); /* -1, or status */
    const char *text; /* for the help; why it is harmless or refused */
};

extern const struct weft_known_row weft_known[];
extern const int weft_known_count;

enum { WEFT_KNOWN_NAME_BYTES = 32 };

/* The next of a row's names; false: there is none. */
bool weft_known_next(const char **names, char name[WEFT_KNOWN_NAME_BYTES]);
int weft_known_arguments(const struct weft_known_row *row);

/* The row with this name, or NULL. */
const struct weft_known_row *weft_known_find(const char *name);

/* The name that is most like it, if one is like it at all. It lives until the next call. */
const char *weft_known_nearest(const char *name);

/* Acts on one occurrence of an option that is not refused. Keeps harmless options for --verbose,
 * and options for other hosts in options->for_hosts. Returns -1, or the exit status after an error,
 * which is printed. */
int weft_known_act(struct weft_options *options, const struct weft_known_row *row,
                   const struct weft_known_use *use);

/* Prints the harmless options that were given, and why they have no effect. */
void weft_known_show_notes(void);

#endif
