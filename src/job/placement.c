/* SPDX-License-Identifier: BSD-3-Clause */
/* The host of each PE, as reported by the launcher or set by WEFT_PRETEND_HOSTS, and the division
 * into progressions. */
#include "job/placement.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/env.h"

enum { HOSTS_MAX = 1 << 20, TAKEN = -1 };

static int refuse(const char *why) {
    weft_log("WEFT_PRETEND_HOSTS is '%s', %s: set it to the PEs of each host (2+1), cyclic:HOSTS, "
             "each, the host of every PE (list:0,0,1), or none",
             weft_env.pretend_hosts, why);
    return -EINVAL;
}

static int refuse_number(const char *what, int named, int npes) {
    weft_log("WEFT_PRETEND_HOSTS is '%s', %s %d PEs, but the job has %d", weft_env.pretend_hosts,
             what, named, npes);
    return -EINVAL;
}

/* Reads a decimal number and the separator or end of text that must follow it, and moves *at past
 * both. Returns -1 if there is no such number. */
static int take_number(const char **at, char separator) {
    long number = 0;
    if (!isdigit((unsigned char)**at))
        return -1;
    while (isdigit((unsigned char)**at) && number < HOSTS_MAX)
        number = 10 * number + (*(*at)++ - '0');
    bool more = **at == separator && (*at)[1] != '\0';
    if (number >= HOSTS_MAX || (**at != '\0' && !more))
        return -1;
    *at += more;
    return (int)number;
}

/* Reads the number of PEs of each host, as in "2+1". */
static int read_blocks(const char *at, int npes, int *hosts) {
    int named = 0;
    for (int host = 0; *at; host++) {
        int size = take_number(&at, '+');
        if (size < 1)
            return refuse("which is not a placement");
        for (int pe = named; pe < npes && pe < named + size; pe++)
            hosts[pe] = host;
        named = named + size < HOSTS_MAX ? named + size : HOSTS_MAX;
    }
    return named == npes ? 0 : refuse_number("whose hosts have", named, npes);
}

static int read_cyclic(const char *at, int npes, int *hosts) {
    int nhosts = take_number(&at, '\0');
    if (nhosts < 1)
        return refuse("which gives no number of hosts");
    for (int pe = 0; pe < npes; pe++)
        hosts[pe] = pe % nhosts;
    return 0;
}

static int read_list(const char *at, int npes, int *hosts) {
    int named = 0;
    do {
        int host = take_number(&at, ',');
        if (host < 0)
            return refuse("which is not a list of hosts");
        if (named < npes)
            hosts[named] = host;
        named++;
    } while (*at);
    return named == npes ? 0 : refuse_number("which lists", named, npes);
}

/* WEFT_PRETEND_HOSTS applies only to a job on one host. */
static int read_hosts(const char *text, int npes, int *hosts) {
    static const char cyclic[] = "cyclic:", list[] = "list:";
    if (weft_boot_nhosts() > 1)
        for (int pe = 0; pe < npes; pe++)
            hosts[pe] = weft_boot_host(pe);
    else if (strcmp(text, "each") == 0)
        for (int pe = 0; pe < npes; pe++)
            hosts[pe] = pe;
    else if (strncmp(text, cyclic, sizeof cyclic - 1) == 0)
        return read_cyclic(text + sizeof cyclic - 1, npes, hosts);
    else if (strncmp(text, list, sizeof list - 1) == 0)
        return read_list(text + sizeof list - 1, npes, hosts);
    else
        return isdigit((unsigned char)*text) ? read_blocks(text, npes, hosts)
                                             : refuse("which is not a placement");
    return 0;
}

/* Returns the first PE from `pe` on that is on `host` and in no progression yet, or npes. */
static int next_of(const int *hosts, int npes, int host, int pe) {
    while (pe < npes && hosts[pe] != host)
        pe++;
    return pe;
}

static struct weft_slots run_of(int *hosts, int npes, int pe) {
    int host = hosts[pe];
    for (int first = 0;;) {
        first = next_of(hosts, npes, host, first);
        int next = next_of(hosts, npes, host, first + 1);
        int step = next < npes ? next - first : 1;
        struct weft_slots slots = {.first = (uint32_t)first, .step = (uint32_t)step};
        for (int member = first; member < npes && hosts[member] == host; member += step) {
            hosts[member] = TAKEN;
            slots.count++;
        }
        if (weft_slots_have(&slots, pe)) {
            slots.mine = (uint32_t)((pe - first) / step);
            return slots;
        }
    }
}

int weft_placement_read(int pe, int npes, struct weft_slots *slots) {
    *slots = (struct weft_slots){.step = 1, .count = (uint32_t)npes, .mine = (uint32_t)pe};
    if (weft_boot_nhosts() == 1 && strcmp(weft_env.pretend_hosts, "none") == 0)
        return 0;
    int *hosts = calloc((size_t)npes, sizeof *hosts);
    if (!hosts) {
        weft_log("no memory for the hosts of %d PEs", npes);
        return -ENOMEM;
    }
    int result = read_hosts(weft_env.pretend_hosts, npes, hosts);
    if (result == 0)
        *slots = run_of(hosts, npes, pe);
    free(hosts);
    return result;
}
