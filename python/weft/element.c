/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversion of elements. Not every processor reads floats of 8 and 16 bits, so integer arithmetic
 * takes them apart, by a table of their layouts. */
#include "element.h"
#include <math.h>
#include <string.h>
#include "dlpack.h"

enum number_kind { WHOLE, REAL, COMPLEX };

static enum number_kind kind_of(const struct pyweft_dtype_row *dtype) {
    switch (dtype->dlpack) {
    case DLPACK_INT:
    case DLPACK_UINT:
    case DLPACK_BOOL:
        return WHOLE;
    case DLPACK_COMPLEX:
        return COMPLEX;
    default:
        return REAL;
    }
}

/* --- Floats of 8 and 16 bits ----------------------------------------------------------------- */

struct float_layout {
    int exponent_bits, mantissa_bits;
    bool finite; /* no infinities, and one NaN: all ones */
};

static struct float_layout layout_of(const struct pyweft_dtype_row *dtype) {
    switch (dtype->dlpack) {
    case DLPACK_BFLOAT:
        return (struct float_layout){8, 7, false};
    case DLPACK_E4M3FN:
        return (struct float_layout){4, 3, true};
    case DLPACK_E5M2:
        return (struct float_layout){5, 2, false};
    default:
        return (struct float_layout){5, 10, false};
    }
}

static double unpack(struct float_layout layout, unsigned bits) {
    unsigned ones = (1u << layout.exponent_bits) - 1, hidden = 1u << layout.mantissa_bits;
    unsigned exponent = bits >> layout.mantissa_bits & ones, mantissa = bits & (hidden - 1);
    bool negative = bits >> (layout.exponent_bits + layout.mantissa_bits) & 1;
    int bias = (int)(ones >> 1);
    double value;
    if (exponent == ones && (!layout.finite || mantissa == hidden - 1))
        value = mantissa ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexp(mantissa, 1 - bias - layout.mantissa_bits);
    else
        value = ldexp(hidden | mantissa, (int)exponent - bias - layout.mantissa_bits);
    return negative ? -value : value;
}

static uint64_t round_to_even(double value) {
    uint64_t whole = (uint64_t)value;
    double rest = value - (double)whole;
    return whole + (rest > 0.5 || (rest == 0.5 && whole % 2 == 1));
}

/* The exponent is next to the mantissa, so a mantissa that is rounded up to a power of two carries
 * into the exponent. */
static unsigned pack(struct float_layout layout, double value) {
    unsigned ones = (1u << layout.exponent_bits) - 1, hidden = 1u << layout.mantissa_bits;
    unsigned sign = (unsigned)(signbit(value) != 0)
                    << (layout.exponent_bits + layout.mantissa_bits);
    unsigned infinity = ones << layout.mantissa_bits, largest = infinity - 1;
    unsigned nan = layout.finite ? infinity | (hidden - 1) : infinity | hidden >> 1;
    int bias = (int)(ones >> 1), exponent;
    if (layout.finite)
        largest = nan - 1;
    if (isnan(value))
        return sign | nan;
    if (isinf(value))
        return sign | (layout.finite ? nan : infinity);
    if (value == 0)
        return sign;
    (void)frexp(value, &exponent);
    int place = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1; /* of the leading bit */
    uint64_t mantissa = round_to_even(ldexp(fabs(value), layout.mantissa_bits - place));
    uint64_t bits = ((uint64_t)(place + bias - 1) << layout.mantissa_bits) + mantissa;
    return sign | (bits > largest ? (layout.finite ? nan : infinity) : (unsigned)bits);
}

/* --- Numbers --------------------------------------------------------------------------------- */

typedef __int128 whole; /* holds every signed and unsigned 64-bit integer */

struct element_number {
    enum number_kind kind;
    whole whole;
    double real, imaginary;
};

void pyweft_element_copy(char *to, const char *from, size_t bytes) {
#define WHOLE_COPY(TYPE)                                                                \
    __atomic_store_n((TYPE *)to, __atomic_load_n((const TYPE *)from, __ATOMIC_RELAXED), \
                     __ATOMIC_RELAXED)
    switch (bytes) {
    case 1:
        WHOLE_COPY(uint8_t);
        break;
    case 2:
        WHOLE_COPY(uint16_t);
        break;
    case 4:
        WHOLE_COPY(uint32_t);
        break;
    default:
        for (size_t i = 0; i < bytes; i += 8, to += 8, from += 8)
            WHOLE_COPY(uint64_t);
    }
#undef WHOLE_COPY
}

static whole read_whole(const struct pyweft_dtype_row *dtype, const char *at) {
    uint64_t bits = 0;
    memcpy(&bits, at, dtype->bytes);
    if (dtype->dlpack == DLPACK_BOOL)
        return bits != 0;
    int unused = 64 - 8 * (int)dtype->bytes;
    return dtype->dlpack == DLPACK_INT ? (whole)((int64_t)(bits << unused) >> unused) : (whole)bits;
}

