/* SPDX-License-Identifier: BSD-3-Clause */
/* Words: elements of 32 or 64 bits, for atomics, waits and tests. */
#ifndef PYWEFT_WORD_H
#define PYWEFT_WORD_H

#include "array.h"

/* WHOLE: int32, int64, uint32, uint64. ANY: these, float32 and float64. */
enum pyweft_word_types { PYWEFT_WORD_WHOLE, PYWEFT_WORD_ANY };

/* Takes an array of aligned elements of one of these types. Returns false with ValueError, or with
 * the exceptions of pyweft_array_take. */
bool pyweft_words_take(struct pyweft_array *words, const char *call, const char *name,
                       PyObject *object, enum pyweft_word_types types, enum pyweft_array_use use);

/* Reads the index of an element; 0 if it is not given. Returns false with TypeError if the index is
 * not an integer, or with ValueError if there is no such element. */
bool pyweft_words_index(const struct pyweft_array *words, const char *call, const char *name,
                        PyObject *index, size_t *at);

/* Takes a signal: one aligned uint64 of symmetric memory. Returns false with ValueError, or with
 * the exceptions of pyweft_array_take. */
bool pyweft_signal_take(struct pyweft_array *word, const char *call, PyObject *object, int pe,
                        weft_stream stream);

/* Converts a number to the bits of a word. Returns false with TypeError, or ValueError if the type
 * lacks the number. pyweft_word_number converts back. */
bool pyweft_word_bits(const char *call, const char *name, const struct pyweft_dtype_row *dtype,
                      PyObject *object, uint64_t *bits);
PyObject *pyweft_word_number(const struct pyweft_dtype_row *dtype, uint64_t bits);

/* Reads "==", "!=", ">", ">=", "<" or "<=" as SHMEM_CMP_*. Returns false with ValueError. */
bool pyweft_argument_cmp(const char *call, PyObject *object, int *cmp);

#endif
