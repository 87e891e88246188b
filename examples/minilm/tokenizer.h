/* SPDX-License-Identifier: BSD-3-Clause */
/* BERT's uncased tokenizer: text -> [CLS] pieces [SEP].
 *
 * Words are split at white space, punctuation and ideographs, and lower-cased; accents are removed.
 * A word is then split greedily into the longest pieces in the vocabulary ("##" marks a piece that
 * continues a word); if that fails, the whole word is [UNK]. */
#ifndef MINILM_TOKENIZER_H
#define MINILM_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

struct tokenizer {
    char *words;         /* vocab.txt, its lines terminated */
    const char **pieces; /* piece of an id */
    size_t pieces_count;
    int32_t *slots; /* open addressing by the piece's hash; -1 is free */
    size_t slots_mask;
    int32_t cls, sep, unk;
};

/* Reads vocab.txt: one piece in each line; its id is the line's number from 0. Returns 0, or -1
 * with fail_text(). */
int tokenizer_open(struct tokenizer *tokenizer, const char *path);
void tokenizer_close(struct tokenizer *tokenizer);

/* Writes at most max_ids ids (max_ids is at least 2); a longer text is truncated, but keeps its
 * [SEP]. Returns the number of ids written. */
size_t tokenizer_encode(const struct tokenizer *tokenizer, const char *text, int32_t *ids,
                        size_t max_ids);

#endif
