/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/active.h"
#include <shmem.h>
#include "coll/active_check.h"

enum { ROUNDS_MAX = 32, SIZE_WORD = ROUNDS_MAX };
_Static_assert(SIZE_WORD < SHMEM_SYNC_SIZE && SHMEM_SYNC_VALUE == 0, "pSync has the words");

static _Atomic long *psync_word_of(const struct weft_group *group, int index, int member) {
    return weft_group_near(group, &group->psync[index], sizeof(long), member);
}

/* Dissemination (core/sync.c) over counting words. */
static void active_sync(const struct weft_group *group) {
    for (int round = 0, distance = 1; distance < group->npes; round++, distance *= 2) {
        _Atomic long *mine = psync_word_of(group, round, group->me);
        int from = weft_group_member(group, group->npes - distance);
        struct weft_waiter waiter = {.call = group->call,
                                     .pe = weft_group_pe(group, from),
                                     .roster = &group->roster,
                                     .npes = group->npes};
        atomic_fetch_add(psync_word_of(group, round, weft_group_member(group, distance)), 1);
        while (atomic_load(mine) <= 0)
            weft_waiter_turn(&waiter);
        weft_waiter_end(&waiter);
        atomic_fetch_sub(mine, 1);
    }
}

int weft_active_unready(const struct weft_group *group) {
    int rounds = 0;
    while (1 << rounds < group->npes)
        rounds++;
    for (int i = 0; i < SHMEM_SYNC_SIZE; i++) {
        long value = atomic_load((_Atomic long *)&group->psync[i]);
        if (value != SHMEM_SYNC_VALUE && !(i < rounds && value == SHMEM_SYNC_VALUE + 1))
            return i;
    }
    return -1;
}

/* Nobody comes back to its word before all have read it, so that it can be cleared. */
static void active_share(const struct weft_group *group, size_t mine, size_t *sizes) {
    atomic_store(psync_word_of(group, SIZE_WORD, group->me), (long)mine);
    active_sync(group);
    for (int member = 0; member < group->npes; member++)
        sizes[member] = (size_t)atomic_load(psync_word_of(group, SIZE_WORD, member));
    active_sync(group);
    atomic_store(psync_word_of(group, SIZE_WORD, group->me), SHMEM_SYNC_VALUE);
}

struct weft_group weft_active_group(int start, int log_stride, int size, long *psync, int pe,
                                    const char *call) {
    int stride = 1 << log_stride, distance = pe - start;
    bool member = distance >= 0 && distance % stride == 0 && distance / stride < size;
    return (struct weft_group){.call = call,
                               .me = member ? distance / stride : -1,
                               .npes = size,
                               .roster = {.start = start, .stride = stride},
                               .psync = psync,
                               .sync = active_sync,
                               .share = active_share,
                               .check = weft_active_check};
}
