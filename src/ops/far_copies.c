/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/far_copies.h"
#include <stdlib.h>

struct weft_far_copy {
    struct weft_far_prefetch bring;
    struct weft_word come; /* epochs: the number of copies that have arrived */
    uint32_t wanted;
};

static struct weft_far_copy *copy_of(const struct weft_far_copies *far, int set, int member) {
    return &far->copies[(size_t)set * (size_t)far->team->npes + (size_t)member];
}

/* Returns a copy's memory; each set has one for each far member. */
static char *room_of(const struct weft_far_copies *far, int set, size_t nfar, size_t which) {
    return far->rooms + ((size_t)set * nfar + which) * far->bytes;
}

static size_t count_far(const struct weft_team *team) {
    return (size_t)(team->npes - team->levels->near);
}

void weft_far_copies_open(struct weft_far_copies *far, const struct weft_team *team, size_t bytes) {
    enum { LINE_BYTES = 64 };
    *far = (struct weft_far_copies){.team = team};
    if (!team->far)
        return;
    far->bytes = (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    size_t all = 2 * (size_t)team->npes * sizeof *far->copies, rooms = 2 * count_far(team);
    void *copies = NULL;
    far->rooms = malloc(rooms * far->bytes + 1);
    if (!far->rooms || posix_memalign(&copies, _Alignof(struct weft_far_copy), all) != 0)
        weft_job_panic("no memory for copies of %zu bytes of %zu members' parts", bytes, rooms / 2);
    far->copies = memset(copies, 0, all);
}

void weft_far_copies_close(struct weft_far_copies *far) {
    free(far->copies);
    free(far->rooms);
    *far = (struct weft_far_copies){.team = far->team};
}

static void bring_copy(struct weft_far_copies *far, struct weft_far_copy *copy,
                       struct weft_remote_matrix *shown, char *room) {
    size_t element = weft_element_bytes(shown->at.dtype);
    copy->bring = (struct weft_far_prefetch){.pe = shown->pe,
                                             .step = (int64_t)(shown->at.ld * element),
                                             .row_bytes = shown->at.cols * element,
                                             .rows = shown->at.rows,
                                             .dest = room,
                                             .word = &copy->come,
                                             .value = ++copy->wanted};
    weft_far_prefetch_begin(&copy->bring, weft_place_own(shown->place, far->team));
    shown->at.data = room;
    shown->at.ld = shown->at.cols;
}

void weft_far_copies_bring(struct weft_far_copies *far, int set, struct weft_remote_matrix *shown) {
    size_t which = 0, nfar = far->copies ? count_far(far->team) : 0;
    for (int distance = 0; distance < far->team->npes && nfar > 0; distance++) {
        int member = weft_team_member_after(far->team, distance);
        if (weft_team_member_is_far(far->team, member))
            bring_copy(far, copy_of(far, set, member), &shown[member],
                       room_of(far, set, nfar, which++));
    }
}

static bool copy_is_here(struct weft_far_copy *copy) {
    if (weft_word_reached(&copy->come, copy->wanted))
        return true;
    weft_far_prefetch_look(&copy->bring);
    return false;
}

bool weft_far_copies_here(struct weft_far_copies *far, int set) {
    bool here = true;
    for (int member = 0; member < far->team->npes && far->copies; member++)
        here = copy_is_here(copy_of(far, set, member)) && here;
    return here;
}

void weft_far_copies_await(struct weft_far_copies *far, int set) {
    for (int member = 0; member < far->team->npes && far->copies; member++) {
        struct weft_waiter waiter = {.pe = weft_team_world_pe(far->team, member)};
        while (!copy_is_here(copy_of(far, set, member)))
            weft_waiter_turn(&waiter);
        weft_waiter_end(&waiter);
    }
}
