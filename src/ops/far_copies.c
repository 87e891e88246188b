/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/far_copies.h"
#include <stdlib.h>
#include "base/size.h"

struct weft_far_copy {
    struct weft_far_prefetch prefetch;
    struct weft_word arrived; /* epochs: the number of copies that have arrived */
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
    far->bytes = weft_round_up(bytes, LINE_BYTES);
    size_t all = 2 * (size_t)team->npes * sizeof *far->copies, rooms = 2 * count_far(team);
    void *copies = NULL;
    far->rooms = malloc(rooms * far->bytes + 1);
    if (!far->rooms || posix_memalign(&copies, _Alignof(struct weft_far_copy), all) != 0)
        weft_job_panic("no memory for copies of %zu bytes from each of %zu far members", bytes,
                       rooms / 2);
    far->copies = memset(copies, 0, all);
}

void weft_far_copies_close(struct weft_far_copies *far) {
    free(far->copies);
    free(far->rooms);
    *far = (struct weft_far_copies){.team = far->team};
}

static void fetch_copy(struct weft_far_copies *far, struct weft_far_copy *copy,
                       struct weft_remote_matrix *matrix, char *room) {
    size_t element = weft_element_bytes(matrix->at.dtype);
    copy->prefetch = (struct weft_far_prefetch){.pe = matrix->pe,
                                                .step = (int64_t)(matrix->at.ld * element),
                                                .row_bytes = matrix->at.cols * element,
                                                .rows = matrix->at.rows,
                                                .dest = room,
                                                .word = &copy->arrived,
                                                .value = ++copy->wanted};
    weft_far_prefetch_begin(&copy->prefetch, weft_place_own(matrix->place, far->team));
    matrix->at.data = room;
    matrix->at.ld = matrix->at.cols;
}

void weft_far_copies_fetch(struct weft_far_copies *far, int set,
                           struct weft_remote_matrix *matrices) {
    size_t which = 0, nfar = far->copies ? count_far(far->team) : 0;
    for (int distance = 0; distance < far->team->npes && nfar > 0; distance++) {
        int member = weft_team_member_after(far->team, distance);
        if (weft_team_member_is_far(far->team, member))
            fetch_copy(far, copy_of(far, set, member), &matrices[member],
                       room_of(far, set, nfar, which++));
    }
}

static bool copy_has_arrived(struct weft_far_copy *copy) {
    if (weft_word_reached(&copy->arrived, copy->wanted))
        return true;
    weft_far_prefetch_look(&copy->prefetch);
    return false;
}

bool weft_far_copies_arrived(struct weft_far_copies *far, int set) {
    bool here = true;
    for (int member = 0; member < far->team->npes && far->copies; member++)
        here = copy_has_arrived(copy_of(far, set, member)) && here;
    return here;
}

void weft_far_copies_await(struct weft_far_copies *far, int set) {
    for (int member = 0; member < far->team->npes && far->copies; member++) {
        struct weft_waiter waiter = {.pe = weft_team_world_pe(far->team, member)};
        while (!copy_has_arrived(copy_of(far, set, member)))
            weft_waiter_turn(&waiter);
        weft_waiter_end(&waiter);
    }
}