static double read_real(const struct pyweft_dtype_row *dtype, size_t bytes, const char *at) {
    float single;
    double value;
    unsigned bits = 0;
    if (bytes == sizeof value) {
        memcpy(&value, at, sizeof value);
        return value;
    }
    if (bytes == sizeof single) {
        memcpy(&single, at, sizeof single);
        return (double)single;
    }
    memcpy(&bits, at, bytes);
    return unpack(layout_of(dtype), bits);
}

static void write_real(const struct pyweft_dtype_row *dtype, size_t bytes, double value, char *to) {
    float single = (float)value;
    if (bytes == sizeof value)
        memcpy(to, &value, sizeof value);
    else if (bytes == sizeof single)
        memcpy(to, &single, sizeof single);
    else {
        unsigned bits = pack(layout_of(dtype), value);
        memcpy(to, &bits, bytes);
    }
}

static struct element_number read_number(const struct pyweft_dtype_row *dtype, const char *at) {
    struct element_number number = {.kind = kind_of(dtype)};
    size_t half = dtype->bytes / 2;
    if (number.kind == WHOLE) {
        number.whole = read_whole(dtype, at);
        number.real = (double)number.whole;
    } else if (number.kind == REAL)
        number.real = read_real(dtype, dtype->bytes, at);
    else {
        number.real = read_real(dtype, half, at);
        number.imaginary = read_real(dtype, half, at + half);
    }
    return number;
}

static bool write_whole(const char *call, const struct pyweft_dtype_row *dtype, whole value,
                        char *to) {
    int bits = dtype->dlpack == DLPACK_BOOL ? 1 : 8 * (int)dtype->bytes;
    whole end = (whole)1 << (dtype->dlpack == DLPACK_INT ? bits - 1 : bits);
    whole first = dtype->dlpack == DLPACK_INT ? -end : 0;
    if (value < first || value >= end) {
        PyErr_Format(PyExc_OverflowError, "%s: a number is out of range: %lld to %llu for %s", call,
                     (long long)first, (unsigned long long)(end - 1), dtype->name);
        return false;
    }
    uint64_t word = (uint64_t)value;
    memcpy(to, &word, dtype->bytes);
    return true;
}

/* The kinds must fit. */
static bool write_number(const char *call, const struct pyweft_dtype_row *dtype,
                         const struct element_number *number, char *to) {
    size_t half = dtype->bytes / 2;
    switch (kind_of(dtype)) {
    case WHOLE:
        return write_whole(call, dtype, number->whole, to);
    case REAL:
        write_real(dtype, dtype->bytes, number->real, to);
        return true;
    default:
        write_real(dtype, half, number->real, to);
        write_real(dtype, half, number->imaginary, to + half);
        return true;
    }
}

bool pyweft_element_check_kinds(const struct pyweft_dtype_row *to,
                                const struct pyweft_dtype_row *from) {
    if (kind_of(from) <= kind_of(to))
        return true;
    PyErr_Format(
        PyExc_TypeError,
        "Buffer: elements of %s cannot be stored as %s: convert them first, as numpy's astype does",
        from->name, to->name);
    return false;
}

bool pyweft_element_convert(const struct pyweft_dtype_row *to_dtype, char *to,
                            const struct pyweft_dtype_row *from_dtype, const char *from) {
    struct element_number number = read_number(from_dtype, from);
    return write_number("Buffer", to_dtype, &number, to);
}

/* --- Python's numbers ------------------------------------------------------------------------ */

PyObject *pyweft_element_read(const struct pyweft_dtype_row *dtype, const char *at) {
    _Alignas(16) char element[PYWEFT_ELEMENT_BYTES_MAX];
    pyweft_element_copy(element, at, dtype->bytes);
    struct element_number number = read_number(dtype, element);
    if (dtype->dlpack == DLPACK_BOOL)
        return PyBool_FromLong(number.whole != 0);
    if (number.kind == WHOLE)
        return number.whole < 0 ? PyLong_FromLongLong((long long)number.whole)
                                : PyLong_FromUnsignedLongLong((unsigned long long)number.whole);
    return number.kind == REAL ? PyFloat_FromDouble(number.real)
                               : PyComplex_FromDoubles(number.real, number.imaginary);
}

static bool refuse(const char *call, const struct pyweft_dtype_row *dtype, PyObject *object) {
    static const char *const wanted[] = {"a whole number", "a real number", "a number"};
    if (PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%s: %R cannot be stored as %s: pass %s", call, object,
                     dtype->name, wanted[kind_of(dtype)]);
    }
    return false;
}

