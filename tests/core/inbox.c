/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the layout of the words for far members in the slot of a team of many PEs, and the
 * error if slots are too small for them. There is no job, only its numbers. PEs: 1 */
#include "job/job.h"
#include "core/team.h"
#include "tap.h"

enum { PE = 34, SLOT_BYTES_MIN = 64 << 10 };

static int open_teams(int npes, size_t slot_bytes) {
    struct weft_segment *scratch = &weft_windows.scratch;
    weft_job.pe = PE;
    weft_job.npes = npes;
    weft_job.far = true;
    EXPECT(weft_segment_alloc(scratch, "inbox", &(struct weft_slots){PE, 1, 1, 0},
                              slot_bytes * WEFT_TEAMS_MAX, slot_bytes * WEFT_TEAMS_MAX) == 0,
           "no scratch");
    return weft_teams_open();
}

static void close_teams(void) {
    weft_teams_close();
    weft_segment_free(&weft_windows.scratch);
    weft_job.far = false;
    weft_job.npes = 0;
}

/* The areas follow the workspace back to back, up to the end of the slot. */
static void check_entries(const struct weft_team *team) {
    char *slot = (char *)team->words, *end = slot + weft_team_slot_bytes();
    char *workspace = weft_team_workspace_of(team, team->my_pe);
    char *first = (char *)team->receive - WEFT_PACKETS * team->receive_bytes;
    char *words_end = (char *)&team->receive->words[team->npes * (1 + WEFT_PACKETS)];
    EXPECT(workspace + weft_team_workspace_capacity() == first, "%td bytes between",
           first - workspace - (ptrdiff_t)weft_team_workspace_capacity());
    EXPECT(words_end == (char *)weft_team_inbox(team, 0), "%td bytes in front of the inbox",
           (char *)weft_team_inbox(team, 0) - words_end);
    for (int member = 0; member < team->npes; member++) {
        struct weft_inbox *entry = weft_team_inbox(team, member);
        EXPECT((uintptr_t)entry % 64 == 0, "member %d: %p", member, (void *)entry);
        EXPECT((char *)(entry + 1) <= end, "member %d: beyond the slot", member);
        EXPECT(weft_team_member_is_far(team, member) == (member != PE), "member %d", member);
        EXPECT(atomic_load(&entry->post[1].posted.value) == 0, "member %d has posted", member);
    }
}

int main(void) {
    tap_start(0);
    tap_case("an inbox of 96 members");
    EXPECT(open_teams(96, (size_t)1 << 20) == 0, "no teams");
    const struct weft_team *world = weft_team_find(SHMEM_TEAM_WORLD);
    EXPECT(world->far, "WORLD is near");
    check_entries(world);
    const struct weft_team *shared = weft_team_find(SHMEM_TEAM_SHARED);
    EXPECT(!shared->far && !shared->inbox && shared->npes == 1, "%d share memory", shared->npes);
    close_teams();
    tap_case("the smallest slots have room for the inboxes of 35 PEs");
    EXPECT(open_teams(35, SLOT_BYTES_MIN) == 0, "no teams of 35 PEs");
    check_entries(weft_team_find(SHMEM_TEAM_WORLD));
    close_teams();
    tap_case("and not for those of 48");
    EXPECT(open_teams(48, SLOT_BYTES_MIN) < 0, "teams of 48 PEs");
    close_teams();
    return tap_finish();
}
