/* SPDX-License-Identifier: BSD-3-Clause */
/* PE 0's agent, or rather what it does with the rounds and the news of two other hosts, whose
 * connections are links: boot/agent.c itself has one job in its life. */
#include <stdlib.h>
#include <string.h>
#include "boot/attachment.h"
#include "boot/news.h"
#include "boot/rounds.h"
#include "boot/stall.h"
#include "input.h"
#include "line.h"

enum { LINES = FUZZ_HOSTS - 1 };

static struct weft_control *control;
static struct weft_news *news;
static struct weft_rounds rounds;
static struct weft_host_link links[LINES];
static int shared; /* rounds */
static const char *wrong;

static void news_send(void *owner, const struct weft_frame *frame, const void *payload) {
    (void)owner, (void)frame, (void)payload;
    wrong = "there are news of PEs that have done nothing";
}

static void agent_open(void) {
    if (!control && weft_control_create(FUZZ_PES, FUZZ_HOSTS, &control, NULL))
        abort();
    for (int pe = 0; pe < FUZZ_PES; pe++)
        memset(&control->pe[pe].pid, 0,
               sizeof control->pe[pe] - offsetof(struct weft_control_pe, pid));
    rounds = (struct weft_rounds){.npes = FUZZ_PES, .nhosts = FUZZ_HOSTS};
    shared = 0;
    wrong = NULL;
    if (weft_news_open(&news, control, FUZZ_PES, news_send, NULL))
        abort();
    for (int line = 0; line < LINES; line++)
        if (weft_host_link_open(&links[line], line_open(line), 1e9, true))
            abort();
}

/* All hosts have given. */
static void round_share(size_t bytes) {
    struct weft_tree_round head;
    memcpy(&head, rounds.shares, sizeof head);
    if (bytes != sizeof head + (size_t)FUZZ_PES * head.bytes)
        wrong = "a round has another size than what was given to it";
    for (int host = 0; host < FUZZ_HOSTS; host++)
        if (!rounds.gave[host])
            wrong = "a round is shared to which a host has not given";
    unsigned char *copy = malloc(bytes);
    memcpy(copy, rounds.shares, bytes); /* as it goes to others */
    free(copy);
    weft_rounds_next(&rounds);
    shared++;
}

static bool host_gives(int host, const void *payload, size_t bytes) {
    size_t all;
    int given = weft_rounds_give(&rounds, host, payload, bytes, &all);
    if (given == 1)
        round_share(all);
    return given >= 0;
}

/* This host gives to every round that others have begun. */
static void give(void) {
    static unsigned char payload[sizeof(struct weft_tree_round) + FUZZ_PES * WEFT_BOOT_BLOB_MAX];
    if (!weft_rounds_await(&rounds, 0))
        return;
    memcpy(payload, &rounds.round, sizeof rounds.round);
    size_t bytes = sizeof rounds.round + (size_t)weft_boot_npes_here() * rounds.round.bytes;
    if (!host_gives(0, payload, bytes))
        wrong = "what this host gives to a round of others is refused";
}

static bool frame_hear(int host, const struct weft_frame *frame, const void *payload) {
    switch (frame->kind) {
    case WEFT_TREE_GAVE:
        return host_gives(host, payload, frame->bytes);
    case WEFT_TREE_NEWS:
    case WEFT_TREE_STALL:
        return weft_news_hear(news, frame, payload) == NULL;
    default:
        return false;
    }
}

static bool agent_turn(void) {
    bool lives = true;
    for (int line = 0; line < LINES; line++) {
        struct weft_frame frame;
        const void *payload;
        weft_host_link_turn(&links[line], 0);
        while (weft_host_link_next(&links[line], &frame, &payload))
            if (!frame_hear(line + 1, &frame, payload))
                weft_host_link_refuse(&links[line], "it says what makes no sense");
        lives = lives && !links[line].end;
    }
    give();
    weft_news_tell(news);
    return lives;
}

static const char *agent_look(void) {
    const char *seen = fuzz_control_look(control);
    return seen ? seen : wrong;
}

static bool agent_close(void) {
    for (int line = 0; line < LINES; line++)
        weft_host_link_close(&links[line]);
    weft_news_close(news);
    free(rounds.shares);
    return shared > 0;
}

const struct scene scene_agent = {.nlines = LINES,
                                  .hosts = {{1, 1}, {2, 1}},
                                  .open = agent_open,
                                  .turn = agent_turn,
                                  .look = agent_look,
                                  .close = agent_close};
