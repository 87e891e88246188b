/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults and sizes, read from FAKE_ENGINE, as in
 *
 *   FAKE_ENGINE="seed=7,reorder=16,delay_us=50;pe=1,die_after=1000"
 *
 * Settings that follow pe=N, up to the next semicolon, are for PE N only. The table has all
 * settings: name, default, and meaning. */
#ifndef TESTS_FAR_ENGINE_SETTINGS_H
#define TESTS_FAR_ENGINE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_ENGINE_SETTINGS(SETTING)                                                             \
    SETTING(seed, 1, "of all that is drawn")                                                      \
    SETTING(reorder, 0, "the receiver takes one of so many messages, drawn at random")            \
    SETTING(delay_us, 0, "a message arrives so late at most; drawn where messages are reordered") \
    SETTING(slow_us, 0, "each message costs its sender so much")                                  \
    SETTING(slow_read_us, 0, "each message costs its receiver so much")                           \
    SETTING(slow_look_us, 0, "each look for messages costs so much")                              \
    SETTING(refuse, 0, "of 100 messages that are sent so many find no room at first")             \
    SETTING(die_after, 0, "this process is killed when it has sent or got so many messages")      \
    SETTING(ring, 1 << 20, "bytes of messages under way between two processes")                   \
    SETTING(limit, 0, "the job is wrong if more bytes than these are under way; 0: any number")   \
    SETTING(fail_open, 0, "the errno with which the engine does not open")                        \
    SETTING(fail_connect, 0, "the errno with which it does not connect")                          \
    SETTING(fail_message, 0, "the errno with which no message is sent")                           \
    SETTING(tell, 0, "1: says at the end how many messages there were")

struct settings {
#define SETTING(name, preset, meaning) uint64_t name;
    FAKE_ENGINE_SETTINGS(SETTING)
#undef SETTING
};

/* Reads the settings of this PE. Ends the process with a line if the text has anything else. */
void settings_read(struct settings *settings, int pe);

/* Returns the next random number of this state, which is not 0. */
static inline uint64_t random_next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 11;
}

#endif
