/* SPDX-License-Identifier: BSD-3-Clause */
/* Structures shared by the host and the kernels of the test of signals. */
#ifndef TESTS_GPU_DEVICE_SIGNALS_TASK_H
#define TESTS_GPU_DEVICE_SIGNALS_TASK_H

#include "gpu/found.h"

enum { SIGNALS_ROOM = 1024 }; /* bytes of a message, and 32 */

/* How a message is sent and announced; kinds from SIGNALS_WORDS_32 on use words of 32 bits. */
enum signals_send {
    SEND_PUT_SIGNAL_T,
    SEND_PUT_SIGNAL_W,
    SEND_PUT_SIGNAL_B,
    SEND_PUT_SIGNAL_ADD_T,
    SEND_PUT_SIGNAL_ADD_W,
    SEND_PUT_SIGNAL_ADD_B,
    SEND_SIGNAL,
    SEND_SIGNAL_ADD,
    SEND_FENCE_T,
    SEND_FENCE_B,
    SEND_QUIET_W,
    SEND_QUIET_B,
    SEND_WORDS,
    SEND_WORD_SIGNAL,
    SEND_WORD_SIGNAL_ADD,
    SEND_HALF_WORD_SIGNAL,
    SEND_SET,
    SEND_SWAP,
    SEND_FETCH_ADD,
    SEND_ADD,
    SEND_XOR,
    SEND_FETCH_XOR,
    SEND_OR_AND,
    SEND_FETCH_OR_AND,
    SEND_COMPARE_SWAP,
    SEND_SET_32,
    SEND_SWAP_32,
    SEND_P32,
    SEND_KINDS,
    SEND_KINDS_32 = SEND_SET_32, /* from here on by words of 32 bits, */
    SEND_ATOMIC = SEND_SET       /* and from here on by atomics */
};

enum signals_wait {
    WAIT_GE,
    WAIT_EQ,
    WAIT_UNTIL_GT,
    WAIT_UNTIL_NE,
    WAIT_EACH,
    WAIT_UNTIL_W,
    WAIT_UNTIL_B,
    WAIT_GE_W,
    WAIT_GE_B,
    WAIT_TEST,
    WAIT_NS,
    WAIT_RELAXED,
    WAIT_FETCH,
    WAIT_ATOMIC_FETCH,
    WAIT_KINDS
};
enum signals_wait_32 { WAIT32_UNTIL, WAIT32_TEST, WAIT32_ATOMIC_FETCH, WAIT32_KINDS };

/* Messages number first + 1 to first + count, from every member to every one. Arrays are symmetric:
 * [block][member]. */
struct signals_messages {
    uint32_t seed, first, count;
    int32_t atomics; /* whether the links have atomics */
    char *landing, *source;
    uint64_t *sig, *acks;
    uint32_t *sig32;
    struct device_found *found;
};

/* A comparison, and its results: bits of tests and waits. */
struct signals_compare {
    uint64_t word, value;
    int32_t cmp;
    uint32_t came;
};
enum { COMPARED = 1, COMPARED_32 = 2, COMPARED_NS = 4, TIMED_OUT = 8, TOO_EARLY = 16 };

#endif
