/* SPDX-License-Identifier: BSD-3-Clause */
/* The input: a question and the sentences of a text, as words and as tokens. */
#ifndef MINILM_CORPUS_H
#define MINILM_CORPUS_H

#include "encoder.h"
#include "text.h"

struct corpus {
    const char *question;
    struct text text;
    struct sentences all; /* number 0 is the question, number s + 1 the text's sentence s */
    size_t tokens;
};

/* Reads `text` and the model's vocabulary in `directory`; keeps `question` without a copy. Returns
 * 0, or -1 with fail_text(). */
int corpus_open(struct corpus *corpus, const struct model *model, const char *directory,
                const char *text, const char *question);
void corpus_close(struct corpus *corpus);

#endif
