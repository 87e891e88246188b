/* SPDX-License-Identifier: BSD-3-Clause */
/* A host that is named twice has the slots of both entries. All names of this host count as one
 * host. */
#include "launch/hosts.h"
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/machine.h"
#include "boot/tree.h"

enum { NAME_BYTES = WEFT_TREE_NAME_BYTES };

static bool address_is(const struct sockaddr *address, const char *text) {
    unsigned char wanted[sizeof(struct in6_addr)];
    if (!address || inet_pton(address->sa_family, text, wanted) != 1)
        return false;
    if (address->sa_family == AF_INET)
        return !memcmp(&((const struct sockaddr_in *)address)->sin_addr, wanted,
                       sizeof(struct in_addr));
    return !memcmp(&((const struct sockaddr_in6 *)address)->sin6_addr, wanted,
                   sizeof(struct in6_addr));
}

/* Returns whether the text is the address of an interface of this host. */
static bool address_is_own(const char *text) {
    unsigned char any[sizeof(struct in6_addr)];
    struct ifaddrs *list = NULL;
    bool own = false;
    if (inet_pton(AF_INET, text, any) != 1 && inet_pton(AF_INET6, text, any) != 1)
        return false;
    if (getifaddrs(&list) == 0)
        for (const struct ifaddrs *each = list; each && !own; each = each->ifa_next)
            own = address_is(each->ifa_addr, text);
    freeifaddrs(list);
    return own;
}

const char *weft_hosts_own_name(void) {
    static char own[NAME_BYTES];
    if (!*own && gethostname(own, sizeof own - 1) < 0)
        snprintf(own, sizeof own, "localhost");
    return own;
}

static bool host_is_this(const char *name) {
    const char *own = weft_hosts_own_name();
    if (strcmp(name, "localhost") == 0 || address_is_own(name))
        return true;
    size_t label = strcspn(own, "."); /* with or without its domain */
    return label > 0 && strncasecmp(name, own, label) == 0 && strcspn(name, ".") == label &&
           (!name[label] || !own[label] || strcasecmp(name, own) == 0);
}

/* Copies a name, without the brackets of an IPv6 address. Returns NULL if it is not a valid name,
 * or if ssh or a shell could read it as an option or as several words. */
static char *name_copy(const char *name, size_t length) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                  "._-@:%";
    bool brackets = length > 2 && name[0] == '[' && name[length - 1] == ']';
    char *copy = brackets ? strndup(name + 1, length - 2) : strndup(name, length);
    if (copy && *copy && *copy != '-' && strlen(copy) < NAME_BYTES && !copy[strspn(copy, allowed)])
        return copy;
    free(copy);
    return NULL;
}

/* Returns the host with this name, which is added to the list if it is new; NULL: no memory. */
static struct weft_listed_host *host_enter(struct weft_host_list *hosts, char *name) {
    bool here = host_is_this(name);
    for (int i = 0; i < hosts->count; i++)
        if (here ? hosts->host[i].here : strcasecmp(hosts->host[i].name, name) == 0)
            return &hosts->host[i];
    struct weft_listed_host *longer =
        realloc(hosts->host, ((size_t)hosts->count + 1) * sizeof *longer);
    if (!longer)
        return NULL;
    hosts->host = longer;
    const char *shown = here ? weft_hosts_own_name() : name;
    longer[hosts->count] = (struct weft_listed_host){.name = name, .shown = shown, .here = here};
    return &longer[hosts->count++];
}

/* Adds one host with the number of slots in the text; NULL: one slot. */
static int host_take(struct weft_options *options, const char *option, const char *name,
                     size_t length, const char *slots) {
    char text[16] = "1", *copy = name_copy(name, length);
    if (!copy)
        return weft_options_error("%s: '%.*s' is not the name of a host", option, (int)length,
                                  name);
    if (slots)
        snprintf(text, sizeof text, "%.*s", (int)strcspn(slots, ", \t\n"), slots);
    int count = weft_options_number(text, 1, WEFT_WIRE_PES_MAX);
    struct weft_listed_host *host = count < 0 ? NULL : host_enter(&options->hosts, copy);
    if (!host || host->name != copy) /* already on the list */
        free(copy);
    if (count < 0)
        return weft_options_error("%s: %s is not a number of slots from 1 to %d", option, text,
                                  WEFT_WIRE_PES_MAX);
    if (!host)
        return weft_options_error("no memory for a list of hosts");
    host->slots = host->slots < WEFT_WIRE_PES_MAX ? host->slots + count : host->slots;
    return -1;
}

static bool hosts_are_this(const struct weft_host_list *hosts) {
    return hosts->count == 0 || (hosts->count == 1 && hosts->host[0].here);
}

static int slots_sum(const struct weft_host_list *hosts) {
    int sum = 0;
    for (int i = 0; i < hosts->count; i++)
        sum += hosts->host[i].slots;
    return sum;
}

int weft_hosts_take_list(struct weft_options *options, const char *option, const char *list) {
    for (const char *at = list; *at; at += *at == ',') {
        size_t length = strcspn(at, ",");
        const char *colon = memchr(at, ':', length);
        if (*at == '[') /* an IPv6 address contains colons */
            colon = memmem(at, length, "]:", 2);
        colon += colon && *at == '[';
        bool number =
            colon && (*at == '[' || !memchr(colon + 1, ':', length - (size_t)(colon + 1 - at)));
        int status = host_take(options, option, at, number ? (size_t)(colon - at) : length,
                               number ? colon + 1 : NULL);
        if (status >= 0)
            return status;
        at += length;
    }
    return options->hosts.count ? -1 : weft_options_error("%s: no host is named", option);
}

