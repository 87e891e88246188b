/* SPDX-License-Identifier: BSD-3-Clause */
/* Words as arguments and results. */
#include "word.h"
#include <string.h>
#include "argument.h"
#include "dlpack.h"

static bool is_whole(const struct pyweft_dtype_row *dtype) {
    return dtype->dlpack == DLPACK_INT || dtype->dlpack == DLPACK_UINT;
}

static bool has_type(const struct pyweft_dtype_row *dtype, enum pyweft_word_types types) {
    return (dtype->bytes == 4 || dtype->bytes == 8) &&
           (is_whole(dtype) || (types == PYWEFT_WORD_ANY && dtype->dlpack == DLPACK_FLOAT));
}

bool pyweft_words_take(struct pyweft_array *words, const char *call, const char *name,
                       PyObject *object, enum pyweft_word_types types, enum pyweft_array_use use) {
    if (!pyweft_array_take(words, call, name, object, use, WEFT_STREAM_HOST))
        return false;
    if (has_type(words->dtype, types) && (uintptr_t)words->data % words->dtype->bytes == 0)
        return true;
    PyErr_Format(
        PyExc_ValueError,
        "%s: argument %s is of %s: pass aligned elements of int32, int64, uint32%s uint64%s", call,
        name, words->dtype->name, types == PYWEFT_WORD_ANY ? "," : " or",
        types == PYWEFT_WORD_ANY ? ", float32 or float64" : "");
    return false;
}

bool pyweft_words_index(const struct pyweft_array *words, const char *call, const char *name,
                        PyObject *index, size_t *at) {
    *at = 0;
    if (!pyweft_argument_size(call, "index", index, at))
        return false;
    if (*at < words->nelems)
        return true;
    PyErr_Format(PyExc_ValueError, "%s: argument index is %zu: %s has %zu elements", call, *at,
                 name, words->nelems);
    return false;
}

bool pyweft_signal_take(struct pyweft_array *word, const char *call, PyObject *object, int pe,
                        weft_stream stream) {
    if (!pyweft_array_take(word, call, "signal", object, PYWEFT_ARRAY_WRITTEN, stream))
        return false;
    if (strcmp(word->dtype->name, "uint64") != 0 || word->nelems != 1 ||
        (uintptr_t)word->data % sizeof(uint64_t) != 0) {
        PyErr_Format(PyExc_ValueError,
                     "%s: argument signal has %zu elements of %s: pass one element of uint64, such "
                     "as weft.zeros(1, 'uint64') or a view(1, offset=8 * i) of more",
                     call, word->nelems, word->dtype->name);
        return false;
    }
    return pyweft_array_check_symmetric(call, "signal", word, pe);
}

/* --- Numbers --------------------------------------------------------------------------------- */

static bool is_out_of_range(const char *call, const char *name,
                            const struct pyweft_dtype_row *dtype, PyObject *object) {
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "%s: argument %s is %R: out of the range of %s", call, name,
                 object, dtype->name);
    return false;
}

static bool unsigned_bits(PyObject *index, size_t bytes, uint64_t *bits) {
    *bits = PyLong_AsUnsignedLongLong(index);
    return !PyErr_Occurred() && (bytes == 8 || *bits <= UINT32_MAX);
}

static bool signed_bits(PyObject *index, size_t bytes, uint64_t *bits) {
    int overflow;
    int64_t value = PyLong_AsLongLongAndOverflow(index, &overflow);
    *bits = bytes == 8 ? (uint64_t)value : (uint32_t)value;
    return !overflow && !PyErr_Occurred() && (bytes == 8 || value == (int32_t)value);
}

static bool real_bits(const char *call, const char *name, const struct pyweft_dtype_row *dtype,
                      PyObject *object, uint64_t *bits) {
    double value = PyFloat_AsDouble(object);
    float single = (float)value;
    if (PyErr_Occurred()) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%s: argument %s is %R: pass a number", call, name, object);
        return false;
    }
    *bits = 0;
    memcpy(bits, dtype->bytes == 8 ? (void *)&value : (void *)&single, dtype->bytes);
    return true;
}

bool pyweft_word_bits(const char *call, const char *name, const struct pyweft_dtype_row *dtype,
                      PyObject *object, uint64_t *bits) {
    if (!is_whole(dtype))
        return real_bits(call, name, dtype, object, bits);
    PyObject *index = PyNumber_Index(object);
    if (!index) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%s: argument %s is %R: pass a whole number", call, name,
                     object);
        return false;
    }
    bool fits =
        (dtype->dlpack == DLPACK_INT ? signed_bits : unsigned_bits)(index, dtype->bytes, bits);
    Py_DECREF(index);
    return fits || is_out_of_range(call, name, dtype, object);
}

PyObject *pyweft_word_number(const struct pyweft_dtype_row *dtype, uint64_t bits) {
    float single;
    double value;
    if (dtype->dlpack == DLPACK_UINT)
        return PyLong_FromUnsignedLongLong(bits);
    if (dtype->dlpack == DLPACK_INT)
        return PyLong_FromLongLong(dtype->bytes == 8 ? (int64_t)bits : (int32_t)bits);
    memcpy(&single, &bits, sizeof single);
    memcpy(&value, &bits, sizeof value);
    return PyFloat_FromDouble(dtype->bytes == 8 ? value : (double)single);
}

bool pyweft_argument_cmp(const char *call, PyObject *object, int *cmp) {
    static const char *const comparisons[] = {"==", "!=", ">", ">=", "<", "<=", NULL};
    int choice = 0;
    if (!pyweft_argument_choice(call, "cmp", object, comparisons, &choice))
        return false;
    *cmp = SHMEM_CMP_EQ + choice;
    return true;
}
