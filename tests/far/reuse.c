/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the words of a destroyed team can be used for another team at once: no thread reads
 * them any more, which the thread sanitizer checks. PEs: 2
 * Far: each */
#include <unistd.h>
#include "draw.h"

enum { ROUNDS = 3, SLOTS = 256, LATE_US = 30 * 1000 };

static int me;

/* The low bits of a handle are the slot of its team. */
static int slot_of(shmem_team_t team) {
    return (int)((uintptr_t)team % 512);
}

static shmem_team_t split(shmem_team_t parent) {
    shmem_team_t team = SHMEM_TEAM_INVALID;
    shmem_team_split_strided(parent, 0, 1, shmem_team_n_pes(parent), NULL, 0, &team);
    EXPECT(team != SHMEM_TEAM_INVALID, "there is no team left");
    return team;
}

/* Makes a team of all PEs in that slot. */
static shmem_team_t split_at(int slot) {
    static shmem_team_t others[SLOTS];
    int n = 0;
    shmem_team_t team = split(SHMEM_TEAM_WORLD);
    while (slot_of(team) != slot && n < SLOTS) {
        others[n++] = team;
        team = split(SHMEM_TEAM_WORLD);
    }
    while (n > 0)
        shmem_team_destroy(others[--n]);
    return team;
}

/* PE 0 sleeps until the other PE arrives; that PE's message is applied by the progress thread. Then
 * PE 0 makes a team without a message. */
static void use_again(void) {
    shmem_team_t alone = split(SHMEM_TEAM_SHARED);
    int slot = slot_of(alone);
    shmem_team_destroy(alone);
    shmem_team_t all = split_at(slot);
    shmem_sync_all();
    if (me != 0)
        usleep(LATE_US);
    shmem_team_destroy(all);
    alone = split(SHMEM_TEAM_SHARED);
    EXPECT(slot_of(alone) == slot, "the slot is another one");
    shmem_team_sync(alone);
    shmem_team_destroy(alone);
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    tap_start(me);
    tap_case("a team's words are used again");
    for (int i = 0; i < ROUNDS; i++)
        use_again();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
