/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the words of the command line into the options of a run. */
#ifndef WEFT_LAUNCH_PARSE_H
#define WEFT_LAUNCH_PARSE_H

#include "launch/options.h"

/* -1: start the programs. Otherwise there is nothing to start, and the result is oshrun's exit
 * status: help was printed, or the mistake was named. The options refer to the words. */
int weft_parse_options(int argc, char **argv, struct weft_options *options);

#endif
