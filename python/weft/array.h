/* SPDX-License-Identifier: BSD-3-Clause */
/* An argument that is an array, of whichever library: where it lies, of which type and shape.
 *
 * Asked in this order: a Buffer of ours; the buffer protocol (numpy, bytes, memoryview, array);
 * DLPack (torch, and numpy for what the buffer protocol cannot say); __cuda_array_interface__
 * (cupy, numba). What is shown stays alive until pyweft_array_drop. */
#ifndef PYWEFT_ARRAY_H
#define PYWEFT_ARRAY_H

#include "dtype.h"
#include "part.h"

enum pyweft_array_holder {
    PYWEFT_HELD_BY_NONE,
    PYWEFT_HELD_BY_MEMORY,
    PYWEFT_HELD_BY_PROTOCOL,
    PYWEFT_HELD_BY_OBJECT,
};

struct pyweft_array {
    char *data;
    const struct pyweft_dtype_row *dtype;
    int ndim;
    size_t nelems, bytes;
    size_t rows, cols, ld; /* of a matrix whose rows lie whole in memory; ld is 0 for others */
    bool contiguous, readonly;
    bool uneven; /* elements lie a broken number of elements apart */
    int device;  /* CUDA's number, or -1 for memory of the host */

    enum pyweft_array_holder holder;
    union {
        struct pyweft_memory *memory;
        Py_buffer protocol;
        PyObject *object;
    } held;

    int64_t shape[PYWEFT_DIMS_MAX],
        strides[PYWEFT_DIMS_MAX]; /* in elements; of the first dimensions */
};

/* How an argument is used. */
enum pyweft_array_use { PYWEFT_ARRAY_READ, PYWEFT_ARRAY_WRITTEN };

/* Contiguous elements. `stream` is what a producer on a GPU has to be ordered before. TypeError for
 * an object that is no array, ValueError for one that does not fit. */
bool pyweft_array_take(struct pyweft_array *array, const char *call, const char *name,
                       PyObject *object, enum pyweft_array_use use, weft_stream stream);

/* Elements any distance apart, that is a whole number of elements, read by the calling thread. */
bool pyweft_array_take_strided(struct pyweft_array *array, const char *call, const char *name,
                               PyObject *object);

/* Whether the object shows memory in one of these ways. */
bool pyweft_array_is(PyObject *object);

/* Two dimensions, rows contiguous and each behind the one before. */
bool pyweft_array_take_matrix(struct pyweft_array *array, const char *call, const char *name,
                              PyObject *object, enum pyweft_array_use use, weft_stream stream);

/* Keeps an exception that is set. An array of zeros is one that holds nothing. */
void pyweft_array_drop(struct pyweft_array *array);

/* `array` has the elements' type and number: ValueError with got and expected. */
bool pyweft_array_check_dtype(const char *call, const char *name, const struct pyweft_array *array,
                              const char *other_name, const struct pyweft_array *other);
bool pyweft_array_check_nelems(const char *call, const char *name, const struct pyweft_array *array,
                               size_t expected, const char *because);

/* Symmetric memory, here and on `pe`: ValueError. */
bool pyweft_array_check_symmetric(const char *call, const char *name,
                                  const struct pyweft_array *array, int pe);

#endif
