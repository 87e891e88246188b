/* SPDX-License-Identifier: BSD-3-Clause */
/* BERT's uncased tokenizer: text -> [CLS] pieces [SEP].
 *
 * Words are cut at white space, punctuation and ideographs, lower-cased, accents taken off; a word
 * is then cut greedily into the longest pieces that the vocabulary knows ("##" marks a piece that
 * continues a word), and is [UNK] as a whole where that fails. */
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

/* Reads vocab.txt: one piece a line, its id is the line's number from 0. 0, or -1 with fail_text().
 */
int tokenizer_open(struct tokenizer *tokenizer, const char *path);
void tokenizer_close(struct tokenizer *tokenizer);

/* Writes at most max_ids (2 at least) ids; a text that is longer loses its end, not its [SEP].
 * Returns how many were written. */
size_t tokenizer_encode(const struct tokenizer *tokenizer, const char *text, int32_t *ids,
                        size_t max_ids);

#endif
