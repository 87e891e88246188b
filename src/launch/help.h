/* SPDX-License-Identifier: BSD-3-Clause */
/* The help and the version of oshrun. */
#ifndef WEFT_LAUNCH_HELP_H
#define WEFT_LAUNCH_HELP_H

/* The exit status when output could not be written: WEFT_STATUS_OUTPUT. */
#define WEFT_STATUS_OUTPUT 74

/* Prints what --help or --version (enum in struct weft_options) asks for. The exit status. */
int weft_help_answer(int answer);

#endif
