/* SPDX-License-Identifier: BSD-3-Clause */
/* Options end at "--" or at the first word that is not an option, which is the program. As with
 * Open MPI's and MPICH's launchers, a value may be given as -np 2, --np=2 or -n2. The options are
 * in one table (launch/option_table.h). A colon begins another program with options of its own. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "boot/wire.h"
#include "launch/hosts.h"
#include "launch/option_table.h"

enum { FIRST_LONG = 256 };

/* The arguments of getopt_long, made from the table. */
struct grammar {
    struct option *names;
    char *letters;
};

typedef char option_name[WEFT_OPTION_NAME_BYTES];

static int grammar_count_names(void) {
    option_name name;
    int count = 0;
    for (int row = 0; row < weft_option_table_count; row++)
        for (const char *at = weft_option_table[row].names; weft_option_next(&at, name);)
            count++;
    return count;
}

static void grammar_fill(struct grammar *grammar, option_name *copies) {
    char *letter = grammar->letters;
    int count = 0;
    *letter++ = '+'; /* stop at the program */
    *letter++ = ':'; /* distinguish a missing value from an unknown option */
    for (int row = 0; row < weft_option_table_count; row++)
        for (const char *at = weft_option_table[row].names; weft_option_next(&at, copies[count]);) {
            bool argument = weft_option_arguments(&weft_option_table[row]) > 0;
            grammar->names[count] = (struct option){
                copies[count], argument ? required_argument : no_argument, NULL, FIRST_LONG + row};
            if (!copies[count][1]) {
                *letter++ = copies[count][0];
                if (argument)
                    *letter++ = ':';
            }
            count++;
        }
}

/* Makes the grammar at the first call; it is the same for all programs of the command line. Returns
 * NULL without memory. */
static const struct grammar *grammar_make(void) {
    static struct grammar grammar;
    if (grammar.letters)
        return &grammar;
    size_t count = (size_t)grammar_count_names() + 1; /* plus the empty last element */
    option_name *copies = calloc(count, sizeof *copies);
    grammar.names = calloc(count, sizeof *grammar.names);
    char *letters = calloc(count + 1, 2);
    if (!copies || !grammar.names || !letters)
        return NULL;
    grammar.letters = letters;
    grammar_fill(&grammar, copies);
    return &grammar;
}

/* Returns the row for a value that getopt returned or stored in optopt; NULL: unknown option. */
static const struct weft_option_row *option_row(int value) {
    char letter[2] = {(char)value, '\0'};
    if (value >= FIRST_LONG)
        return &weft_option_table[value - FIRST_LONG];
    return value > 0 ? weft_option_find(letter) : NULL;
}

static int option_unknown(const char *word) {
    const char *name = word + strspn(word, "-"), *near = weft_option_nearest(name);
    if (near)
        return weft_options_error("unknown option %s; did you mean %s%s?", word,
                                  near[1] ? "--" : "-", near);
    return weft_options_error("unknown option %s", word);
}

/* Logs why getopt returned '?' or ':' for this word. Returns the exit status. */
static int option_refuse(int option, const char *word) {
    const struct weft_option_row *row = option_row(optopt);
    if (!row)
        return option_unknown(word);
    if (option == ':')
        return weft_options_error("a value is missing after %s, which takes %s", word,
                                  row->arguments);
    return weft_options_error("%.*s takes no value", (int)strcspn(word, "="), word);
}

/* Acts on one option. For an option with two arguments getopt has read the first, unless they are
 * written as NAME=VALUE. */
static int option_act(const struct weft_option_row *row, const char *word, int argc, char **argv,
                      struct weft_options *options) {
    struct weft_option_use use = {.word = word, .value = optarg};
    use.program = &options->program[options->nprograms - 1];
    bool two = weft_option_arguments(row) == 2 && !strchr(optarg, '=');
    if (row->kind == WEFT_OPTION_REFUSED)
        return weft_options_error("%.*s cannot be done: %s", (int)strcspn(word, "="), word,
                                  row->text);
    if (two && optind >= argc)
        return weft_options_error("%s takes %s, but only one value is given", word, row->arguments);
    use.second = two ? argv[optind++] : NULL;
    int status = weft_option_act(options, row, &use);
    return options->answer ? weft_help_answer(options->answer) : status;
}

/* Parses the options of one program. *plain: "--" ended the options. */
static int options_parse(int argc, char **argv, struct weft_options *options, bool *plain) {
    const struct grammar *grammar = grammar_make();
    int option, status = -1, at = 1;
    if (!grammar)
        return weft_options_error("no memory for the options");
    optind = 0; /* makes getopt start again */
    opterr = 0;
    while (status < 0 &&
           (option = getopt_long_only(argc, argv, grammar->letters, grammar->names, NULL)) != -1) {
        const char *word = argv[at];
        bool wrong = option == '?' || option == ':';
        status = wrong ? option_refuse(option, word)
                       : option_act(option_row(option), word, argc, argv, options);
        at = optind;
    }
    *plain = optind > at;
    return status;
}

static int program_add(struct weft_options *options) {
    size_t count = (size_t)options->nprograms + 1;
    void *longer = realloc(options->program, count * sizeof *options->program);
    if (!longer)
        return weft_options_error("no memory for the options");
    options->program = longer;
    options->program[options->nprograms++] = (struct weft_program){0};
    return -1;
}

/* Parses one program from `argv`, whose first word is skipped, up to a colon or the end. *next:
 * index of that colon or the end. */
static int program_parse(int argc, char **argv, struct weft_options *options, int *next) {
    bool plain = false;
    int status = program_add(options);
    if (status < 0)
        status = options_parse(argc, argv, options, &plain);
    if (status >= 0)
        return status;
    int end = optind;
    while (end < argc && (plain || strcmp(argv[end], ":") != 0))
        end++;
    if (end == optind)
        return weft_options_error("no program is named%s", argc > 1 ? " after the options" : "");
    argv[end] = NULL;
    options->program[options->nprograms - 1].argv = argv + optind;
    *next = end;
    return -1;
}

/* Counts the PEs of all programs, checks the limit, and assigns PEs to hosts. */
static int options_count_pes(struct weft_options *options) {
    struct weft_program *first = options->program;
    bool unsaid = options->nprograms == 1 && first->npes == 0;
    int hosts = options->hosts.count > 1 ? options->hosts.count : 1, preset = 0, status = -1;
    if (unsaid)
        preset =
            hosts * (options->per_host ? options->per_host : weft_bind_demand(&options->binding));
    if (unsaid && preset == 0)
        status = weft_hosts_count(options, &preset);
    if (unsaid)
        first->npes = preset;
    for (int i = 0; i < options->nprograms; i++) {
        struct weft_program *program = &first[i];
        program->npes = program->npes ? program->npes : 1;
        options->npes += program->npes;
    }
    if (status < 0 && options->npes > WEFT_WIRE_PES_MAX)
        return weft_options_error("%d PEs are too many: the maximum is %d", options->npes,
                                  WEFT_WIRE_PES_MAX);
    return status < 0 ? weft_hosts_place(options) : status;
}

int weft_parse_options(int argc, char **argv, struct weft_options *options) {
    *options = (struct weft_options){.binding = WEFT_BINDING_DEFAULT};
    int status = -1;
    for (int at = 0, next = 0; status < 0 && at < argc; at += next)
        status = program_parse(argc - at, argv + at, options, &next);
    if (status < 0)
        status = options_count_pes(options);
    if (status < 0 && options->verbose)
        weft_option_show_notes();
    return status;
}
