/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the part of the start text that is the same for all hosts: programs, folders, environment.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/env.h"
#include "launch/failure.h"
#include "launch/front.h"

/* Forwards the user's settings to the other hosts, but no variable that describes this process. */
static bool variable_goes_along(const char *entry) {
    static const char *const kept[] = {"WEFT_", "SHMEM", "SMA_", "UCX_", "OMP_"};
    static const char *const own[] = {"WEFT_PE=",         "WEFT_NPES=",    "WEFT_HUB_FD=",
                                      "WEFT_CONTROL_FD=", "WEFT_LIFE_FD=", "WEFT_INTERFACE="};
    bool goes = false;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        goes = goes || strncmp(entry, kept[i], strlen(kept[i])) == 0;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        goes = goes && strncmp(entry, own[i], strlen(own[i])) != 0;
    return goes && strchr(entry, '=');
}

/* Collects the variables of this process to forward, followed by the command line's changes. */
static int environment_make(const struct weft_environment *asked, struct weft_environment *made) {
    int error = 0;
    *made = (struct weft_environment){0};
    for (char **entry = environ; *entry && error == 0; entry++) {
        if (!variable_goes_along(*entry))
            continue;
        const char *equals = strchr(*entry, '=');
        char *name = strndup(*entry, (size_t)(equals - *entry));
        error = name ? weft_environment_note(made, name, equals + 1) : -ENOMEM;
    }
    for (int i = 0; i < asked->count && error == 0; i++)
        error = weft_environment_note(made, asked->change[i].name, asked->change[i].value);
    return error;
}

static bool environment_has_path(const struct weft_environment *environment) {
    for (int i = 0; i < environment->count; i++)
        if (environment->change[i].name && strcmp(environment->change[i].name, "PATH") == 0)
            return true;
    return false;
}

static bool file_is_program(const char *path) {
    struct stat stat_of;
    return stat(path, &stat_of) == 0 && S_ISREG(stat_of.st_mode) && access(path, X_OK) == 0;
}

/* Returns the absolute path of a program named without a slash, found in PATH, or NULL if it is not
 * found or the command line sets PATH. The caller frees it. */
static char *program_find(const struct weft_options *options, const struct weft_program *program) {
    const char *name = program->argv[0], *folders = getenv("PATH");
    char path[PATH_MAX];
    if (!folders || !*name || strchr(name, '/') || environment_has_path(&options->environment) ||
        environment_has_path(&program->environment))
        return NULL;
    for (const char *at = folders; *at; at += strcspn(at, ":"), at += *at == ':') {
        int length = (int)strcspn(at, ":");
        if (*at == '/' && snprintf(path, sizeof path, "%.*s/%s", length, at, name) < PATH_MAX &&
            file_is_program(path))
            return strdup(path);
    }
    return NULL;
}

/* Relative folders are relative to the current folder of this process. */
static int programs_make(const struct weft_options *options, struct weft_program **programs) {
    char here[PATH_MAX];
    *programs = calloc((size_t)options->nprograms, sizeof **programs);
    if (!*programs)
        return weft_failure_say(-ENOMEM, "malloc, for %d programs", options->nprograms);
    if (!getcwd(here, sizeof here))
        return weft_failure_say(-errno,
                                "getcwd: the folder in which oshrun was called is gone, and "
                                "hosts have to start programs there; call it in another");
    for (int i = 0; i < options->nprograms; i++) {
        const struct weft_program *asked = &options->program[i];
        char *folder = NULL;
        bool absolute = asked->folder && *asked->folder == '/';
        int made =
            asprintf(&folder, "%s%s%s", absolute ? "" : here, asked->folder && !absolute ? "/" : "",
                     asked->folder ? asked->folder : "");
        (*programs)[i] = *asked;
        (*programs)[i].found = program_find(options, asked);
        (*programs)[i].folder = made < 0 ? NULL : folder;
        if (made < 0)
            return weft_failure_say(-ENOMEM, "malloc, for %d programs", options->nprograms);
    }
    return 0;
}

/* Frees what environment_make and programs_make have allocated; the options own the rest. */
static void told_free(const struct weft_options *options, struct weft_options *told) {
    for (int i = 0; i < told->environment.count - options->environment.count; i++)
        free((char *)told->environment.change[i].name);
    free(told->environment.change);
    for (int i = 0; told->program && i < told->nprograms; i++) {
        free((char *)told->program[i].found);
        free((char *)told->program[i].folder);
    }
    free(told->program);
}

int weft_front_start(struct weft_front *front, const struct weft_branch_plan *plan) {
    const struct weft_options *options = front->options;
    struct weft_start start = {.nhosts = front->nhosts,
                               .name = front->name,
                               .host_of = options->hosts.of,
                               .silence_ms = (int)(weft_env.host_timeout * 1000),
                               .by_front = true,
                               .fan_out = plan->fan_out,
                               .ssh = weft_env.ssh,
                               .options = *options};
    start.options.program = NULL;
    int error = environment_make(&options->environment, &start.options.environment);
    if (error)
        weft_failure_say(error, "malloc, for the environment");
    error = error ? error : programs_make(options, &start.options.program);
    error = error ? error : weft_branch_start(&front->branch, &start, plan, &front->signals, NULL);
    told_free(options, &start.options);
    return error;
}
