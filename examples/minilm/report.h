/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's output: for a person on PE 0's standard output, for a test in a file. */
#ifndef MINILM_REPORT_H
#define MINILM_REPORT_H

#include "corpus.h"
#include <stdbool.h>

/* The difference of two encodings. */
struct agreement {
    double difference_max; /* of a component */
    double cosine_min;     /* of a sentence */
};

/* One encoding of the corpus. */
struct run {
    float *embeddings; /* corpus.all.count x hidden */
    double seconds;
    double wait_share; /* of the seconds, on the PE that waited most */
    bool on_gpus;
    int pes;
    struct agreement agreement; /* with the first encoding */
};

/* Prints on PE 0, without buffering. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints the `top` sentences nearest to the question. */
int report_answers(const struct corpus *corpus, const float *embeddings, size_t hidden, size_t top);

/* Prints the speeds of all runs, and whether the results agree with those of the first one. */
void report_table(const struct corpus *corpus, const struct run *runs, int count);

/* Writes a line for each sentence: its words, and after tabs its embedding. */
int report_dump(const struct corpus *corpus, const float *embeddings, size_t hidden,
                const char *path);

/* NaN in either encoding counts as disagreement. */
struct agreement agreement_of(const float *a, const float *b, size_t count, size_t hidden);

#endif
