/* SPDX-License-Identifier: BSD-3-Clause */
/* The processors that a PE runs on: --map-by chooses a place for each PE, --bind-to how much around
 * it. */
#ifndef WEFT_LAUNCH_BIND_H
#define WEFT_LAUNCH_BIND_H

#include <sched.h>
#include <stdbool.h>
#include "launch/topology.h"

struct weft_binding {
    enum {
        WEFT_BIND_SHARE, /* not said: equal shares, where there is a processor for each PE */
        WEFT_BIND_NONE,
        WEFT_BIND_LEVEL,
    } kind;
    enum weft_level level; /* what a PE gets, */
    enum weft_level map;   /* and of which parts of the machine, one after the other; HOST: as they
                              come */
    enum weft_level rank;  /* PEs are numbered by turns through these; HOST: as they are placed */
    int width;             /* how many cores, or hardware threads where those are bound to; 0: 1 */
    int per;               /* PEs that stay together in each part; 0: one */
    const char *only;      /* a list of processors to choose from; NULL: all */
    bool report;
};

/* The binding without any option. */
#define WEFT_BINDING_DEFAULT \
    ((struct weft_binding){.map = WEFT_LEVEL_HOST, .rank = WEFT_LEVEL_HOST})

/* Take the words behind --bind-to, --map-by and --rank-by. NULL, or what is wrong with them. */
const char *weft_bind_parse_level(struct weft_binding *binding, const char *text);
const char *weft_bind_parse_map(struct weft_binding *binding, const char *text);
const char *weft_bind_parse_rank(struct weft_binding *binding, const char *text);

/* The number of PEs that --map-by ppr:N:part asks for; 0 without it. */
int weft_bind_demand(const struct weft_binding *binding);

/* Chooses for each of these PEs, which are those of this host. `cores`: what they may use, by quota
 * too. Whether PEs are bound: says why not when it was asked for in vain. Reports if asked to. */
bool weft_bind_plan(const struct weft_binding *binding, const int *pes, int npes, int cores,
                    cpu_set_t *sets);

#endif
