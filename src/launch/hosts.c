/* SPDX-License-Identifier: BSD-3-Clause */
/* Every word of a host list must mean this host: several hosts are refused by name. */
#include "launch/hosts.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "boot/wire.h"

static bool host_is_this(const char *name, size_t length) {
    static const char *const always[] = {"localhost", "127.0.0.1", "::1", "[::1]"};
    char own[HOST_NAME_MAX + 1] = "";
    gethostname(own, sizeof own - 1);
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (strlen(always[i]) == length && strncmp(name, always[i], length) == 0)
            return true;
    size_t label = strcspn(own, "."); /* either may be given with its domain or without */
    return label > 0 && strncasecmp(name, own, label) == 0 && strcspn(name, ".,: \t\n") == label &&
           (length == label || !own[label] || strncasecmp(name, own, length) == 0);
}

/* Adds one host with `slots` as the text has it; NULL: one. */
static int host_take(struct weft_options *options, const char *option, const char *name,
                     size_t length, const char *slots) {
    char text[16] = "1";
    if (!host_is_this(name, length)) {
        char own[HOST_NAME_MAX + 1] = "";
        gethostname(own, sizeof own - 1);
        return weft_options_error(
            "%s: host %.*s is not this one (%s, localhost), and several hosts "
            "are not supported yet",
            option, (int)length, name, own);
    }
    if (slots)
        snprintf(text, sizeof text, "%.*s", (int)strcspn(slots, ", \t\n"), slots);
    int count = weft_options_number(text, 1, WEFT_WIRE_PES_MAX);
    if (count < 0)
        return weft_options_error("%s: %s is no number of slots from 1 to %d", option, text,
                                  WEFT_WIRE_PES_MAX);
    options->slots += count;
    return -1;
}

int weft_hosts_take_list(struct weft_options *options, const char *option, const char *list) {
    for (const char *at = list; *at; at += *at == ',') {
        size_t length = strcspn(at, ",");
        const char *colon = memchr(at, ':', length);
        bool number = colon && *at != '[' && strncmp(at, "::1", 3) != 0;
        int status = host_take(options, option, at, number ? (size_t)(colon - at) : length,
                               number ? colon + 1 : NULL);
        if (status >= 0)
            return status;
        at += length;
    }
    return options->slots ? -1 : weft_options_error("%s: no host is named", option);
}

/* "localhost slots=4 max_slots=8", "localhost:4" or "localhost"; "#" begins a comment. */
static int line_take(struct weft_options *options, const char *option, char *line) {
    line[strcspn(line, "#\n")] = '\0';
    const char *name = line + strspn(line, " \t");
    size_t length = strcspn(name, ": \t");
    const char *slots = name[length] == ':' ? name + length : strstr(name + length, " slots=");
    if (length == 0)
        return -1;
    return host_take(options, option, name, length,
                     !slots ? NULL : slots + (*slots == ':' ? 1 : strlen(" slots=")));
}

int weft_hosts_take_file(struct weft_options *options, const char *option, const char *path) {
    char line[1024];
    int status = -1;
    FILE *file = fopen(path, "re");
    if (!file)
        return weft_options_error("%s %s: %s", option, path, strerror(errno));
    while (status < 0 && fgets(line, sizeof line, file))
        status = line_take(options, option, line);
    fclose(file);
    if (status < 0 && options->slots == 0)
        return weft_options_error("%s %s names no host", option, path);
    return status;
}

static int slurm_variable(const char *name) {
    const char *text = getenv(name);
    return text ? weft_options_number(text, 1, INT_MAX) : -1;
}

/* A task that srun has started beside others. The steps of batch scripts and of salloc's shell,
 * which are no tasks, have numbers above those of an int. */
static bool slurm_is_task(void) {
    const char *step = getenv("SLURM_STEP_ID");
    return step && weft_options_number(step, 0, INT_MAX) >= 0;
}

/* The number of tasks of Slurm's allocation on its hosts, whose number goes to *hosts; 0 outside of
 * an allocation. */
static int slurm_tasks(int *hosts) {
    int tasks = slurm_variable("SLURM_NTASKS");
    if (!getenv("SLURM_JOB_ID") || slurm_is_task())
        return 0;
    *hosts = slurm_variable("SLURM_JOB_NUM_NODES");
    *hosts = *hosts > 0 ? *hosts : slurm_variable("SLURM_NNODES");
    tasks = tasks > 0 ? tasks : slurm_variable("SLURM_NPROCS");
    if (tasks < 0 && getenv("SLURM_TASKS_PER_NODE")) /* like 4 or 2(x3) */
        tasks = atoi(getenv("SLURM_TASKS_PER_NODE"));
    return tasks > 0 ? tasks : 0;
}

int weft_hosts_count(const struct weft_options *options, int *npes) {
    int hosts = 1, tasks = 0;
    *npes = options->slots;
    if (options->slots == 0)
        tasks = slurm_tasks(&hosts);
    if (tasks > 0 && hosts > 1)
        return weft_options_error(
            "this allocation has %d hosts, and several are not supported yet: "
            "say with -n how many PEs to start on this one",
            hosts);
    if (tasks > 0)
        *npes = tasks;
    if (*npes == 0)
        *npes = 1;
    return -1;
}
