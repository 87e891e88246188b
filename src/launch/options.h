/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of oshrun. */
#ifndef WEFT_LAUNCH_OPTIONS_H
#define WEFT_LAUNCH_OPTIONS_H

#include <stdbool.h>

struct weft_options {
    int npes;
    bool tag_output;
    enum { WEFT_BIND_AUTO, WEFT_BIND_NONE, WEFT_BIND_CORE } bind;
    char **program; /* its name and arguments, NULL at the end */
};

/* -1: start the program. Otherwise there is nothing to start, and the result is oshrun's exit
 * status: help was printed, or the mistake was named. */
int weft_options_parse(int argc, char **argv, struct weft_options *options);

#endif
