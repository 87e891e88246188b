/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain English text, cut into sentences.
 *
 * Blank lines separate paragraphs. The lines of a paragraph are joined; it is cut at the ends of
 * sentences and, if a sentence is very long, at a comma. Titles (numbered, centred, or one line
 * without a full stop) are not sentences: they name the section of the following ones. */
#ifndef MINILM_TEXT_H
#define MINILM_TEXT_H

#include <stddef.h>

struct sentence {
    const char *words;   /* single spaces, no line ends */
    const char *section; /* the title above, or "" */
    size_t line;         /* its first line, from 1 */
};

struct text {
    char *storage; /* the file; sentences are compacted in place */
    struct sentence *sentences;
    size_t count;
};

/* Returns 0, or -1 with fail_text(); a text without a sentence is an error. */
int text_open(struct text *text, const char *path);
void text_close(struct text *text);

#endif
