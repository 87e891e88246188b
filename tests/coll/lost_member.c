/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a PE that does not know its team learns it from the team that waits for it, also in
 * two threads at once, and learns after a second that no team waits. An answer without a question
 * does not reach a later question. PEs: 1 2 3 4 */
#include "coll/lost_member.h"
#include <pthread.h>
#include <shmem.h>
#include "base/clock.h"
#include "tap.h"

static int me, npes;
static struct weft_team *world, *pair;

static void nobody_misses_it(void) {
    tap_case("a PE for which no team waits learns it within two seconds, a single PE at once");
    shmem_barrier_all();
    uint64_t begin_ns = weft_clock_ns();
    EXPECT(weft_lost_member_find_team() == NULL, "a team misses PE %d", me);
    double seconds = (double)(weft_clock_ns() - begin_ns) / 1e9;
    EXPECT(npes == 1 ? seconds < 0.5 : seconds > 0.9 && seconds < 5, "after %.2f s", seconds);
    shmem_barrier_all();
}

static void *lose(void *found) {
    *(struct weft_team **)found = weft_lost_member_find_team();
    return NULL;
}

/* PE 1 is lost in `nthreads` threads; PE 0 answers for `team` until all of them have the answer. */
static void lose_one(const struct weft_team *team, int nthreads) {
    static long ended;
    struct weft_team *found[2] = {NULL, NULL};
    ended = 0;
    shmem_barrier_all();
    if (me == 1) {
        pthread_t threads[2];
        for (int i = 0; i < nthreads; i++)
            pthread_create(&threads[i], NULL, lose, &found[i]);
        for (int i = 0; i < nthreads; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < nthreads; i++)
            EXPECT(found[i] == team, "thread %d found %p, not %p", i, (void *)found[i],
                   (void *)team);
        shmem_long_atomic_set(&ended, 1, 0);
    }
    while (me == 0 && shmem_long_atomic_fetch(&ended, 0) == 0)
        weft_lost_member_answer(team, 1);
    shmem_barrier_all();
}

static void old_answers(void) {
    tap_case("an answer for a PE that is not lost changes nothing");
    shmem_barrier_all();
    if (me == 0)
        weft_lost_member_answer(world, 1);
    shmem_barrier_all();
    if (me == 1)
        EXPECT(weft_lost_member_find_team() == NULL, "an answer of before was heard");
    shmem_barrier_all();
}

int main(void) {
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    world = weft_team_find(SHMEM_TEAM_WORLD);
    nobody_misses_it();
    if (npes > 1) {
        shmem_team_t team;
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &team);
        pair = me < 2 ? weft_team_find(team) : NULL;
        tap_case("a lost PE finds the team that waits for it: all PEs, or two of them");
        lose_one(world, 1);
        lose_one(pair, 1);
        tap_case("threads that are lost at once take turns");
        lose_one(pair, 2);
        old_answers();
    }
    shmem_finalize();
    return tap_finish();
}
