/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of oshrun's command line. */
#ifndef WEFT_LAUNCH_OPTIONS_H
#define WEFT_LAUNCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include "launch/bind.h"

struct weft_option_row;

/* The changes that -x, -env, -genvlist and similar options make to the environment of PEs, in the
 * order of the command line. */
struct weft_environment {
    int count;
    struct weft_environment_change {
        const char *name;  /* NULL: `value` lists the variables to keep; all others are removed */
        const char *value; /* a list is separated by commas */
    } * change;
};

/* One of the programs that are separated by colons on the command line. */
struct weft_program {
    int npes;           /* 0 while options are read: not given */
    char **argv;        /* name and arguments, NULL-terminated */
    const char *found;  /* absolute path that oshrun found in PATH, or NULL */
    const char *folder; /* folder to start in; NULL: oshrun's own */
    struct weft_environment environment;
};

/* The hosts of a list, each once, in the order of their first mention. */
struct weft_host_list {
    int count;
    struct weft_listed_host {
        const char *name;  /* as given to ssh */
        const char *shown; /* in error lines and tags */
        int slots;
        bool here; /* this host */
    } * host;
    int32_t *of; /* host of each PE once PEs are assigned; NULL: all are on this host */
};

/* Options on which the launcher of every host acts, in their order on the command line. */
struct weft_option_list {
    int count;
    struct weft_option {
        const struct weft_option_row *row;
        const char *value; /* NULL: the option has no value */
    } * option;
};

struct weft_options {
    struct weft_program *program; /* PEs are numbered from one program to the next */
    int nprograms;
    int npes;     /* total */
    int per_host; /* maximum; 0: not given */
    bool no_more_than_processors;
    struct weft_host_list hosts;
    bool by_host;                        /* PEs are assigned to hosts round-robin */
    struct weft_environment environment; /* for all programs, applied before their own */
    struct weft_binding binding;
    struct weft_option_list for_hosts; /* the options that have set the fields for all hosts */
    bool tag_output, tag_host, verbose;
    const char *output_folder; /* folder for files with each PE's output; NULL: none */
    int timeout_s;             /* 0: no limit */
    enum {
        WEFT_ANSWER_NONE,
        WEFT_ANSWER_HELP,
        WEFT_ANSWER_VERSION
    } answer; /* print this and start nothing */
};

/* The exit status after an error on the command line, and after output could not be written. */
#define WEFT_STATUS_USAGE  2
#define WEFT_STATUS_OUTPUT 74

/* Prints an error of the command line. Returns the exit status. */
int weft_options_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints which PEs run which program, for --verbose. */
void weft_options_show(const struct weft_options *options);

/* Returns the whole number in the text if it is between `least` and `most`, otherwise -1. */
int weft_options_number(const char *text, int least, int most);

/* Records a change. The strings are not copied. Returns 0 or -ENOMEM. */
int weft_environment_note(struct weft_environment *environment, const char *name,
                          const char *value);

/* Applies the changes to this process. */
void weft_environment_apply(const struct weft_environment *environment);

/* In launch/parse.c. Parses the command line, to whose words the options point. Returns -1 if
 * programs are to be started. Otherwise returns oshrun's exit status, after printing the help or an
 * error. */
int weft_parse_options(int argc, char **argv, struct weft_options *options);

/* In launch/help.c. Prints the help or the version, and returns the exit status. */
int weft_help_answer(int answer);

#endif
