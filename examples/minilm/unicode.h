/* SPDX-License-Identifier: BSD-3-Clause */
/* Character data for BERT's tokenizer: UTF-8, and small tables of Unicode that are complete for
 * Latin script, Greek and Cyrillic as written today, and for punctuation outside historical
 * scripts. Other letters are passed through unchanged. */
#ifndef MINILM_UNICODE_H
#define MINILM_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads one code point of a terminated text and advances; each ill-formed byte reads as U+FFFD. At
 * the end: returns 0, and does not advance. */
uint32_t unicode_next(const char **text);

/* Writes one code point; returns its bytes, at most 4. */
size_t unicode_put(uint32_t code, char *dest);

bool unicode_is_space(uint32_t code);
bool unicode_is_control(uint32_t code); /* invisible: category C, without tab and line ends */
bool unicode_is_punctuation(uint32_t code);
bool unicode_is_cjk(uint32_t code);    /* ideographs: BERT makes each a word of its own */
bool unicode_is_accent(uint32_t code); /* a combining mark */

/* Lower case, with the accent taken off. */
uint32_t unicode_fold(uint32_t code);

#endif
