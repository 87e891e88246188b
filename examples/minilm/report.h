/* SPDX-License-Identifier: BSD-3-Clause */
/* What the program tells: to a person on PE 0's standard output, to a test in a file. */
#ifndef MINILM_REPORT_H
#define MINILM_REPORT_H

#include "corpus.h"
#include <stdbool.h>

/* One encoding of the corpus. */
struct run {
    float *embeddings; /* corpus.all.count x hidden */
    double seconds;
    double wait_share; /* of the seconds, on the PE that waited most */
};

/* How far two encodings are apart. */
struct agreement {
    double difference_max; /* of a component */
    double cosine_min;     /* of a sentence */
};

/* Prints on PE 0, at once. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The `top` sentences nearest to the question. */
int report_answers(const struct corpus *corpus, const float *embeddings, size_t hidden, size_t top);

/* Speed and agreement of one PE and of all. */
void report_table(const struct corpus *corpus, const struct run *alone, const struct run *together,
                  const struct agreement *agreement);

/* Writes a line for each sentence: its words, and after tabs its embedding. */
int report_dump(const struct corpus *corpus, const float *embeddings, size_t hidden,
                const char *path);

/* What is not a number anywhere counts as disagreement. */
struct agreement agreement_of(const float *a, const float *b, size_t count, size_t hidden);

#endif
