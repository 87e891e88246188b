/* SPDX-License-Identifier: BSD-3-Clause */
/* From files to tokens. */
#include "corpus.h"
#include "error.h"
#include "tokenizer.h"
#include <stdio.h>
#include <stdlib.h>

static int tokenize(struct corpus *corpus, const struct tokenizer *tokenizer, size_t max_tokens) {
    size_t count = 1 + corpus->text.count;
    size_t *starts = calloc(count + 1, sizeof *starts);
    int32_t *tokens = calloc(count * max_tokens, sizeof *tokens);
    corpus->all = (struct sentences){tokens, starts, count};
    if (!starts || !tokens)
        return fail("no memory for the tokens of %zu sentences", count);
    for (size_t s = 0; s < count; s++) {
        const char *words = s ? corpus->text.sentences[s - 1].words : corpus->question;
        starts[s + 1] =
            starts[s] + tokenizer_encode(tokenizer, words, tokens + starts[s], max_tokens);
    }
    corpus->tokens = starts[count];
    return 0;
}

int corpus_open(struct corpus *corpus, const struct model *model, const char *directory,
                const char *text, const char *question) {
    struct tokenizer tokenizer;
    char vocabulary[4096];
    snprintf(vocabulary, sizeof vocabulary, "%s/vocab.txt", directory);
    *corpus = (struct corpus){.question = question};
    if (tokenizer_open(&tokenizer, vocabulary))
        return -1;
    int error = 0;
    if (tokenizer.pieces_count > model->vocabulary)
        error = fail("%s: %zu pieces, but the model knows %zu", vocabulary, tokenizer.pieces_count,
                     model->vocabulary);
    else if (text_open(&corpus->text, text))
        error = fail("%s (--text FILE asks another text)", fail_text());
    else
        error = tokenize(corpus, &tokenizer, model->max_tokens);
    tokenizer_close(&tokenizer);
    if (error)
        corpus_close(corpus);
    return error;
}

void corpus_close(struct corpus *corpus) {
    free((void *)corpus->all.tokens);
    free((void *)corpus->all.starts);
    text_close(&corpus->text);
    *corpus = (struct corpus){0};
}
