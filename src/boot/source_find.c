/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of all sources: finds the one that started this process, and asks it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/privilege.h"
#include "boot/source.h"

/* In this order: what the program itself says, then oshrun, then the sources that provide most.
 * Servers of PMI-2 also speak PMI-1, so PMI-2 is only used when WEFT_LAUNCHER names it. */
static const struct weft_source *const sources[] = {
    &weft_source_given, &weft_source_oshrun,   &weft_source_pmix, &weft_source_pmi1,
    &weft_source_pmi2,  &weft_source_torchrun, &weft_source_slurm};

enum { NSOURCES = sizeof sources / sizeof *sources };

int weft_source_find(const struct weft_source **source) {
    const char *wanted = getenv("WEFT_LAUNCHER");
    if (wanted && strcmp(wanted, "auto") == 0)
        wanted = NULL;
    *source = NULL;
    if (weft_privileged())
        return 0;
    if (weft_source_given.promises())
        *source = &weft_source_given;
    if (*source || (wanted && strcmp(wanted, "none") == 0))
        return 0;
    for (int i = 0; i < NSOURCES; i++) {
        if (wanted ? strcmp(wanted, sources[i]->name) != 0 : !sources[i]->promises())
            continue;
        *source = sources[i];
        return 0;
    }
    return wanted ? -EINVAL : 0;
}

const struct weft_source *weft_source_announced(void) {
    for (int i = 0; i < NSOURCES; i++)
        if (sources[i]->promises() > 1)
            return sources[i];
    return NULL;
}

static int store_share_key(struct weft_identity *self) {
    static const char key[] = "weft-key";
    const struct weft_source *source = self->source;
    char text[WEFT_STORE_VALUE_MAX];
    int error = self->pe == 0 ? weft_job_key_draw(&self->job_key) : 0;
    weft_job_key_write(&self->job_key, text);
    if (error == 0 && self->pe == 0)
        error = source->put(key, text);
    error = error ? error : source->fence();
    error = error ? error : source->get(key, text, sizeof text);
    return error ? error : weft_job_key_read(self, text);
}

/* Checks that PEs of other hosts can connect to PE 0. */
static int host_check(const struct weft_identity *self) {
    if (!weft_source_is_elsewhere(self))
        return 0;
    if (self->pe == 0)
        weft_log(
            "%s: if PEs are on several hosts, PE 0 must be the process that has made the unique "
            "id",
            self->source->name);
    else if (!self->job_key.invitation.port)
        weft_log("%s: PE 0 runs on another host than PE %d, or in another network namespace, and "
                 "has no address there to which others could connect",
                 self->source->name, self->pe);
    else
        return 0;
    return -EHOSTUNREACH;
}

static int place_check(const struct weft_identity *self) {
    if (self->npes >= 1 && self->npes <= WEFT_WIRE_PES_MAX && self->pe >= 0 &&
        self->pe < self->npes)
        return 0;
    weft_log("%s: PE %d of %d is not valid: a job has 1 to %d PEs, numbered from 0",
             self->source->name, self->pe, self->npes, WEFT_WIRE_PES_MAX);
    return -EINVAL;
}

int weft_source_identify(const struct weft_source *source, struct weft_identity *self) {
    *self = (struct weft_identity){.source = source, .pe = -1};
    int error = source->open(self);
    error = error ? error : place_check(self);
    if (error == 0 && self->npes > 1)
        weft_log_set_pe(self->pe);
    if (self->here < 0 || self->here > self->npes)
        self->here = 0; /* the launcher's number is wrong */
    if (error || self->npes == 1)
        return error;
    if (source->describe)
        source->describe(self);
    error = source->share ? source->share(self) : store_share_key(self);
    return error ? error : host_check(self);
}
