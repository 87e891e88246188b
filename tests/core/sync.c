/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: barriers, posts, agreement and progress on WORLD and on subteams, thousands of
 * rounds with PEs delayed at random, including epochs near their wrap-around. PEs: 1 2 3 4 7 */
#include <shmem.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include "core/init.h"
#include "core/sync.h"
#include "core/team.h"
#include "tap.h"

enum { ROUNDS = 3000 };

static int me, npes;
static unsigned random_state;
static long arrivals[64]; /* symmetric: the rounds that each member has entered, on every PE */

/* A member that is ahead may already have announced its next round. */
static long round_of(int member) {
    return __atomic_load_n(&arrivals[member], __ATOMIC_RELAXED);
}

static unsigned random_below(unsigned n) {
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % n;
}

static void hold_up(void) {
    if (random_below(50) == 0)
        usleep(random_below(300));
}

/* Before a barrier every member announces its round to all others; after it all must have. */
static void check_barrier(struct weft_team *team) {
    for (long round = 1; round <= ROUNDS / 3; round++) {
        hold_up();
        for (int member = 0; member < team->npes; member++)
            shmem_long_p(&arrivals[team->my_pe], round, weft_team_world_pe(team, member));
        shmem_quiet();
        weft_sync_barrier(team);
        for (int member = 0; member < team->npes; member++)
            EXPECT(round_of(member) >= round, "round %ld: member %d is at %ld", round, member,
                   round_of(member));
    }
    weft_sync_barrier(team);
    memset(arrivals, 0, sizeof arrivals);
    weft_sync_barrier(team);
}

static void check_posts(struct weft_team *team) {
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        uint64_t payload[WEFT_POST_BYTES / 8];
        for (size_t i = 0; i < WEFT_POST_BYTES / 8; i++)
            payload[i] = round * 1000 + (uint64_t)team->my_pe + i;
        weft_sync_post(team, payload, sizeof payload);
        hold_up();
        for (int member = 0; member < team->npes; member++) {
            uint64_t theirs[WEFT_POST_BYTES / 8];
            memcpy(theirs, weft_sync_peek(team, member), sizeof theirs);
            for (size_t i = 0; i < WEFT_POST_BYTES / 8; i++)
                EXPECT(theirs[i] == round * 1000 + (uint64_t)member + i,
                       "round %lu: member %d shows %lu", (unsigned long)round, member,
                       (unsigned long)theirs[i]);
        }
    }
}

static void check_agreement(struct weft_team *team) {
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        int lowest = (int)(round % (uint64_t)team->npes);
        uint64_t mine = team->my_pe == lowest ? round : round + 1 + random_below(1000);
        hold_up();
        EXPECT(weft_sync_min(team, mine) == round, "round %lu", (unsigned long)round);
    }
}

static void check_progress(struct weft_team *team) {
    enum { STEPS = 5 };
    for (int round = 0; round < ROUNDS / 5; round++) {
        uint32_t begin = weft_progress_begin(team, STEPS);
        for (uint32_t step = 1; step <= STEPS; step++) {
            hold_up();
            for (int member = 0; member < team->npes; member++)
                shmem_long_p(&arrivals[team->my_pe], round * STEPS + (long)step,
                             weft_team_world_pe(team, member));
            weft_progress_set(team, begin + step);
            int member = (team->my_pe + (int)step) % team->npes;
            weft_progress_wait(team, member, begin + step);
            EXPECT(round_of(member) >= round * STEPS + (long)step, "member %d at %ld, not %ld",
                   member, round_of(member), round * STEPS + (long)step);
        }
        weft_sync_barrier(team);
    }
    weft_sync_barrier(team);
    memset(arrivals, 0, sizeof arrivals);
    weft_sync_barrier(team);
}

static void check_all(struct weft_team *team) {
    check_barrier(team);
    check_posts(team);
    check_agreement(team);
    check_progress(team);
}

/* Every PE sets its own words and epochs to just before 2^32. */
static void wrap_epochs(struct weft_team *team) {
    uint32_t late = (uint32_t)-ROUNDS;
    shmem_barrier_all(); /* a barrier of WORLD: no member reads the team's words any more */
    for (int round = 0; round < WEFT_SYNC_ROUNDS; round++)
        atomic_store(&team->words->rounds[0][round].value, late);
    int others = team->far ? team->levels->near - 1 : team->npes; /* that arrive at a word */
    atomic_store(&team->words->arrived.value, late * (uint32_t)others);
    atomic_store(&team->words->released.value, late);
    atomic_store(&team->words->post[0].posted.value, late);
    atomic_store(&team->words->post[1].posted.value, late);
    atomic_store(&team->words->progress.value, late);
    for (int member = 0; team->inbox && member < team->npes; member++) {
        atomic_store(&team->inbox[member].post[0].posted.value, late);
        atomic_store(&team->inbox[member].post[1].posted.value, late);
        atomic_store(&team->inbox[member].progress.value, late);
    }
    team->barrier_epoch = team->post_epoch = team->progress = late;
    shmem_barrier_all();
}

static struct weft_team *split(int start, int stride, int size) {
    shmem_team_t team;
    int result = shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, size, NULL, 0, &team);
    EXPECT(result == 0, "split %d %d %d gave %d", start, stride, size, result);
    return weft_team_find(team);
}

/* Every team starts counting from zero, whatever the last team in its slot left there, also in
 * words that no member waited for at the end. */
static void use_once(struct weft_team *team, int i) {
    uint32_t begin = weft_progress_begin(team, 2);
    uint64_t lowest = 1000 + (uint64_t)i;
    EXPECT(weft_sync_min(team, lowest + (uint64_t)team->my_pe) == lowest, "team %d", i);
    for (int member = 0; member < team->npes; member++)
        EXPECT(member == team->my_pe || !weft_progress_reached(team, member, begin + 2),
               "team %d: member %d has made progress", i, member);
    weft_sync_barrier(team);
    weft_progress_set(team, begin + 1);
    weft_progress_set(team, begin + 2);
    weft_team_destroy(team);
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    random_state = 99u + (unsigned)me;
    tap_start(me);

    tap_case("WORLD");
    check_all(weft_team_find(SHMEM_TEAM_WORLD));
    tap_case("the even PEs, while the odd ones do the same");
    struct weft_team *even = split(0, 2, (npes + 1) / 2);
    struct weft_team *odd = npes > 1 ? split(1, 2, npes / 2) : NULL;
    check_all(even ? even : odd);
    shmem_barrier_all();
    tap_case("all PEs in reverse order, with epochs that wrap around");
    struct weft_team *reverse = split(npes - 1, -1, npes);
    EXPECT(reverse->my_pe == npes - 1 - me, "PE %d of the reversed team", reverse->my_pe);
    wrap_epochs(reverse);
    check_all(reverse);
    tap_case("five hundred teams, one after the other, in the same slots");
    for (int i = 0; i < 500; i++) {
        struct weft_team *team = split(i % npes, 1, npes - i % npes);
        if (team)
            use_once(team, i);
    }
    int result = tap_finish();
    shmem_finalize();
    return result;
}
