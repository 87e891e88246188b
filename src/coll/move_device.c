/* SPDX-License-Identifier: BSD-3-Clause */
/* The mover of arrays in the memory of GPUs, of which either may be the host's: members meet on the
 * host, and each one's GPU copies between the members' memory and its own. */
#include "coll/move.h"
#include "core/rma_space.h"

static void device_complete(const struct weft_group *group) {
    weft_space_quiet(group->call);
}

/* What this member has begun is part of what it brings. */
static void device_meet(const struct weft_group *group) {
    weft_space_quiet(group->call);
    group->sync(group);
}

static int pull_strided(const struct weft_transfer *t, int pe, const char *call) {
    ptrdiff_t elem = (ptrdiff_t)t->bytes;
    struct weft_strided shape = {t->bytes, 1, t->npieces, t->dest_piece / elem,
                                 t->source_piece / elem};
    return weft_space_device->rma->get_strided(t->dest, t->source, &shape, pe, call);
}

static void device_pull(const struct weft_group *group, const struct weft_transfer *t, int member) {
    int pe = weft_group_pe(group, member), error;
    if (t->npieces > 1)
        error = pull_strided(t, pe, group->call);
    else if (weft_space_device->rma->concerns(t->source, t->dest))
        error = weft_space_device->rma->get(t->dest, t->source, t->bytes, pe, true, group->call);
    else
        error = weft_rma_get(t->dest, t->source, t->bytes, pe);
    if (error)
        weft_group_lacks(group, t->source, weft_transfer_span(t), member);
}

static void device_push(const struct weft_group *group, const struct weft_transfer *t, int member) {
    int pe = weft_group_pe(group, member);
    int error =
        weft_space_device->rma->concerns(t->dest, t->source)
            ? weft_space_device->rma->put(t->dest, t->source, t->bytes, pe, true, group->call)
            : weft_rma_put(t->dest, t->source, t->bytes, pe);
    if (error)
        weft_group_lacks(group, t->dest, t->bytes, member);
}

const struct weft_mover weft_mover_device = {
    .meet = device_meet, .complete = device_complete, .pull = device_pull, .push = device_push};
