/* SPDX-License-Identifier: BSD-3-Clause */
/* If every PE has a processor, barriers use dissemination: in round r every member signals the one
 * 2^r after it and waits for the one 2^r before it. After ceil(log2 n) rounds each member has
 * heard, directly or not, from all others, with one store and one wait per round (Hensgen, Finkel
 * and Manber, 1988). Words are epochs, so there is no reset. If some members are far, only the
 * leaders disseminate, by messages: near members report to their leader before and are released
 * afterwards. */
#include "core/sync.h"
#include <string.h>
#include "far/far.h"
#include "far/progress.h"

static inline int member_before(const struct weft_team *team, int distance) {
    int member = team->my_pe - distance;
    return member < 0 ? member + team->npes : member;
}

/* If PEs share processors, every wait may cost a switch to another PE, so each member waits only
 * once: all increment one word, and the last one releases the others. With 4 PEs on 2 processors
 * this took two thirds of the time of a dissemination. */
static void crowded_barrier(struct weft_team *team, uint32_t epoch) {
    struct weft_team_words *root = weft_team_words_of(team, 0);
    uint32_t arrived = atomic_fetch_add(&root->arrived.value, 1) + 1;
    if (arrived == epoch * (uint32_t)team->npes) {
        weft_word_set(&root->released, epoch);
        return;
    }
    /* If the wait fails because some member departed, the member after the departed one reports
     * it. */
    int before = weft_team_world_pe(team, member_before(team, 1));
    weft_word_wait(&root->released, epoch, before);
}

enum { BARRIER, CLOSING };

/* Waits only on this member's own words. */
static inline __attribute__((always_inline)) void dissemination_barrier(struct weft_team *team,
                                                                        int kind, uint32_t epoch) {
    for (int round = 0, distance = 1; distance < team->npes; round++, distance *= 2) {
        int to = weft_team_member_after(team, distance), from = member_before(team, distance);
        struct weft_word *mine = &team->words->rounds[kind][round];
        weft_word_set(&weft_team_words_of(team, to)->rounds[kind][round], epoch);
        weft_word_wait(mine, epoch, weft_team_world_pe(team, from));
    }
}

/* Dissemination among the leaders, who are all far from each other. */
static void leaders_meet(struct weft_team *team, int kind, uint32_t epoch) {
    const struct weft_levels *levels = team->levels;
    int n = levels->nleaders;
    for (int round = 0, distance = 1; distance < n; round++, distance *= 2) {
        int to = levels->leaders[(levels->leader + distance) % n];
        int from = levels->leaders[(levels->leader + n - distance) % n];
        struct weft_word *mine = &team->words->rounds[kind][round];
        weft_far_put_word(NULL, NULL, 0, mine, epoch, weft_team_world_pe(team, to));
        weft_word_wait(mine, epoch, weft_team_world_pe(team, from));
    }
}

/* A member that waits for near ones names the one before it, as in the crowded barrier. */
static void far_barrier(struct weft_team *team, uint32_t epoch, bool all) {
    const struct weft_levels *levels = team->levels;
    int leader = levels->leaders[levels->leader];
    struct weft_team_words *words = weft_team_words_of(team, leader);
    if (leader != team->my_pe) {
        weft_word_count(&words->arrived);
        weft_word_wait(&words->released, epoch, levels->before);
        return;
    }
    if (levels->near > 1)
        weft_word_wait(&words->arrived, epoch * (uint32_t)(levels->near - 1), levels->before);
    if (all)
        leaders_meet(team, BARRIER, epoch);
    if (levels->near > 1)
        weft_word_set(&words->released, epoch);
}

void weft_sync_barrier(struct weft_team *team) {
    uint32_t epoch = ++team->barrier_epoch;
    if (__builtin_expect(team->far, 0))
        far_barrier(team, epoch, true);
    else if (weft_job.oversubscribed)
        crowded_barrier(team, epoch);
    else
        dissemination_barrier(team, BARRIER, epoch);
}

void weft_sync_barrier_near(struct weft_team *team) {
    far_barrier(team, ++team->barrier_epoch, false);
}

/* The leader releases the others through their words, and does not need its own words after
 * that. */
static void far_close(struct weft_team *team, uint32_t epoch) {
    const struct weft_levels *levels = team->levels;
    int first = levels->begins[levels->leader];
    struct weft_receive *receive = weft_team_receive(team, levels->members[first]);
    if (receive != team->receive) {
        weft_word_count(&receive->closing);
        weft_word_wait(&team->receive->closed, epoch, levels->before);
        return;
    }
    weft_word_wait(&receive->closing, epoch * (uint32_t)(levels->near - 1), levels->before);
    leaders_meet(team, CLOSING, epoch);
    for (int i = 1; i < levels->near; i++)
        weft_word_set(&weft_team_receive(team, levels->members[first + i])->closed, epoch);
}

