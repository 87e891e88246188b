/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain English text, cut into sentences.
 *
 * Blank lines part paragraphs. Lines of a paragraph flow together; it is cut where a sentence ends
 * and, when one goes on and on, at a comma. Titles (numbered, centred, or one line without a full
 * stop) are no sentences: they name the section of what follows. */
#ifndef MINILM_TEXT_H
#define MINILM_TEXT_H

#include <stddef.h>

struct sentence {
    const char *words;   /* single spaces, no line ends */
    const char *section; /* the title above, or "" */
    size_t line;         /* where it starts, from 1 */
};

struct text {
    char *storage; /* the file; sentences are compacted in place */
    struct sentence *sentences;
    size_t count;
};

/* 0, or -1 with fail_text(); a text without a sentence is an error. */
int text_open(struct text *text, const char *path);
void text_close(struct text *text);

#endif
