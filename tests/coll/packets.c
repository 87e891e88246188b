/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: senders that run ahead of slow readers: bursts of small broadcasts from changing
 * roots, with occasional exchanges and barriers, on WORLD and on a team in reverse order, also
 * where epochs wrap around. No packet may be overwritten before all members have read it.
 * PEs: 1 2 3 4 7 */
#include <shmem.h>
#include <string.h>
#include <unistd.h>
#include "core/team.h"
#include "coll/choice.h"
#include "coll/collective.h"
#include "coll/packet.h"
#include "api/model.h"
#include "tap.h"

enum { CALLS = 4000, NELEMS = 64 };

static uint64_t dest[NELEMS * 64], source[NELEMS];
static struct random common, own;

static uint64_t value(int call, int member, size_t i) {
    return (uint64_t)call * 1000003 + (uint64_t)member * 1009 + i;
}

static void broadcast(const struct weft_group *group, int call, int root, size_t nelems) {
    for (size_t i = 0; i < nelems; i++)
        source[i] = value(call, group->me, i);
    weft_group_broadcast(group, dest, source, nelems * sizeof *dest, root);
    for (size_t i = 0; i < nelems; i++)
        EXPECT(dest[i] == value(call, root, i), "call %d, element %zu is %lu", call, i,
               (unsigned long)dest[i]);
}

static void exchange(const struct weft_group *group, int call, size_t nelems) {
    for (size_t i = 0; i < nelems; i++)
        source[i] = value(call, group->me, i);
    weft_group_fcollect(group, dest, source, nelems * sizeof *dest);
    for (int member = 0; member < group->npes; member++)
        for (size_t i = 0; i < nelems; i++)
            EXPECT(dest[(size_t)member * nelems + i] == value(call, member, i),
                   "call %d, element %zu of %d", call, i, member);
}

/* A burst has up to 40 broadcasts of one root; slow members stay slow during a burst. */
static void check(struct weft_team *team, uint64_t seed) {
    struct weft_group group = weft_group_of(team);
    common = random_of(seed, -2);
    own = random_of(seed, shmem_my_pe());
    size_t burst = 0;
    int root = 0, slow = 0;
    for (int call = 0; call < CALLS; call++) {
        if (burst-- == 0) {
            burst = random_below(&common, 40);
            root = (int)random_below(&common, (size_t)team->npes);
            slow = random_below(&own, 8) == 0;
        }
        if (slow && random_below(&own, 10) == 0)
            usleep(50);
        size_t kind = random_below(&common, 60), nelems = 1 + random_below(&common, NELEMS);
        if (kind == 0)
            exchange(&group, call, nelems);
        else if (kind == 1)
            group.sync(&group);
        else
            broadcast(&group, call, root, nelems);
    }
}

/* Sets the words as if the team had already made that many calls. */
static void set_epochs(struct weft_team *team, uint32_t epoch) {
    weft_sync_barrier(team);
    team->packet_epoch = team->packets_read = epoch;
    atomic_store(&team->words->packets_read.value, epoch);
    for (int i = 0; i < WEFT_PACKETS; i++)
        atomic_store(&team->words->packets[i].posted.value, epoch);
    for (int i = team->npes; team->far && i < (1 + WEFT_PACKETS) * team->npes; i++)
        atomic_store(&team->receive->words[i].value, epoch);
    weft_sync_barrier(team);
}

/* Sets the words as if only member 0 had sent for that long, or no member: the other words are
 * stale. */
static void stay_silent(struct weft_team *team) {
    struct weft_group group = weft_group_of(team);
    int last = team->npes - 1;
    set_epochs(team, 0);
    for (uint32_t turn = 1; turn <= 7; turn++) {
        team->packet_epoch = team->packets_read = turn * WEFT_PACKETS_RENEWED - 3;
        weft_sync_barrier(team);
        for (int call = 0; call < 5; call++)
            broadcast(&group, call, 0, NELEMS);
    }
    for (int call = 0; call < 200; call++) {
        if (call < 10 && group.me == last)
            usleep(500);
        broadcast(&group, call, last, NELEMS);
    }
}

static void describe(void) {
    tap_case("the choice of a way describes itself");
    for (int family = 0; family < WEFT_FAMILIES; family++)
        for (int npes = 1; npes <= 256; npes *= 4) {
            char text[200];
            size_t most = weft_choice_packet_max((enum weft_family)family, npes);
            int length = weft_choice_describe(text, sizeof text, (enum weft_family)family, npes);
            EXPECT(length > 0 && length < (int)sizeof text, "%d characters", length);
            EXPECT(most <= WEFT_PACKET_BYTES, "%s: %zu bytes in a packet", text, most);
            EXPECT(weft_choice_packet((enum weft_family)family, most, npes), "%s", text);
            EXPECT(!weft_choice_packet((enum weft_family)family, most + 1, npes), "%s", text);
        }
}

int main(void) {
    shmem_team_t reversed;
    shmem_init();
    tap_start(shmem_my_pe());
    struct weft_team *world = weft_team_find(SHMEM_TEAM_WORLD);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, world->npes - 1, -1, world->npes, NULL, 0,
                             &reversed);
    describe();
    tap_case("bursts on WORLD");
    check(world, 1);
    tap_case("bursts on a team in reverse order");
    check(weft_team_find(reversed), 2);
    tap_case("epochs wrap around");
    for (uint32_t before = 1; before < 40; before += 6) {
        set_epochs(world, UINT32_MAX - before);
        check(world, 3 + before);
    }
    tap_case("a member that has not sent or read for long does not seem to be ahead");
    for (int round = 0; round < 5; round++)
        stay_silent(world);
    shmem_team_destroy(reversed);
    shmem_finalize();
    return tap_finish();
}
