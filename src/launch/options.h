/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of oshrun: what one run is to be. */
#ifndef WEFT_LAUNCH_OPTIONS_H
#define WEFT_LAUNCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include "launch/bind.h"

struct weft_option_row;

/* The changes that -x, -env, -genvlist and the like make to the environment of PEs, in the order of
 * the command line. */
struct weft_environment {
    int count;
    struct weft_environment_change {
        const char *name;  /* NULL: `value` is a list of names, and all other variables go */
        const char *value; /* separated by commas in a list */
    } * change;
};

/* One of the programs that colons separate on the command line. */
struct weft_program {
    int npes;           /* while options are read, 0: not said */
    char **argv;        /* its name and arguments, NULL at the end */
    const char *found;  /* the absolute path to which its bare name leads where oshrun was called */
    const char *folder; /* where it starts; NULL: where oshrun did */
    struct weft_environment environment;
};

/* The hosts of a list, each once, in the order in which they are first named. */
struct weft_host_list {
    int count;
    struct weft_listed_host {
        const char *name;  /* as ssh takes it */
        const char *shown; /* in messages */
        int slots;
        bool here; /* it is this one */
    } * host;
    int32_t *of; /* of each PE, once the PEs are placed; NULL: all are on this host */
};

/* Options of the command line that the launcher of every host acts on, in their order. */
struct weft_option_list {
    int count;
    struct weft_option {
        const struct weft_option_row *row;
        const char *value; /* NULL: the option takes none */
    } * option;
};

struct weft_options {
    struct weft_program *program; /* PEs are numbered from one to the next */
    int nprograms;
    int npes;     /* of all programs */
    int per_host; /* most PEs on one host; 0: not said */
    bool no_more_than_processors;
    struct weft_host_list hosts;
    bool by_host;                        /* PEs are dealt to hosts in turn */
    struct weft_environment environment; /* of all programs, before their own */
    struct weft_binding binding;
    struct weft_option_list for_hosts; /* what set the binding and other fields */
    bool tag_output, tag_host, verbose;
    const char *output_folder; /* for a file of each PE's output; NULL: none */
    int timeout_s;             /* 0: none */
    enum { WEFT_ANSWER_NONE, WEFT_ANSWER_HELP, WEFT_ANSWER_VERSION } answer; /* and no more */
};

/* The exit status after a mistake on the command line, and when output could not be written. */
#define WEFT_STATUS_USAGE  2
#define WEFT_STATUS_OUTPUT 74

/* Names a mistake on the command line, and returns the exit status for it. */
int weft_options_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Says which PEs run what, under --verbose. */
void weft_options_show(const struct weft_options *options);

/* A whole number of `least` to `most`, or -1. */
int weft_options_number(const char *text, int least, int most);

/* Notes a change; the texts must outlive it. 0 or -ENOMEM. */
int weft_environment_note(struct weft_environment *environment, const char *name,
                          const char *value);

/* Changes the environment of this process. */
void weft_environment_apply(const struct weft_environment *environment);

/* launch/parse.c reads the words of the command line, which the options refer to. -1: start the
 * programs. Otherwise there is nothing to start, and the result is oshrun's exit status: help was
 * printed, or the mistake was named. */
int weft_parse_options(int argc, char **argv, struct weft_options *options);

/* launch/help.c prints what --help or --version asks for. The exit status. */
int weft_help_answer(int answer);

#endif
