/* SPDX-License-Identifier: BSD-3-Clause */
/* What a fuzzer feeds to the messages of this PE, which is 0 of FUZZ_PES: steps, one behind the
 * other, each of a byte that says what it is, and its bytes. Whatever is short is filled up with
 * zeroes.
 *
 *   STEP_MESSAGE   flags, bytes (2)    a message arrives: the bytes that follow, head and text
 *   STEP_REQUEST  pe, count, size     this PE asks that one for blocks
 *   STEP_SEND     pe, size            this PE sends a small message, which may go in a bundle
 *   STEP_ROOM     room                the engine takes so many messages from now on
 *   STEP_DUE      linger              what is due is sent */
#ifndef TESTS_FAR_FUZZ_INPUT_H
#define TESTS_FAR_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include "far/protocol.h"

enum { FUZZ_PES = 4 };

enum step { STEP_MESSAGE, STEP_REQUEST, STEP_SEND, STEP_ROOM, STEP_DUE, STEPS };

/* Flags of a message: without AS_IS the head is made one that the peer could send. */
enum {
    FLAG_AS_IS = 1,
    FLAG_FROM = 6,    /* one of the other PEs, */
    FLAG_EARLY = 24,  /* so many messages too early, */
    FLAG_HEARD = 224, /* which has heard so much of what is under way: of 7 parts */
};

/* Makes windows of this PE, with memory around them that nobody may touch. Once. */
void input_open(void);

/* Runs an input with fresh channels. What went wrong, or NULL. */
const char *input_run(const unsigned char *input, size_t bytes);

/* Over all inputs: messages that arrived in steps, and how many have changed each window. */
extern struct input_counts { uint64_t applied, refused, changed[WEFT_FAR_WINDOWS]; } input_counts;

#endif
