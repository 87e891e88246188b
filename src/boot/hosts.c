/* SPDX-License-Identifier: BSD-3-Clause */
/* The data was checked when it was set and never changes afterwards, so any thread may read it. */
#include "boot/hosts.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"

enum { PES_NAMED_MAX = 4 };

static struct {
    int npes, nhosts, here, npes_here;
    int32_t *host_of; /* NULL: all on one host */
    struct weft_host *host;
    struct weft_network network;
} hosts = {.nhosts = 1};

/* Host names come from other machines and are printed. */
static void hosts_clean(void) {
    for (int host = 0; host < hosts.nhosts; host++)
        weft_log_make_printable(hosts.host[host].name, sizeof hosts.host[host].name);
    hosts.npes_here = 0;
    for (int pe = 0; pe < hosts.npes; pe++)
        hosts.npes_here += hosts.host_of[pe] == hosts.here;
}

/* Allocates the arrays for a job on several hosts. */
static int hosts_make(int npes, int nhosts) {
    free(hosts.host_of);
    free(hosts.host);
    hosts.host_of = calloc((size_t)npes, sizeof *hosts.host_of);
    hosts.host = calloc((size_t)nhosts, sizeof *hosts.host);
    hosts.npes = npes;
    hosts.nhosts = nhosts;
    if (hosts.host_of && hosts.host)
        return 0;
    hosts.nhosts = 1;
    return -ENOMEM;
}

static bool given_is_sensible(const struct weft_hosts_given *given) {
    bool sensible = given->here >= -1 && given->here < given->nhosts;
    for (int pe = 0; sensible && pe < given->npes; pe++)
        sensible = given->host_of[pe] >= 0 && given->host_of[pe] < given->nhosts;
    return sensible;
}

int weft_hosts_set(const struct weft_hosts_given *given) {
    if (!given_is_sensible(given))
        return -EPROTO;
    int error = hosts_make(given->npes, given->nhosts);
    if (error)
        return error;
    hosts.here = given->here;
    memcpy(hosts.host_of, given->host_of, (size_t)given->npes * sizeof *hosts.host_of);
    memcpy(hosts.host, given->host, (size_t)given->nhosts * sizeof *hosts.host);
    hosts.network = given->network ? *given->network : (struct weft_network){.interface = ""};
    hosts.network.interface[sizeof hosts.network.interface - 1] = '\0';
    hosts_clean();
    return 0;
}

void weft_hosts_set_one(int npes) {
    hosts.npes = npes;
}

int weft_boot_nhosts(void) {
    return hosts.nhosts;
}

int weft_boot_host(int pe) {
    if (hosts.nhosts == 1)
        return 0;
    return pe >= 0 && pe < hosts.npes ? hosts.host_of[pe] : -1;
}

bool weft_boot_is_here(int pe) {
    return weft_boot_host(pe) == hosts.here;
}

int weft_boot_npes_here(void) {
    return hosts.nhosts == 1 ? hosts.npes : hosts.npes_here;
}

const char *weft_boot_host_name(int host) {
    return hosts.host && host >= 0 && host < hosts.nhosts ? hosts.host[host].name : "";
}

const struct weft_network *weft_boot_network(void) {
    return hosts.nhosts > 1 && hosts.network.interface[0] ? &hosts.network : NULL;
}

struct weft_on weft_boot_on(int pe) {
    const char *name = hosts.nhosts > 1 ? weft_boot_host_name(weft_boot_host(pe)) : "";
    struct weft_on on;
    snprintf(on.text, sizeof on.text, "%s%s", *name ? " on " : "", name);
    return on;
}

void weft_boot_pes_text(int host, char *text, size_t bytes) {
    int count = 0, used = 0;
    for (int pe = 0; pe < hosts.npes; pe++)
        count += weft_boot_host(pe) == host;
    used = snprintf(text, bytes, "%s", count == 0 ? "no PE" : count == 1 ? "PE" : "PEs");
    for (int pe = 0, named = 0; pe < hosts.npes && named < PES_NAMED_MAX; pe++)
        if (weft_boot_host(pe) == host && (size_t)used < bytes)
            used += snprintf(text + used, bytes - (size_t)used, "%s %d", named++ ? "," : "", pe);
    if (count > PES_NAMED_MAX && (size_t)used < bytes)
        snprintf(text + used, bytes - (size_t)used, " and %d more", count - PES_NAMED_MAX);
}
