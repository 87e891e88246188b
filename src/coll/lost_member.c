/* SPDX-License-Identifier: BSD-3-Clause */
/* One word per PE, among its words of WORLD, because every PE can access those. Its value says that
 * the PE is not lost, or that it asks for its team, or is the answer: the slot of the team, which
 * is the same on all members. */
#include "coll/lost_member.h"
#include "base/clock.h"
#include "far/far.h"

enum { NOT_LOST, LOST, ANSWER }; /* ANSWER + slot */

/* Long enough for peers that are late. A call with a wrong handle on every PE takes this long. */
static const uint64_t patience_ns = 1000000000;

static _Atomic uint32_t *lost_word_of(int world_pe) {
    const struct weft_team *world = weft_team_find(SHMEM_TEAM_WORLD);
    return world && world->npes > 1 ? &weft_team_words_of(world, world_pe)->lost_member : NULL;
}

/* Asks which team waits for this PE. Threads that ask at once take turns. Returns false at the
 * deadline. */
static bool ask_teams(_Atomic uint32_t *word, struct weft_waiter *waiter, uint64_t deadline) {
    uint32_t expected = NOT_LOST;
    while (!atomic_compare_exchange_strong(word, &expected, LOST)) {
        if (weft_clock_ns() >= deadline)
            return false;
        weft_waiter_turn(waiter);
        expected = NOT_LOST;
    }
    return true;
}

struct weft_team *weft_lost_member_find_team(void) {
    struct weft_waiter waiter = {.pe = WEFT_PE_ANY};
    uint64_t deadline = weft_clock_ns() + patience_ns;
    _Atomic uint32_t *word = lost_word_of(weft_job.pe);
    bool asked = word && ask_teams(word, &waiter, deadline);
    while (asked && atomic_load(word) == LOST && weft_clock_ns() < deadline)
        weft_waiter_turn(&waiter);
    weft_waiter_end(&waiter);
    if (!asked)
        return NULL;
    uint32_t answer = atomic_exchange(word, NOT_LOST);
    return answer >= ANSWER ? weft_team_in_slot((int)(answer - ANSWER)) : NULL;
}

/* A far PE's processor has to apply the answer, so it is sent only every 20 ms: that PE may just be
 * late. */
static void answer_far(uint32_t answer, int pe) {
    static const uint64_t pause_ns = 20000000;
    static _Thread_local uint64_t next_ns;
    uint64_t now_ns = weft_clock_ns();
    if (now_ns < next_ns)
        return;
    next_ns = now_ns + pause_ns;
    struct weft_amo swap = {.op = WEFT_AMO_COMPARE_SWAP,
                            .bytes = sizeof answer,
                            .dest = lost_word_of(weft_job.pe),
                            .value = answer,
                            .cond = LOST};
    weft_far_amo(&swap, false, pe);
}

void weft_lost_member_answer(const struct weft_team *team, int member) {
    uint32_t expected = LOST, answer = ANSWER + (uint32_t)team->slot;
    int pe = weft_team_world_pe(team, member);
    if (team->far && weft_is_far(pe)) {
        answer_far(answer, pe);
        return;
    }
    _Atomic uint32_t *word = lost_word_of(pe);
    if (atomic_load_explicit(word, memory_order_relaxed) == LOST)
        atomic_compare_exchange_strong(word, &expected, answer);
}
