/* SPDX-License-Identifier: BSD-3-Clause */
/* An array argument, from any library: its address, element type and shape.
 *
 * An object is tried in this order: weft.Buffer; the buffer protocol (numpy, bytes, memoryview,
 * array); DLPack (torch, and numpy types that the buffer protocol lacks); __cuda_array_interface__
 * (cupy, numba). The memory stays alive until pyweft_array_drop. */
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
    size_t rows, cols, ld; /* of a matrix as in weft.h; ld is 0 for any other array */
    bool transposed;       /* its columns are contiguous, and its rows are not */
    bool contiguous, readonly;
    bool uneven; /* a stride is not a whole number of elements */
    int device;  /* CUDA device number, or -1 for host memory */

    enum pyweft_array_holder holder;
    union {
        struct pyweft_memory *memory;
        Py_buffer protocol;
        PyObject *object;
    } held;

    int64_t shape[PYWEFT_DIMS_MAX],
        strides[PYWEFT_DIMS_MAX]; /* in elements; of the first PYWEFT_DIMS_MAX dimensions */
};

/* Whether the call reads or writes the array. */
enum pyweft_array_use { PYWEFT_ARRAY_READ, PYWEFT_ARRAY_WRITTEN };

/* Takes an array with contiguous elements. If it lies on a GPU, `stream` waits for its producer's
 * work. Returns false with TypeError if the object is not an array, ValueError if the call cannot
 * use it, or RuntimeError if it is a Buffer that was made before finalize() or by the parent of
 * this process. */
bool pyweft_array_take(struct pyweft_array *array, const char *call, const char *name,
                       PyObject *object, enum pyweft_array_use use, weft_stream stream);

/* As pyweft_array_take, of elements of the type with this name. */
bool pyweft_array_take_typed(struct pyweft_array *array, const char *call, const char *name,
                             PyObject *object, enum pyweft_array_use use, weft_stream stream,
                             const char *dtype);

/* Takes an array with any strides that are whole numbers of elements, to be read by the calling
 * thread. */
bool pyweft_array_take_strided(struct pyweft_array *array, const char *call, const char *name,
                               PyObject *object);

/* Returns whether the object offers its memory in one of these ways. */
bool pyweft_array_is(PyObject *object);

/* Takes a matrix: two dimensions, with contiguous rows that do not overlap or, if the call reads
 * it, such columns. */
bool pyweft_array_take_matrix(struct pyweft_array *array, const char *call, const char *name,
                              PyObject *object, enum pyweft_array_use use, weft_stream stream);

/* Releases the array, and keeps an exception that is set. Does nothing to an array that is all
 * zeros. */
void pyweft_array_drop(struct pyweft_array *array);

/* These check that `array` has the expected type, or number of elements; they return false with a
 * ValueError that says what was given and what was expected. */
bool pyweft_array_check_dtype(const char *call, const char *name, const struct pyweft_array *array,
                              const char *other_name, const struct pyweft_array *other);
bool pyweft_array_check_nelems(const char *call, const char *name, const struct pyweft_array *array,
                               size_t expected, const char *because);

/* Checks that the array is symmetric memory, on this PE and on `pe`. Returns false with ValueError
 * if not. */
bool pyweft_array_check_symmetric(const char *call, const char *name,
                                  const struct pyweft_array *array, int pe);

#endif