void weft_sync_close(struct weft_team *team) {
    uint32_t epoch = ++team->closing_epoch;
    if (team->far)
        far_close(team, epoch);
    else
        dissemination_barrier(team, CLOSING, epoch);
}

bool weft_sync_closes(const struct weft_team *team, const struct weft_word *word) {
    const struct weft_word *rounds = team->words->rounds[CLOSING];
    return (word >= rounds && word < rounds + WEFT_SYNC_ROUNDS) ||
           (team->far && (word == &team->receive->closing || word == &team->receive->closed));
}

/* Sends `bytes` to `dest` of every far member, and then the word. */
static void push(struct weft_team *team, void *dest, const void *source, size_t bytes,
                 struct weft_word *word, uint32_t value) {
    for (int distance = 1; distance < team->npes; distance++) {
        int member = weft_team_member_after(team, distance);
        if (weft_team_member_is_far(team, member))
            weft_far_put_word(dest, source, bytes, word, value, weft_team_world_pe(team, member));
    }
}

void weft_sync_post(struct weft_team *team, const void *payload, size_t bytes) {
    uint32_t epoch = ++team->post_epoch;
    struct weft_post *post = &team->words->post[epoch % 2];
    memcpy(post->payload, payload, bytes);
    weft_word_set(&post->posted, epoch);
    if (__builtin_expect(team->far, 0)) {
        struct weft_post *theirs = &weft_team_inbox(team, team->my_pe)->post[epoch % 2];
        push(team, theirs->payload, payload, bytes, &theirs->posted, epoch);
    }
}

/* Two posts, selected by parity, are enough: a member that posts round e+2 over round e has read
 * all posts of e+1, and a member posts e+1 only after it has read all posts of e. */
static struct weft_post *current_post(struct weft_team *team, int member) {
    struct weft_post *posts = weft_team_member_is_far(team, member)
                                  ? weft_team_inbox(team, member)->post
                                  : weft_team_words_of(team, member)->post;
    return &posts[team->post_epoch % 2];
}

const void *weft_sync_peek(struct weft_team *team, int member) {
    struct weft_post *post = current_post(team, member);
    weft_word_wait(&post->posted, team->post_epoch, weft_team_world_pe(team, member));
    return post->payload;
}

const void *weft_sync_peek_briefly(struct weft_team *team, int member, struct weft_waiter *waiter) {
    struct weft_post *post = current_post(team, member);
    waiter->pe = weft_team_world_pe(team, member);
    bool posted = weft_word_wait_briefly(&post->posted, team->post_epoch, waiter);
    return posted ? post->payload : NULL;
}

/* For callers that poll: delivers messages if the word has not been reached. */
static bool reached_now(struct weft_team *team, const struct weft_word *word, uint32_t value) {
    if (__builtin_expect(team->far, 0) && !weft_word_reached(word, value))
        weft_far_look();
    return weft_word_reached(word, value);
}

int weft_sync_posted(struct weft_team *team, int member) {
    return reached_now(team, &current_post(team, member)->posted, team->post_epoch);
}

uint64_t weft_sync_min(struct weft_team *team, uint64_t mine) {
    weft_sync_post(team, &mine, sizeof mine);
    for (int member = 0; member < team->npes; member++) {
        uint64_t theirs;
        memcpy(&theirs, weft_sync_peek(team, member), sizeof theirs);
        if (theirs < mine)
            mine = theirs;
    }
    return mine;
}

uint32_t weft_progress_begin(struct weft_team *team, uint32_t nsteps) {
    uint32_t begin = team->progress;
    team->progress += nsteps;
    return begin;
}

void weft_progress_set_near(struct weft_team *team, uint32_t value) {
    weft_word_set(&team->words->progress, value);
}

void weft_progress_set_far(struct weft_team *team, uint32_t value) {
    push(team, NULL, NULL, 0, &weft_team_inbox(team, team->my_pe)->progress, value);
}

void weft_progress_set(struct weft_team *team, uint32_t value) {
    weft_progress_set_near(team, value);
    if (__builtin_expect(team->far, 0))
        weft_progress_set_far(team, value);
}

static struct weft_word *progress_of(struct weft_team *team, int member) {
    return weft_team_member_is_far(team, member) ? &weft_team_inbox(team, member)->progress
                                                 : &weft_team_words_of(team, member)->progress;
}

void weft_progress_wait(struct weft_team *team, int member, uint32_t value) {
    weft_word_wait(progress_of(team, member), value, weft_team_world_pe(team, member));
}

bool weft_progress_reached(struct weft_team *team, int member, uint32_t value) {
    return reached_now(team, progress_of(team, member), value);
}
