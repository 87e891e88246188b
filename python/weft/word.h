/* SPDX-License-Identifier: BSD-3-Clause */
/* Words: elements of 32 or 64 bits that atomics change, and that waits and tests look at. */
#ifndef PYWEFT_WORD_H
#define PYWEFT_WORD_H

#include "array.h"

/* int32, int64, uint32, uint64; and those, float32 and float64. */
enum pyweft_word_types { PYWEFT_WORD_WHOLE, PYWEFT_WORD_ANY };

/* Aligned elements of such a type. ValueError. */
bool pyweft_words_take(struct pyweft_array *words, const char *call, const char *name,
                       PyObject *object, enum pyweft_word_types types, enum pyweft_array_use use);

/* The number of one of the elements; 0 without `index`. ValueError. */
bool pyweft_words_index(const struct pyweft_array *words, const char *call, const char *name,
                        PyObject *index, size_t *at);

/* A signal: one aligned uint64 of symmetric memory. ValueError. */
bool pyweft_signal_take(struct pyweft_array *word, const char *call, PyObject *object, int pe,
                        weft_stream stream);

/* A number as the bits of a word, and back. TypeError, ValueError for one that the type has not. */
bool pyweft_word_bits(const char *call, const char *name, const struct pyweft_dtype_row *dtype,
                      PyObject *object, uint64_t *bits);
PyObject *pyweft_word_number(const struct pyweft_dtype_row *dtype, uint64_t bits);

/* "==", "!=", ">", ">=", "<", "<=" as SHMEM_CMP_*. ValueError. */
bool pyweft_argument_cmp(const char *call, PyObject *object, int *cmp);

#endif
