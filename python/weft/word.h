/* SPDX-License-Identifier: BSD-3-Clause */
/* Words: elements of 32 or 64 bits that atomics change, and that waits and tests look at. */
#ifndef WEFT_PYTHON_WORD_H
#define WEFT_PYTHON_WORD_H

#include "array.h"

/* int32, int64, uint32, uint64; and those, float32 and float64. */
enum weft_word_types { WEFT_WORD_WHOLE, WEFT_WORD_ANY };

/* Aligned elements of such a type. ValueError. */
bool weft_words_take(struct weft_array *words, const char *call, const char *name, PyObject *object,
                     enum weft_word_types types, enum weft_array_use use);

/* The number of one of the elements; 0 without `index`. ValueError. */
bool weft_words_index(const struct weft_array *words, const char *call, const char *name,
                      PyObject *index, size_t *at);

/* A signal: one aligned uint64 of symmetric memory. ValueError. */
bool weft_signal_take(struct weft_array *word, const char *call, PyObject *object, int pe,
                      weft_stream stream);

/* A number as the bits of a word, and back. TypeError, ValueError for one that the type has not. */
bool weft_word_bits(const char *call, const char *name, const struct weft_dtype_row *dtype,
                    PyObject *object, uint64_t *bits);
PyObject *weft_word_number(const struct weft_dtype_row *dtype, uint64_t bits);

/* "==", "!=", ">", ">=", "<", "<=" as SHMEM_CMP_*. ValueError. */
bool weft_argument_cmp(const char *call, PyObject *object, int *cmp);

#endif
