/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes to the environment are recorded while options are read, but only applied in the children,
 * so that the launcher itself finds programs and libraries as without these options. */
#include "launch/options.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int weft_options_error(const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "oshrun: %s; see oshrun --help\n", text);
    return WEFT_STATUS_USAGE;
}

void weft_options_show(const struct weft_options *options) {
    int pe = 0;
    for (int i = 0; options->verbose && i < options->nprograms; i++) {
        const struct weft_program *program = &options->program[i];
        fprintf(stderr, "oshrun: PEs %d to %d run '%s'\n", pe, pe + program->npes - 1,
                program->argv[0]);
        pe += program->npes;
    }
}

int weft_options_number(const char *text, int least, int most) {
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    bool plain = *text >= '0' && *text <= '9' && !*end && !errno;
    return plain && number >= least && number <= most ? (int)number : -1;
}

int weft_environment_note(struct weft_environment *environment, const char *name,
                          const char *value) {
    size_t count = (size_t)environment->count + 1;
    void *longer = realloc(environment->change, count * sizeof *environment->change);
    if (!longer)
        return -ENOMEM;
    environment->change = longer;
    environment->change[environment->count++] = (struct weft_environment_change){name, value};
    return 0;
}

/* Returns whether a comma-separated list contains the name of this length. */
static bool names_have(const char *names, const char *name, size_t length) {
    for (const char *at = names; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && strncmp(at, name, length) == 0)
            return true;
    return false;
}

/* Compacts the array in place: entries to keep move towards its start. */
static void environment_keep(const char *names) {
    char **kept = environ;
    for (char **entry = environ; entry && *entry; entry++)
        if (names_have(names, *entry, strcspn(*entry, "=")))
            *kept++ = *entry;
    if (kept)
        *kept = NULL;
}

void weft_environment_apply(const struct weft_environment *environment) {
    for (int i = 0; i < environment->count; i++) {
        const struct weft_environment_change *change = &environment->change[i];
        if (change->name)
            setenv(change->name, change->value, 1);
        else
            environment_keep(change->value);
    }
}
