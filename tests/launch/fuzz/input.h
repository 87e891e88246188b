/* SPDX-License-Identifier: BSD-3-Clause */
/* What a fuzzer says to the one in the middle of a job of FUZZ_PES PEs on FUZZ_HOSTS hosts: a byte
 * for the scene, and steps, each of a byte that says what it is, one for the line that says it, and
 * its bytes. Whatever is short is filled up with zeroes.
 *
 *   STEP_FRAME  bytes (2)    a frame, header and payload: the bytes that follow, but for the
 *                            length, a host that is none of the line's, and what of the scene's
 *                            HELLO is zero and changes from version to version
 *   STEP_RAW    bytes (2)    the bytes that follow, as they are
 *   STEP_END                 nothing more
 *   STEP_LATE                time passes, and what is late by then happens
 *
 * A scene is the one in the middle, and those who speak to it. */
#ifndef TESTS_LAUNCH_FUZZ_INPUT_H
#define TESTS_LAUNCH_FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FUZZ_PES = 6, FUZZ_HOSTS = 3 };
extern const int32_t fuzz_host_of[FUZZ_PES];

/* Returns what others must not have done to the control page of this host, or NULL. */
struct weft_control;
const char *fuzz_control_look(struct weft_control *control);

enum step { STEP_FRAME, STEP_RAW, STEP_END, STEP_LATE, STEPS };

struct scene {
    int nlines;
    bool above; /* none of the hosts is this one */
    struct {
        int first, count; /* of the hosts for which it speaks */
    } hosts[4];
    void (*open)(void);
    void (*complete)(uint32_t kind, uint8_t *payload, size_t bytes); /* NULL: nothing */
    void (*late)(void);        /* NULL: nothing is ever late */
    bool (*turn)(void);        /* hears what has been said; false: it is over */
    const char *(*look)(void); /* what makes no sense in what it knows by now; or NULL */
    bool (*close)(void);       /* true: it has come to where a whole job would come */
};

enum scene_number {
    SCENE_FRONT,
    SCENE_CALLERS,
    SCENE_AGENT,
    SCENE_PLACES,
    SCENE_DAEMON,
    SCENES,
};
extern const struct scene scene_front, scene_callers, scene_agent, scene_places, scene_daemon;

void input_open(void);

/* Runs an input. What went wrong, or NULL. */
const char *input_run(const uint8_t *input, size_t bytes);

/* Over all inputs: frames; inputs that the scene has ended before it was whole; and those of each
 * scene where it was. */
extern struct input_counts { uint64_t frames, refused, whole[SCENES]; } input_counts;

#endif
