/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the messages that members have sent and no quiet waits for have arrived when a team
 * is destroyed: none of them changes the words of the team that has the slot next, even if the
 * sender is not a member of it.
 * PEs: 4 Far: 2+2 pe=3,reorder=64,delay_us=1500 */
#include <shmemx.h>
#include <unistd.h>
#include "base/env.h"
#include "far/draw.h"
#include "core/team.h"

enum { ROUNDS = 10, MESSAGES = 100, LATE_US = 3000, SENDER = 1, RECEIVER = 3 };

static shmem_team_t others[WEFT_TEAMS_MAX];
static long slot = -1;

/* Makes a team in the first free slot. */
static shmem_team_t split(void) {
    shmem_team_t team = SHMEM_TEAM_INVALID;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0, &team);
    EXPECT(team != SHMEM_TEAM_INVALID, "there is no team left");
    return team;
}

static int slot_of(shmem_team_t team) {
    return weft_team_find(team)->slot;
}

/* Makes a team of all PEs but the sender, without its knowledge, in a slot that depends on the
 * members. */
static shmem_team_t create(void) {
    static const int pes[] = {0, 2, RECEIVER};
    enum { TAG = 3 };
    shmem_team_t team = SHMEM_TEAM_INVALID;
    int error = shmemx_team_create(pes, 3, TAG, &team);
    EXPECT(error == 0, "there is no team: %d", error);
    return team;
}

/* Takes all slots before that one, so that it is the next. */
static void take_others(int me) {
    if (me != SENDER) {
        shmem_team_t team = create();
        slot = slot_of(team);
        shmem_team_destroy(team);
    }
    shmem_barrier_all();
    if (me == SENDER)
        shmem_long_get(&slot, &slot, 1, 0);
    int n = 0;
    shmem_team_t team = split();
    while (slot_of(team) != slot) {
        others[n++] = team;
        team = split();
    }
    shmem_team_destroy(team);
}

/* The sender's words at the receiver must not have changed. */
static void check_words(const struct weft_team *team) {
    const struct weft_inbox *inbox = weft_team_inbox(team, SENDER);
    for (int waited_us = 0; waited_us < LATE_US; waited_us += 100) {
        usleep(100);
        EXPECT(inbox->progress.value == 0, "progress is %u", inbox->progress.value);
    }
}

static void use_again(int me) {
    struct weft_team *all = weft_team_find(split());
    shmem_team_t handle =
        (shmem_team_t)((uintptr_t)all->generation << 9 | (uintptr_t)(all->slot + 1));
    EXPECT(all->slot == slot, "slot %d, not %ld", all->slot, slot);
    for (uint32_t i = 1; me == SENDER && i <= MESSAGES; i++)
        weft_progress_set(all, i);
    shmem_team_destroy(handle);
    if (me != SENDER) {
        shmem_team_t three = create();
        EXPECT(slot_of(three) == slot, "slot %d, not %ld", slot_of(three), slot);
        if (me == RECEIVER)
            check_words(weft_team_find(three));
        shmem_team_destroy(three);
    }
    shmem_barrier_all();
}

/* Messages to the receiver are late, and the receiver itself has to deliver them. */
int main(void) {
    weft_env.proxies = "pe";
    shmem_init();
    int me = shmem_my_pe();
    tap_start(me);
    take_others(me);
    tap_case("no message of a team that was destroyed comes into the next one's words");
    for (int i = 0; i < ROUNDS; i++)
        use_again(me);
    int result = tap_finish();
    shmem_finalize();
    return result;
}
