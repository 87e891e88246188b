/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <shmemx.h>
#include "job/made.h"
#include "core/dispatch.h"
#include "api/checked.h"
#include "api/define.h"
#include "api/refuse.h"

API(int, team_my_pe, (shmem_team_t team)) {
    const struct weft_team *members = weft_team_find(team);
    return members ? members->my_pe : -1;
}

API(int, team_n_pes, (shmem_team_t team)) {
    const struct weft_team *members = weft_team_find(team);
    return members ? members->npes : -1;
}

API(int, team_get_config, (shmem_team_t team, long config_mask, shmem_team_config_t *config)) {
    const struct weft_team *members = weft_team_find(team);
    if (!members || (config_mask & ~SHMEM_TEAM_NUM_CONTEXTS))
        return -EINVAL;
    weft_check_local(__func__, "config", config, config_mask != 0);
    if (config_mask & SHMEM_TEAM_NUM_CONTEXTS)
        config->num_contexts = members->config.num_contexts;
    return 0;
}

API(int, team_translate_pe, (shmem_team_t src_team, int src_pe, shmem_team_t dest_team)) {
    const struct weft_team *from = weft_team_find(src_team), *to = weft_team_find(dest_team);
    if (!from || !to || src_pe < 0 || src_pe >= from->npes)
        return -1;
    return weft_team_member(to, weft_team_world_pe(from, src_pe));
}

/* In checked mode, lists the team at the end of the job unless it is destroyed before. */
static int note_team(int error, const shmem_team_t *team) {
    const struct weft_team *members = weft_checked() ? weft_team_find(*team) : NULL;
    if (error == 0 && members && members->my_pe == 0)
        weft_made_keep(WEFT_MADE_TEAM, *team, 0);
    return error;
}

API(int, team_split_strided,
    (shmem_team_t parent_team, int start, int stride, int size, const shmem_team_config_t *config,
     long config_mask, shmem_team_t *new_team)) {
    WEFT_ENTER(__func__);
    weft_check_local(__func__, "new_team", new_team, sizeof *new_team);
    weft_check_local(__func__, "config", config, config_mask != 0);
    struct weft_team *parent = weft_team_find(parent_team);
    *new_team = SHMEM_TEAM_INVALID;
    if (!parent)
        return -EINVAL;
    if (weft_checked())
        weft_consistency_check(parent, (struct weft_same[]){{"start", start},
                                                            {"stride", stride},
                                                            {"size", size},
                                                            {"config_mask", config_mask},
                                                            {NULL, 0}});
    struct weft_split split = {start, stride, size, config, config_mask};
    return note_team(weft_team_split(parent, &split, new_team), new_team);
}

/* One axis of a grid: line i consists of the parent's PEs i * distance, + stride, + 2 * stride, ...
 * within the next `reach` PEs. Every member of the parent helps to create every line and belongs to
 * one. */
struct axis {
    int nlines, distance, stride, reach;
    const shmem_team_config_t *config;
    long mask;
};

static int split_axis(struct weft_team *parent, const struct axis *axis, shmem_team_t *team) {
    for (int line = 0; line < axis->nlines; line++) {
        int start = line * axis->distance, left = parent->npes - start;
        int reach = axis->reach < left ? axis->reach : left;
        struct weft_split split = {.start = start,
                                   .stride = axis->stride,
                                   .size = (reach + axis->stride - 1) / axis->stride,
                                   .config = axis->config,
                                   .config_mask = axis->mask};
        shmem_team_t made;
        int error = weft_team_split(parent, &split, &made);
        if (error)
            return error;
        if (made != SHMEM_TEAM_INVALID)
            *team = made;
    }
    return 0;
}

static void destroy_team(struct weft_team *members) {
    if (weft_space_device)
        weft_space_device->team_ended(members);
    weft_team_destroy(members);
    if (weft_space_device)
        weft_space_device->team_parted();
}

static void drop_team(shmem_team_t *team) {
    struct weft_team *members = weft_team_find(*team);
    if (members)
        destroy_team(members);
    *team = SHMEM_TEAM_INVALID;
}

API(int, team_split_2d,
    (shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config, long xaxis_mask,
     shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config, long yaxis_mask,
     shmem_team_t *yaxis_team)) {
    WEFT_ENTER(__func__);
    weft_check_local(__func__, "xaxis_team", xaxis_team, sizeof *xaxis_team);
    weft_check_local(__func__, "yaxis_team", yaxis_team, sizeof *yaxis_team);
    weft_check_local(__func__, "xaxis_config", xaxis_config, xaxis_mask != 0);
    weft_check_local(__func__, "yaxis_config", yaxis_config, yaxis_mask != 0);
    struct weft_team *parent = weft_team_find(parent_team);
    *xaxis_team = *yaxis_team = SHMEM_TEAM_INVALID;
    if (!parent || xrange < 1)
        return -EINVAL;
    if (weft_checked())
        weft_consistency_check(parent, (struct weft_same[]){{"xrange", xrange},
                                                            {"xaxis_mask", xaxis_mask},
                                                            {"yaxis_mask", yaxis_mask},
                                                            {NULL, 0}});
    int npes = parent->npes, width = xrange < npes ? xrange : npes;
    struct axis x = {(npes + width - 1) / width, width, 1, width, xaxis_config, xaxis_mask};
    struct axis y = {width, 1, width, npes, yaxis_config, yaxis_mask};
    int error = split_axis(parent, &x, xaxis_team);
    if (error == 0)
        error = split_axis(parent, &y, yaxis_team);
    if (error) {
        drop_team(xaxis_team);
        drop_team(yaxis_team);
    }
    note_team(error, xaxis_team);
    return note_team(error, yaxis_team);
}

/* Extension: a team of any PEs, in any order. */
int shmemx_team_create(const int *pes, int npes, uint64_t tag, shmem_team_t *team) {
    WEFT_IN_CALL(__func__);
    struct weft_boot_subset subset;
    int result = weft_refuse_null("team", team);
    if (result)
        return result;
    *team = SHMEM_TEAM_INVALID;
    result = weft_refuse_phase();
    result = result ? result : weft_refuse_list(pes, npes, tag, &subset);
    return result ? result : note_team(weft_team_create(&subset, team), team);
}

static bool is_context(const void *ctx) {
    return weft_ctx_find((shmem_ctx_t)ctx) != NULL;
}

/* Also destroys the team's contexts, which the standard requires the program to destroy before. */
API(void, team_destroy, (shmem_team_t team)) {
    WEFT_ENTER(__func__);
    if (team == SHMEM_TEAM_INVALID)
        return;
    struct weft_team *members = weft_team_find(team);
    if (!members || team == SHMEM_TEAM_WORLD || team == SHMEM_TEAM_SHARED)
        weft_misuse_handle(__func__, "team", team, "a team that was made, and not destroyed");
    if (weft_checked())
        weft_consistency_check(members, WEFT_NO_ARGUMENTS);
    weft_dispatch_quiet();
    weft_ctx_destroy_all(team);
    destroy_team(members);
    if (weft_checked()) {
        weft_made_forget(WEFT_MADE_TEAM, team);
        weft_made_sweep(WEFT_MADE_CONTEXT, is_context);
    }
}
