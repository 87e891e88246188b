/* SPDX-License-Identifier: BSD-3-Clause */
/* The command `weft`: shows what this machine offers, how the library uses it, and how fast it is.
 * Under oshrun every PE takes part and PE 0 prints. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "weft/command.h"
#include "weft/version.h"

static const char usage[] =
    "usage: weft info               what this machine offers to a job\n"
    "       weft info --plan M N K  how GPUs multiply M x K by K x N elements\n"
    "       weft perf               how fast puts, gets, collectives and other calls are (weft "
    "perf -h)\n"
    "       weft version\n"
    "\n"
    "`oshrun -n N weft info` describes a job of N PEs; weft perf needs two PEs or more.\n";

static bool asks_help(char **words) {
    while (*words && strcmp(*words, "-h") != 0 && strcmp(*words, "--help") != 0)
        words++;
    return *words;
}

int main(int argc, char **argv) {
    const char *command = argc >= 2 ? argv[1] : "";
    bool perf = strcmp(command, "perf") == 0;
    if (argc > 1 && (strcmp(command, "help") == 0 || asks_help(argv + 1)))
        return fputs(perf ? weft_perf_usage : usage, stdout) < 0;
    if (perf)
        return weft_perf(argv + 2);
    if (argc == 2 && strcmp(command, "info") == 0)
        return weft_info();
    if (argc == 6 && strcmp(command, "info") == 0 && strcmp(argv[2], "--plan") == 0)
        return weft_info_plan(argv + 3);
    if (strcmp(command, "version") == 0 || strcmp(command, "--version") == 0)
        return printf("Weft %s\n", WEFT_VERSION_STRING) < 0;
    if (argc > 1)
        fprintf(stderr, "weft: unknown command '%s'\n", argv[argc - 1]);
    fputs(usage, stderr);
    return 2;
}
