/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/landing.h"
#include <errno.h>
#include <stdlib.h>
#include "base/size.h"

/* `bytes` behind what is taken of the own workspace, or NULL where it has no room for them. */
static char *workspace_behind(struct weft_team *team, size_t taken, size_t bytes) {
    if (weft_team_workspace_commit(team, taken + bytes))
        return NULL;
    return (char *)weft_team_workspace_of(team, team->my_pe) + taken;
}

int weft_landing_open(struct weft_landing *landing, struct weft_team *team, size_t taken,
                      size_t room_bytes) {
    *landing = (struct weft_landing){0};
    if (room_bytes == 0)
        return 0;
    size_t step = weft_page_up(room_bytes);
    char *rooms = workspace_behind(team, weft_page_up(taken), 2 * step);
    if (!rooms)
        rooms = landing->allocated = malloc(2 * step);
    if (!rooms)
        return weft_fail_bare(-ENOMEM, "no memory for %s of what far members show",
                              weft_size(2 * step).text);
    landing->room[0] = rooms;
    landing->room[1] = rooms + step;
    return 0;
}

void weft_landing_close(struct weft_landing *landing) {
    free(landing->allocated);
    *landing = (struct weft_landing){0};
}

weft_matrix weft_landing_bring(const struct weft_landing *landing, int room,
                               const struct weft_shown *shown, const struct weft_team *team) {
    weft_matrix here = shown->at;
    if (here.data || here.rows == 0 || here.cols == 0)
        return here;
    here.data = landing->room[room];
    here.ld = here.cols;
    weft_shown_copy(&here, shown, team);
    return here;
}
