/* SPDX-License-Identifier: BSD-3-Clause */
/* An argument that is an array, of whichever library: where it lies, of which type and shape.
 *
 * Asked in this order: a Buffer of ours; the buffer protocol (numpy, bytes, memoryview, array);
 * DLPack (torch, and numpy for what the buffer protocol cannot say); __cuda_array_interface__
 * (cupy, numba). What is shown stays alive until weft_array_drop. */
#ifndef WEFT_PYTHON_ARRAY_H
#define WEFT_PYTHON_ARRAY_H

#include "dtype.h"
#include "part.h"

enum weft_array_holder {
    WEFT_HELD_BY_NONE,
    WEFT_HELD_BY_MEMORY,
    WEFT_HELD_BY_PROTOCOL,
    WEFT_HELD_BY_OBJECT,
};

struct weft_array {
    char *data;
    const struct weft_dtype_row *dtype;
    int ndim;
    size_t nelems, bytes;
    size_t rows, cols, ld; /* of a matrix whose rows lie whole in memory; ld is 0 for others */
    bool contiguous, readonly;
    bool uneven; /* elements lie a broken number of elements apart */
    int device;  /* CUDA's number, or -1 for memory of the host */

    enum weft_array_holder holder;
    union {
        struct weft_memory *memory;
        Py_buffer protocol;
        PyObject *object;
    } held;

    int64_t shape[WEFT_DIMS_MAX], strides[WEFT_DIMS_MAX]; /* in elements; of the first dimensions */
};

/* How an argument is used. */
enum weft_array_use { WEFT_ARRAY_READ, WEFT_ARRAY_WRITTEN };

/* Contiguous elements. `stream` is what a producer on a GPU has to be ordered before. TypeError for
 * an object that is no array, ValueError for one that does not fit. */
bool weft_array_take(struct weft_array *array, const char *call, const char *name, PyObject *object,
                     enum weft_array_use use, weft_stream stream);

/* Elements any distance apart, that is a whole number of elements, read by the calling thread. */
bool weft_array_take_strided(struct weft_array *array, const char *call, const char *name,
                             PyObject *object);

/* Whether the object shows memory in one of these ways. */
bool weft_array_is(PyObject *object);

/* Two dimensions, rows contiguous and each behind the one before. */
bool weft_array_take_matrix(struct weft_array *array, const char *call, const char *name,
                            PyObject *object, enum weft_array_use use, weft_stream stream);

/* Keeps an exception that is set. An array of zeros is one that holds nothing. */
void weft_array_drop(struct weft_array *array);

/* `array` has the elements' type and number: ValueError with got and expected. */
bool weft_array_check_dtype(const char *call, const char *name, const struct weft_array *array,
                            const char *other_name, const struct weft_array *other);
bool weft_array_check_nelems(const char *call, const char *name, const struct weft_array *array,
                             size_t expected, const char *because);

/* Symmetric memory, here and on `pe`: ValueError. */
bool weft_array_check_symmetric(const char *call, const char *name, const struct weft_array *array,
                                int pe);

#endif
