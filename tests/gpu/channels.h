/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of the collective kernels' own launchers: teams with channels, and arrays of all of
 * their members. */
#ifndef TESTS_GPU_CHANNELS_H
#define TESTS_GPU_CHANNELS_H

#include <shmemx.h>
#include "inside.h"
#include "core/team.h"

/* The arguments of a team's call; all members draw equal ones from its key. */
struct channels_team {
    const struct weft_team *team;
    struct weft_gpu_channels channels;
    int me, n;
};

/* Collective over the team. */
static inline struct channels_team channels_of(shmem_team_t handle, enum weft_gpu_form form) {
    struct channels_team of = {.team = weft_team_find(handle)};
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    int rc = weft_device_channels(&of.channels, of.team, form);
    weft_gpu_leave(scope);
    if (rc) {
        fprintf(stderr, "# PE %d: no channels: %d: %s\n", me, rc, weft_fail_text());
        shmem_global_exit(1);
    }
    of.me = of.team->my_pe, of.n = of.team->npes;
    return of;
}

/* Returns the memory at p, in the device heap, on all members. */
static inline struct weft_array channels_array(const struct channels_team *of, const void *p) {
    struct weft_array array;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    int places[2], error = weft_device_words(&array, of->team);
    weft_gpu_leave(scope);
    char *at[2];
    for (int i = 0; i < 2; i++) {
        places[i] = weft_team_place(of->team, i);
        at[i] = weft_device_near(p, 1, weft_team_world_pe(of->team, i));
    }
    EXPECT(error == 0 && at[0] && at[1], "no array: %d: %s", error, weft_fail_text());
    array.step = (at[1] - at[0]) / (places[1] - places[0]);
    array.first = at[0] - places[0] * array.step;
    return array;
}

#endif
