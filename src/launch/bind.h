/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the processors that each PE runs on: --map-by places PEs on parts of the machine, and
 * --bind-to says how large a part each PE is bound to. */
#ifndef WEFT_LAUNCH_BIND_H
#define WEFT_LAUNCH_BIND_H

#include <sched.h>
#include <stdbool.h>
#include "launch/topology.h"

struct weft_binding {
    enum {
        WEFT_BIND_SHARE, /* no option: equal shares, if each PE can have a processor */
        WEFT_BIND_NONE,
        WEFT_BIND_LEVEL,
    } kind;
    enum weft_level level; /* the part that a PE is bound to */
    enum weft_level map;   /* parts on which PEs are placed round-robin; HOST: placed in order */
    enum weft_level rank;  /* parts through which PEs are numbered round-robin; HOST: as placed */
    int width;        /* number of cores (hardware threads if those are bound to) per PE; 0: one */
    int per;          /* consecutive PEs on each part; 0: one */
    const char *only; /* list of allowed processors; NULL: all */
    bool report;
};

/* The binding if no option is given. */
#define WEFT_BINDING_DEFAULT \
    ((struct weft_binding){.map = WEFT_LEVEL_HOST, .rank = WEFT_LEVEL_HOST})

/* Parse the arguments of --bind-to, --map-by and --rank-by. Return NULL, or a text that describes
 * the error. */
const char *weft_bind_parse_level(struct weft_binding *binding, const char *text);
const char *weft_bind_parse_map(struct weft_binding *binding, const char *text);
const char *weft_bind_parse_rank(struct weft_binding *binding, const char *text);

/* Returns the number of PEs that --map-by ppr:N:part asks for; 0 without that option. */
int weft_bind_demand(const struct weft_binding *binding);

/* Chooses the processors of each of the `npes` PEs of this host, whose numbers are in `pes`.
 * `cores` is the number of processors that the job may use, including limits by a cgroup's quota.
 * Returns whether PEs are bound. Prints a line if the requested binding is impossible, and one line
 * per PE for --report-bindings. */
bool weft_bind_plan(const struct weft_binding *binding, const int *pes, int npes, int cores,
                    cpu_set_t *sets);

#endif
