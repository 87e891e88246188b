/* SPDX-License-Identifier: BSD-3-Clause */
/* The command `weft`: what this machine offers, what the library makes of it, and how fast it is.
 * Under oshrun every PE joins and PE 0 speaks for the job. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "weft/command.h"
#include "weft/version.h"

static const char usage[] =
    "usage: weft info      what this machine offers to a job\n"
    "       weft perf      how fast it is: [put|get|signal|barrier]... [-m BYTES] [-o FILE.svg]\n"
    "       weft version\n"
    "\n"
    "weft perf measures puts, gets, signals and barriers, or those that are named, in messages of\n"
    "up to BYTES (a number, and k, m or g), and draws a diagram into FILE.svg.\n"
    "Under `oshrun -n N weft info` it speaks for a job of N PEs; weft perf needs two or more.\n";

static bool asks_help(char **words) {
    while (*words && strcmp(*words, "-h") != 0 && strcmp(*words, "--help") != 0)
        words++;
    return *words;
}

int main(int argc, char **argv) {
    const char *command = argc >= 2 ? argv[1] : "";
    if (argc > 1 && (strcmp(command, "help") == 0 || asks_help(argv + 1)))
        return fputs(usage, stdout) < 0;
    if (strcmp(command, "perf") == 0)
        return weft_perf(argv + 2);
    if (argc == 2 && strcmp(command, "info") == 0)
        return weft_info();
    if (strcmp(command, "version") == 0 || strcmp(command, "--version") == 0)
        return printf("Weft %s\n", WEFT_VERSION_STRING) < 0;
    if (argc > 1)
        fprintf(stderr, "weft: unknown command '%s'\n", argv[argc - 1]);
    fputs(usage, stderr);
    return 2;
}
