/* SPDX-License-Identifier: BSD-3-Clause */
/* The changes that the command line makes to the environment of PEs: -x, -env, -genvlist and the
 * like. */
#ifndef WEFT_LAUNCH_ENVIRONMENT_H
#define WEFT_LAUNCH_ENVIRONMENT_H

/* In the order of the command line. */
struct weft_environment {
    int count;
    struct weft_environment_change {
        const char *name;  /* NULL: `value` is a list of names, and all other variables go */
        const char *value; /* separated by commas in a list */
    } * change;
};

/* Notes a change; the texts must outlive it. 0 or -ENOMEM. */
int weft_environment_note(struct weft_environment *environment, const char *name,
                          const char *value);

/* Changes the environment of this process. */
void weft_environment_apply(const struct weft_environment *environment);

#endif
