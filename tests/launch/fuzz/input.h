/* SPDX-License-Identifier: BSD-3-Clause */
/* Inputs of the fuzzer for frames in a job of FUZZ_PES PEs on FUZZ_HOSTS hosts: a byte for the
 * scene, then steps. A step is a byte for its kind, a byte for the line on which it is sent, and
 * its bytes. Missing bytes count as zeroes.
 *
 *   STEP_FRAME  bytes (2)  a frame: the bytes that follow are header and payload, but the length is
 *                          set, a host that is not on the line is replaced, and in a HELLO bytes
 *                          that are zero or change with the version are set
 *   STEP_RAW    bytes (2)  the bytes that follow, unchanged
 *   STEP_END               the line ends
 *   STEP_LATE              time passes, and what is due by then happens
 *
 * A scene is a receiver and its connections. */
#ifndef TESTS_LAUNCH_FUZZ_INPUT_H
#define TESTS_LAUNCH_FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FUZZ_PES = 6, FUZZ_HOSTS = 3 };
extern const int32_t fuzz_host_of[FUZZ_PES];

/* Returns a change of this host's control page that other hosts must not be able to make, or NULL.
 */
struct weft_control;
const char *fuzz_control_look(struct weft_control *control);

enum step { STEP_FRAME, STEP_RAW, STEP_END, STEP_LATE, STEPS };

struct scene {
    int nlines;
    bool above; /* this process is on none of the hosts */
    struct {
        int first, count; /* range of hosts that the line represents */
    } hosts[4];
    void (*open)(void);
    void (*complete)(uint32_t kind, uint8_t *payload, size_t bytes); /* NULL: nothing */
    void (*late)(void);                                              /* NULL: nothing is due */
    bool (*turn)(void);        /* handles what was sent; false: the scene has ended */
    const char *(*look)(void); /* returns what is invalid in the receiver's data, or NULL */
    bool (*close)(void);       /* returns whether the scene has reached the state of a whole job */
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

/* Runs an input. Returns what went wrong, or NULL. */
const char *input_run(const uint8_t *input, size_t bytes);

/* Counts over all inputs: frames; inputs ended by the scene before their last step; and inputs of
 * each scene that were run to their end. */
extern struct input_counts { uint64_t frames, refused, whole[SCENES]; } input_counts;

#endif
