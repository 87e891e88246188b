/* SPDX-License-Identifier: BSD-3-Clause */
/* The log lines of scenes are dropped. */
#include "input.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "boot/attachment.h"
#include "boot/frames.h"
#include "boot/hosts.h"
#include "boot/long_wait.h"
#include "line.h"

struct input_counts input_counts;
const int32_t fuzz_host_of[FUZZ_PES] = {0, 1, 0, 1, 1, 2};

static const struct scene *const scenes[SCENES] = {[SCENE_FRONT] = &scene_front,
                                                   [SCENE_CALLERS] = &scene_callers,
                                                   [SCENE_AGENT] = &scene_agent,
                                                   [SCENE_PLACES] = &scene_places,
                                                   [SCENE_DAEMON] = &scene_daemon};

/* The unread part of an input. */
struct reader {
    const uint8_t *at;
    size_t left;
};

static int line_drop(const char *line) {
    (void)line;
    return 1;
}

void input_open(void) {
    weft_log_set_handler(line_drop);
}

static void hosts_set(int here) {
    static struct weft_host host[FUZZ_HOSTS] = {{"a"}, {"b"}, {"c"}};
    if (weft_hosts_set(&(struct weft_hosts_given){.npes = FUZZ_PES,
                                                  .nhosts = FUZZ_HOSTS,
                                                  .here = here,
                                                  .host_of = fuzz_host_of,
                                                  .host = host}))
        abort();
}

static unsigned take(struct reader *reader) {
    if (reader->left == 0)
        return 0;
    reader->left--;
    return *reader->at++;
}

/* Takes the bytes of a step; fewer if the input ends. */
static size_t take_bytes(struct reader *reader, const uint8_t **bytes) {
    size_t count = take(reader);
    count |= (size_t)take(reader) << 8;
    count = count < reader->left ? count : reader->left;
    *bytes = reader->at;
    reader->at += count;
    reader->left -= count;
    return count;
}

static void step_frame(const struct scene *scene, int line, struct reader *reader) {
    static uint8_t payload[UINT16_MAX];
    static const uint8_t zeroes[8];
    int first = scene->hosts[line].first, count = scene->hosts[line].count;
    const uint8_t *bytes;
    size_t length = take_bytes(reader, &bytes);
    struct weft_frame frame = {0};
    size_t head = length < sizeof frame ? length : sizeof frame;
    memcpy(&frame, bytes, head);
    frame.bytes = (uint32_t)(length - head);
    memcpy(payload, bytes + head, frame.bytes);
    if (frame.host < first || frame.host >= first + count)
        frame.host = first;
    if (scene->complete)
        scene->complete(frame.kind, payload, frame.bytes);
    line_say(line, &frame, sizeof frame);
    line_say(line, payload, frame.bytes);
    line_say(line, zeroes, -frame.bytes % sizeof zeroes);
    input_counts.frames++;
}

static void step_run(const struct scene *scene, struct reader *reader) {
    enum step step = (enum step)(take(reader) % STEPS);
    int line = (int)take(reader) % scene->nlines;
    const uint8_t *bytes;
    size_t count;
    switch (step) {
    case STEP_FRAME:
        step_frame(scene, line, reader);
        break;
    case STEP_RAW:
        count = take_bytes(reader, &bytes);
        line_say(line, bytes, count);
        break;
    case STEP_END:
        line_end(line);
        break;
    case STEP_LATE:
        if (scene->late)
            scene->late();
        break;
    case STEPS:
        break;
    }
}

const char *input_run(const uint8_t *input, size_t bytes) {
    static FILE *nowhere;
    struct reader reader = {input, bytes};
    enum scene_number number = (enum scene_number)(take(&reader) % SCENES);
    const struct scene *scene = scenes[number];
    const char *wrong = NULL;
    FILE *said = stderr;
    bool goes_on = true;
    nowhere = nowhere ? nowhere : fopen("/dev/null", "w");
    stderr = nowhere;
    hosts_set(scene->above ? -1 : 0);
    scene->open();
    while (goes_on && !wrong && reader.left > 0) {
        step_run(scene, &reader);
        goes_on = scene->turn();
        wrong = scene->look();
    }
    bool whole = scene->close();
    stderr = said;
    input_counts.whole[number] += whole;
    input_counts.refused += !goes_on && !whole;
    return wrong;
}

const char *fuzz_control_look(struct weft_control *control) {
    struct weft_long_wait_facts facts;
    for (int pe = 0; pe < FUZZ_PES; pe++) {
        for (int place = 0; place < WEFT_LONG_WAITS; place++)
            if (weft_long_wait_read(&control->pe[pe].wait[place], &facts) &&
                (!memchr(facts.call, 0, sizeof facts.call) ||
                 !memchr(facts.where, 0, sizeof facts.where) ||
                 !memchr(facts.awaited, 0, sizeof facts.awaited)))
                return "the text of a PE's wait has no end";
        if (weft_boot_is_here(pe) && atomic_load(&control->pe[pe].pid))
            return "another host has written to the entry of a PE of this one";
    }
    return NULL;
}
