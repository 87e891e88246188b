/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: random messages, including damaged heads, numbers, bundles and payloads: those that
 * a far PE may send in any order, and those that it must not send. Each is applied or refused. A
 * refused message changes nothing, no memory outside the windows is touched, and the counts and
 * limits of channels hold.
 * PEs: 1
 *
 * An input is a list of steps (fuzz/input.h); tests/fuzz.h runs them. */
#include "fuzz.h"
#include "fuzz/input.h"

static void expect_corpus(void) {
    for (int i = 0; i < WEFT_FAR_WINDOWS; i++)
        EXPECT(i == WEFT_FAR_DEVICE || input_counts.changed[i] > 0, "nothing came to window %d", i);
}

static void expect_all(uint64_t inputs) {
    printf("# %llu inputs: %llu messages applied, %llu refused\n", (unsigned long long)inputs,
           (unsigned long long)input_counts.applied, (unsigned long long)input_counts.refused);
    EXPECT(input_counts.applied > inputs / 4 && input_counts.refused > inputs / 20,
           "too few of a kind");
}

static const struct fuzz fuzz = {.corpus = "tests/far/fuzz/corpus.txt",
                                 .rounds = 60000,
                                 .open = input_open,
                                 .run = input_run,
                                 .expect_corpus = expect_corpus,
                                 .expect_all = expect_all};
