/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: random frames, which hosts and PEs of a job may send in any order, or must not send,
 * to each kind of receiver: the front (launch/front_hear.c), a daemon (launch/daemon_hear.c), PE 0
 * while PEs connect (boot/callers.c), a PE that connects, and the agent of a host
 * (boot/pe_status.c, boot/host_exchange.c). Each frame is accepted or rejected, and the receiver's
 * data stays valid. PEs: 1
 *
 * An input is a scene and a list of steps (fuzz/input.h); tests/fuzz.h runs them. */
#include "fuzz.h"
#include "fuzz/input.h"

static void expect_corpus(void) {
    for (int i = 0; i < SCENES; i++)
        EXPECT(input_counts.whole[i] > 0, "no input of scene %d has come to its end", i);
}

static void expect_all(uint64_t inputs) {
    printf("# %llu inputs: %llu frames, %llu refused\n", (unsigned long long)inputs,
           (unsigned long long)input_counts.frames, (unsigned long long)input_counts.refused);
    EXPECT(input_counts.frames > inputs && input_counts.refused > inputs / 20, "too few of a kind");
}

static const struct fuzz fuzz = {.corpus = "tests/launch/fuzz/corpus.txt",
                                 .rounds = 20000,
                                 .open = input_open,
                                 .run = input_run,
                                 .expect_corpus = expect_corpus,
                                 .expect_all = expect_all};
