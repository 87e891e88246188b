/* SPDX-License-Identifier: BSD-3-Clause */
/* Options end at the first word that is none, which is the program, or at "--". */
#include "launch/options.h"
#include "boot/wire.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/version.h>

enum { STATUS_USAGE = 2, STATUS_OUTPUT = 74 };

static const char help[] =
    "usage: oshrun [-n N] [--tag-output] [--bind-to none|core] [--] program [arguments...]\n"
    "\n"
    "Starts N processing elements (PEs) of an OpenSHMEM program on this machine.\n"
    "\n"
    "  -n N, -np N       how many PEs; 1 when not given\n"
    "  --tag-output      put [PE] before every line that a PE writes\n"
    "  --bind-to none    leave the choice of processors to the system\n"
    "  --bind-to core    give every PE its own processors; done anyway when there are enough\n"
    "  --help, --version\n"
    "\n"
    "PE 0 reads oshrun's standard input, the others read nothing. Signals sent to oshrun reach\n"
    "all PEs. When a PE dies the job ends and oshrun names the PE. The exit status is that of\n"
    "shmem_global_exit, otherwise the first that is not 0 (128 + s for signal s); 127: no such\n"
    "program; 126: not executable; 2: a wrong option.\n";

static int usage_error(const char *what, const char *which) {
    fprintf(stderr, "oshrun: %s%s; see oshrun --help\n", what, which);
    return STATUS_USAGE;
}

static int set_npes(struct weft_options *options, const char *value) {
    char *end;
    errno = 0;
    long npes = strtol(value, &end, 10);
    if (errno || end == value || *end || npes < 1 || npes > WEFT_WIRE_PES_MAX) {
        fprintf(stderr, "oshrun: -n %s: the number of PEs must be 1 to %d\n", value,
                WEFT_WIRE_PES_MAX);
        return STATUS_USAGE;
    }
    options->npes = (int)npes;
    return -1;
}

static int set_bind(struct weft_options *options, const char *value) {
    if (strcmp(value, "none") == 0)
        options->bind = WEFT_BIND_NONE;
    else if (strcmp(value, "core") == 0)
        options->bind = WEFT_BIND_CORE;
    else
        return usage_error("--bind-to knows none and core, not ", value);
    return -1;
}

static int set_tag(struct weft_options *options, const char *unused) {
    (void)unused;
    options->tag_output = true;
    return -1;
}

/* The status of oshrun when all that it had to do was to say something. */
static int finish_answer(void) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_SUCCESS;
    fprintf(stderr, "oshrun: cannot write to standard output: %s\n", strerror(errno));
    return STATUS_OUTPUT;
}

static int show_help(struct weft_options *options, const char *unused) {
    (void)options, (void)unused;
    fputs(help, stdout);
    return finish_answer();
}

static int show_version(struct weft_options *options, const char *unused) {
    (void)options, (void)unused;
    puts("oshrun (Weft) " WEFT_VERSION_STRING);
    return finish_answer();
}

static const struct option {
    const char *name;
    int (*apply)(struct weft_options *options, const char *value);
    bool takes_value;
} known[] = {
    {"-n", set_npes, true},
    {"-np", set_npes, true},
    {"--tag-output", set_tag, false},
    {"--bind-to", set_bind, true},
    {"--help", show_help, false},
    {"-h", show_help, false},
    {"--version", show_version, false},
};

/* The option of which `word` is "name" or "name=value". */
static const struct option *find_option(const char *word) {
    size_t length = strcspn(word, "=");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == length && strncmp(known[i].name, word, length) == 0)
            return &known[i];
    return NULL;
}

/* Applies the option at argv[*at] and moves *at to its last word. */
static int apply_option(char **argv, int *at, struct weft_options *options) {
    const char *word = argv[*at], *value = strchr(word, '=');
    const struct option *option = find_option(word);
    if (!option)
        return usage_error("unknown option ", word);
    if (value && !option->takes_value)
        return usage_error("no value belongs to ", option->name);
    if (option->takes_value)
        value = value ? value + 1 : argv[++*at];
    if (option->takes_value && !value)
        return usage_error("a value is missing after ", option->name);
    return option->apply(options, value);
}

int weft_options_parse(int argc, char **argv, struct weft_options *options) {
    *options = (struct weft_options){.npes = 1};
    int at = 1;
    for (; at < argc && argv[at][0] == '-' && argv[at][1]; at++) {
        if (strcmp(argv[at], "--") == 0) {
            at++;
            break;
        }
        int status = apply_option(argv, &at, options);
        if (status >= 0)
            return status;
    }
    if (at >= argc)
        return usage_error("no program is named", "");
    options->program = argv + at;
    return -1;
}
