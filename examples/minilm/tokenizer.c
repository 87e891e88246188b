/* SPDX-License-Identifier: BSD-3-Clause */
/* BERT's uncased tokenizer: a walk over the text that collects words, and WordPiece on each word
 * (Devlin et al. 2018; the reference is `BertTokenizer` with do_lower_case). */
#include "tokenizer.h"
#include "error.h"
#include "file.h"
#include "unicode.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_MAX = 100 /* characters; BERT gives up on longer words */ };

/* FNV-1a */
static size_t hash(const char *bytes, size_t n) {
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)bytes[i]) * 0x100000001b3;
    return (size_t)(h ^ h >> 32);
}

/* Returns the slot of a piece, or the free slot for it. At least half of the slots are free. */
static int32_t *find_slot(const struct tokenizer *tokenizer, const char *piece, size_t n) {
    for (size_t i = hash(piece, n);; i++) {
        int32_t *slot = &tokenizer->slots[i & tokenizer->slots_mask];
        if (*slot < 0)
            return slot;
        const char *known = tokenizer->pieces[*slot];
        if (!strncmp(known, piece, n) && !known[n])
            return slot;
    }
}

static size_t count_lines(const char *text) {
    size_t lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines + 1;
}

static int allocate(struct tokenizer *tokenizer, size_t lines) {
    size_t slots = 2;
    while (slots < 2 * lines)
        slots *= 2;
    tokenizer->slots_mask = slots - 1;
    tokenizer->slots = malloc(slots * sizeof *tokenizer->slots);
    tokenizer->pieces = malloc(lines * sizeof *tokenizer->pieces);
    if (!tokenizer->slots || !tokenizer->pieces)
        return fail("no memory for a vocabulary of %zu pieces", lines);
    memset(tokenizer->slots, -1, slots * sizeof *tokenizer->slots);
    return 0;
}

/* Terminates every line in place and enters it. */
static void enter_pieces(struct tokenizer *tokenizer) {
    char *line = tokenizer->words;
    while (*line) {
        size_t n = strcspn(line, "\r\n");
        char *next = line + n;
        next += *next == '\r';
        next += *next == '\n';
        line[n] = 0;
        tokenizer->pieces[tokenizer->pieces_count] = line;
        *find_slot(tokenizer, line, n) = (int32_t)tokenizer->pieces_count++;
        line = next;
    }
}

int tokenizer_open(struct tokenizer *tokenizer, const char *path) {
    size_t bytes;
    *tokenizer = (struct tokenizer){.words = file_read(path, &bytes)};
    if (!tokenizer->words || allocate(tokenizer, count_lines(tokenizer->words)) < 0) {
        tokenizer_close(tokenizer);
        return -1;
    }
    enter_pieces(tokenizer);
    tokenizer->cls = *find_slot(tokenizer, "[CLS]", 5);
    tokenizer->sep = *find_slot(tokenizer, "[SEP]", 5);
    tokenizer->unk = *find_slot(tokenizer, "[UNK]", 5);
    if (tokenizer->cls >= 0 && tokenizer->sep >= 0 && tokenizer->unk >= 0)
        return 0;
    tokenizer_close(tokenizer);
    return fail("%s: no [CLS], [SEP] or [UNK]: not a BERT vocabulary", path);
}

void tokenizer_close(struct tokenizer *tokenizer) {
    free(tokenizer->words);
    free(tokenizer->pieces);
    free(tokenizer->slots);
    *tokenizer = (struct tokenizer){0};
}

/* The output: the ids of one text. */
struct output {
    int32_t *ids;
    size_t count, room;
};

static void emit(struct output *output, int32_t id) {
    if (output->count < output->room)
        output->ids[output->count++] = id;
}

/* The current word: folded UTF-8 after two bytes that stay free for "##". */
struct word {
    char text[2 + 4 * WORD_MAX + 4];
    size_t bytes, characters;
};

/* Returns the length of the longest piece of the vocabulary that starts the n bytes at `rest`, or
 * 0. A piece that continues a word is looked up with "##" written over the two bytes before it. */
static size_t longest_piece(const struct tokenizer *tokenizer, char *rest, size_t n, bool continues,
                            int32_t *id) {
    char before[2];
    size_t mark = continues ? 2 : 0;
    memcpy(before, rest - 2, 2);
    memcpy(rest - mark, "##", mark);
    while (n && (*id = *find_slot(tokenizer, rest - mark, n + mark)) < 0)
        n--; /* an end inside a character matches nothing */
    memcpy(rest - 2, before, 2);
    return n;
}

static void wordpiece(const struct tokenizer *tokenizer, struct word *word, struct output *output) {
    struct output start = *output;
    char *text = word->text + 2;
    size_t at = 0;
    while (at < word->bytes && word->characters <= WORD_MAX) {
        int32_t id = -1;
        size_t n = longest_piece(tokenizer, text + at, word->bytes - at, at > 0, &id);
        if (!n)
            break;
        emit(output, id);
        at += n;
    }
    if (at < word->bytes) {
        *output = start;
        emit(output, tokenizer->unk);
    }
    word->bytes = word->characters = 0;
}

static void collect(struct word *word, uint32_t code) {
    if (word->characters++ < WORD_MAX)
        word->bytes += unicode_put(code, word->text + 2 + word->bytes);
}

size_t tokenizer_encode(const struct tokenizer *tokenizer, const char *text, int32_t *ids,
                        size_t max_ids) {
    struct output output = {.ids = ids, .room = max_ids - 1};
    struct word word = {.bytes = 0};
    emit(&output, tokenizer->cls);
    for (uint32_t code; (code = unicode_next(&text)) && output.count < output.room;) {
        if (code == 0xFFFD || unicode_is_control(code) || unicode_is_accent(code))
            continue;
        code = unicode_fold(code);
        bool alone = unicode_is_punctuation(code) || unicode_is_cjk(code);
        if (alone || unicode_is_space(code))
            wordpiece(tokenizer, &word, &output);
        if (!unicode_is_space(code))
            collect(&word, code);
        if (alone)
            wordpiece(tokenizer, &word, &output);
    }
    wordpiece(tokenizer, &word, &output);
    output.room = max_ids;
    emit(&output, tokenizer->sep);
    return output.count;
}