static bool take_whole(PyObject *object, whole *value) {
    PyObject *index = PyNumber_Index(object);
    int overflow = 0;
    if (!index)
        return false;
    *value = PyLong_AsLongLongAndOverflow(index, &overflow);
    if (overflow > 0)
        *value = PyLong_AsUnsignedLongLong(index);
    if (overflow < 0 || PyErr_Occurred()) {
        PyErr_Clear();
        *value = (whole)1 << 100; /* outside every range */
    }
    Py_DECREF(index);
    return true;
}

/* Converts with Python's type complex, which calls the object's __complex__; strings, which it
 * would parse, are refused. */
static bool take_complex(PyObject *object, struct element_number *number) {
    bool text = PyUnicode_Check(object);
    PyObject *found =
        text ? NULL : PyObject_CallFunctionObjArgs((PyObject *)&PyComplex_Type, object, NULL);
    if (text)
        PyErr_SetString(PyExc_TypeError, "a text");
    if (!found)
        return false;
    number->real = PyComplex_RealAsDouble(found);
    number->imaginary = PyComplex_ImagAsDouble(found);
    Py_DECREF(found);
    return true;
}

/* Recognises Python's complex numbers, and numpy's that are not derived from them: converted to
 * float they would lose their imaginary part. */
static bool is_complex(PyObject *object) {
    Py_buffer view;
    if (PyFloat_Check(object) || PyLong_Check(object) || !PyObject_CheckBuffer(object))
        return PyComplex_Check(object);
    if (PyObject_GetBuffer(object, &view, PyBUF_RECORDS_RO) < 0) {
        PyErr_Clear();
        return PyComplex_Check(object);
    }
    bool found = view.format && strchr(view.format, 'Z');
    PyBuffer_Release(&view);
    return found;
}

static bool take_real(PyObject *object, double *value) {
    if (is_complex(object)) {
        PyErr_SetString(PyExc_TypeError, "a complex number");
        return false;
    }
    *value = PyFloat_AsDouble(object);
    return !PyErr_Occurred();
}

bool pyweft_element_make(const char *call, const struct pyweft_dtype_row *dtype, PyObject *object,
                         char *to) {
    struct element_number number = {.kind = kind_of(dtype)};
    bool taken;
    if (number.kind == WHOLE)
        taken = take_whole(object, &number.whole);
    else if (number.kind == COMPLEX)
        taken = take_complex(object, &number);
    else
        taken = take_real(object, &number.real);
    return taken ? write_number(call, dtype, &number, to) : refuse(call, dtype, object);
}

/* --- Text ------------------------------------------------------------------------------------ */

/* Returns the double with the fewest digits that converts back to this element. An integer is kept
 * as it is: 448 would be shown as 450 in a type whose neighbours are 416 and nothing. */
static double shorten(const struct pyweft_dtype_row *dtype, size_t bytes, const char *at) {
    double value = read_real(dtype, bytes, at), shorter = value;
    if (fabs(value) < 0x1p53 && (double)(int64_t)value == value)
        return value;
    char again[8] = "";
    for (int digits = 1; digits < 17 && isfinite(value); digits++) {
        char *text = PyOS_double_to_string(value, 'e', digits - 1, 0, NULL);
        if (!text)
            break;
        shorter = PyOS_string_to_double(text, NULL, NULL);
        PyMem_Free(text);
        write_real(dtype, bytes, shorter, again);
        if (memcmp(again, at, bytes) == 0)
            return shorter;
    }
    return value;
}

static PyObject *real_text(const struct pyweft_dtype_row *dtype, size_t bytes, const char *at) {
    char *text = PyOS_double_to_string(shorten(dtype, bytes, at), 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
    PyObject *found = text ? PyUnicode_FromString(text) : PyErr_NoMemory();
    PyMem_Free(text);
    return found;
}

PyObject *pyweft_element_text(const struct pyweft_dtype_row *dtype, const char *at) {
    size_t half = dtype->bytes / 2;
    if (kind_of(dtype) == REAL)
        return real_text(dtype, dtype->bytes, at);
    if (kind_of(dtype) == WHOLE) {
        PyObject *number = pyweft_element_read(dtype, at),
                 *text = number ? PyObject_Str(number) : NULL;
        Py_XDECREF(number);
        return text;
    }
    PyObject *real = real_text(dtype, half, at), *imaginary = real_text(dtype, half, at + half);
    PyObject *text =
        real && imaginary
            ? PyUnicode_FromFormat("%U%s%Uj", real,
                                   signbit(read_real(dtype, half, at + half)) ? "" : "+", imaginary)
            : NULL;
    Py_XDECREF(real);
    Py_XDECREF(imaginary);
    return text;
}