/* Parses a line such as "localhost slots=4 max_slots=8", "localhost:4" or "localhost"; "#" begins a
 * comment. */
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
    if (status < 0 && options->hosts.count == 0)
        return weft_options_error("%s %s names no host", option, path);
    return status;
}

static int slurm_variable(const char *name) {
    const char *text = getenv(name);
    return text ? weft_options_number(text, 1, INT_MAX) : -1;
}

/* Returns whether this process is a task that srun started. The steps of batch scripts and of
 * salloc's shell are not tasks; their step numbers exceed INT_MAX. */
static bool slurm_is_task(void) {
    const char *step = getenv("SLURM_STEP_ID");
    return step && weft_options_number(step, 0, INT_MAX) >= 0;
}

/* Returns the number of tasks of Slurm's allocation and stores its number of hosts in *hosts;
 * returns 0 outside of an allocation. */
static int slurm_tasks(int *hosts) {
    int tasks = slurm_variable("SLURM_NTASKS");
    if (!getenv("SLURM_JOB_ID") || slurm_is_task())
        return 0;
    *hosts = slurm_variable("SLURM_JOB_NUM_NODES");
    *hosts = *hosts > 0 ? *hosts : slurm_variable("SLURM_NNODES");
    tasks = tasks > 0 ? tasks : slurm_variable("SLURM_NPROCS");
    if (tasks < 0 && getenv("SLURM_TASKS_PER_NODE")) /* such as 4 or 2(x3) */
        tasks = atoi(getenv("SLURM_TASKS_PER_NODE"));
    return tasks > 0 ? tasks : 0;
}

int weft_hosts_count(const struct weft_options *options, int *npes) {
    int hosts = 1, tasks = 0;
    *npes = slots_sum(&options->hosts);
    if (*npes == 0)
        tasks = slurm_tasks(&hosts);
    if (tasks > 0 && hosts > 1)
        return weft_options_error(
            "this allocation has %d hosts: name them with --hosts (scontrol show hostnames lists "
            "them), or say with -n how many PEs to start on this one",
            hosts);
    if (tasks > 0)
        *npes = tasks;
    if (*npes == 0)
        *npes = 1;
    return -1;
}

/* Computes the number of PEs that each host may have. */
static int limits_find(const struct weft_options *options, int *limit) {
    const struct weft_host_list *hosts = &options->hosts;
    int per = options->binding.map == WEFT_LEVEL_HOST ? options->binding.per : 0, left = 0;
    int slots = slots_sum(hosts), npes = options->npes;
    per = options->per_host ? options->per_host : per;
    if (per && (long)per * hosts->count < npes)
        return weft_options_error("%d PEs at %d per host need more than %d hosts", npes, per,
                                  hosts->count);
    if (!per && npes > slots && options->no_more_than_processors)
        return weft_options_error("%d PEs are more than the %d slots of these hosts", npes, slots);
    for (int i = 0; i < hosts->count; i++) {
        int share = (int)((long)hosts->host[i].slots * npes / slots);
        limit[i] = per ? per : npes > slots ? share : hosts->host[i].slots;
        left += limit[i];
    }
    for (int i = 0; left < npes; i = (i + 1) % hosts->count, left++)
        limit[i]++;
    return -1;
}

/* Assigns PEs to hosts: round-robin if by_host is set, otherwise to the first host that may have
 * more. */
static void pes_deal(struct weft_options *options, int *limit) {
    struct weft_host_list *hosts = &options->hosts;
    for (int pe = 0, at = 0; pe < options->npes; pe++) {
        while (limit[at] == 0)
            at = (at + 1) % hosts->count;
        limit[at]--;
        hosts->of[pe] = at;
        if (options->by_host)
            at = (at + 1) % hosts->count;
    }
}

static void idle_hosts_strike(struct weft_options *options) {
    struct weft_host_list *hosts = &options->hosts;
    int kept = 0;
    for (int host = 0; host < hosts->count; host++) {
        bool used = false;
        for (int pe = 0; pe < options->npes; pe++)
            if (hosts->of[pe] == host) {
                used = true;
                hosts->of[pe] = kept;
            }
        if (used)
            hosts->host[kept++] = hosts->host[host];
    }
    hosts->count = kept;
}

/* Checks the number of PEs of a job on this host only. */
static int pes_check(const struct weft_options *options) {
    int npes = options->npes, cores = weft_machine_cores();
    if (options->no_more_than_processors && npes > cores)
        return weft_options_error("%d PEs are more than the %d processors that this job may use",
                                  npes, cores);
    if (options->per_host && npes > options->per_host)
        return weft_options_error("%d PEs at %d per host need more hosts than this one: name them "
                                  "with --hosts",
                                  npes, options->per_host);
    return -1;
}

int weft_hosts_place(struct weft_options *options) {
    struct weft_host_list *hosts = &options->hosts;
    if (hosts_are_this(hosts))
        return pes_check(options);
    int *limit = calloc((size_t)hosts->count, sizeof *limit);
    hosts->of = calloc((size_t)options->npes, sizeof *hosts->of);
    if (!limit || !hosts->of)
        return weft_options_error("no memory for a list of hosts");
    int status = limits_find(options, limit);
    if (status < 0) {
        pes_deal(options, limit);
        idle_hosts_strike(options);
    }
    free(limit);
    if (status < 0 && hosts_are_this(hosts)) {
        free(hosts->of);
        hosts->of = NULL;
        status = pes_check(options);
    }
    return status;
}
