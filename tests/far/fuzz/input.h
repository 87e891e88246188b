/* SPDX-License-Identifier: BSD-3-Clause */
/* The inputs of the fuzzer for messages to this PE, which is PE 0 of FUZZ_PES: a list of steps,
 * each a byte for its kind, then its bytes. Missing bytes count as zeros.
 *
 *   STEP_MESSAGE   flags, bytes (2)    a message arrives: the bytes that follow, head and payload
 *   STEP_REQUEST  pe, count, size     this PE requests blocks from that one
 *   STEP_SEND     pe, size            this PE sends a small message, which may join a bundle
 *   STEP_ROOM     room                the engine takes this many messages from now on
 *   STEP_DUE      linger              sends what is due */
#ifndef TESTS_FAR_FUZZ_INPUT_H
#define TESTS_FAR_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include "far/protocol.h"

enum { FUZZ_PES = 4 };

enum step { STEP_MESSAGE, STEP_REQUEST, STEP_SEND, STEP_ROOM, STEP_DUE, STEPS };

/* Flags of a message: without AS_IS the head is changed into one that the peer could send. */
enum {
    FLAG_AS_IS = 1,
    FLAG_FROM = 6,    /* one of the other PEs, */
    FLAG_EARLY = 24,  /* the number of messages by which it is early, */
    FLAG_HEARD = 224, /* the sevenths of the messages under way that it acknowledges */
};

/* Makes the windows of this PE, with inaccessible memory around them. Called once. */
void input_open(void);

/* Runs an input with fresh channels. Returns what went wrong, or NULL. */
const char *input_run(const unsigned char *input, size_t bytes);

/* Over all inputs: messages that arrived in steps, and how many of them have changed each
 * window. */
extern struct input_counts { uint64_t applied, refused, changed[WEFT_FAR_WINDOWS]; } input_counts;

#endif
