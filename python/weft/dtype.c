/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of element types. */
#include "dtype.h"
#include <stdio.h>
#include <string.h>
#include "dlpack.h"

/* clang-format off */
static const struct pyweft_dtype_row rows[] = {
    {"float32",       4, DLPACK_FLOAT,   "f",  "<f4",  WEFT_F32},
    {"float64",       8, DLPACK_FLOAT,   "d",  "<f8",  WEFT_F64},
    {"float16",       2, DLPACK_FLOAT,   "e",  "<f2",  WEFT_F16},
    {"bfloat16",      2, DLPACK_BFLOAT,  NULL, NULL,   WEFT_BF16},
    {"float8_e4m3fn", 1, DLPACK_E4M3FN,  NULL, NULL,   WEFT_F8E4M3},
    {"float8_e5m2",   1, DLPACK_E5M2,    NULL, NULL,   WEFT_F8E5M2},
    {"uint8",         1, DLPACK_UINT,    "B",  "|u1",  WEFT_U8},
    {"int8",          1, DLPACK_INT,     "b",  "|i1",  WEFT_I8},
    {"uint16",        2, DLPACK_UINT,    "H",  "<u2",  WEFT_U16},
    {"int16",         2, DLPACK_INT,     "h",  "<i2",  WEFT_I16},
    {"uint32",        4, DLPACK_UINT,    "I",  "<u4",  WEFT_U32},
    {"int32",         4, DLPACK_INT,     "i",  "<i4",  WEFT_I32},
    {"uint64",        8, DLPACK_UINT,    "Q",  "<u8",  WEFT_U64},
    {"int64",         8, DLPACK_INT,     "q",  "<i8",  WEFT_I64},
    {"bool",          1, DLPACK_BOOL,    "?",  "|b1",  WEFT_BOOL},
    {"complex64",     8, DLPACK_COMPLEX, "Zf", "<c8",  WEFT_C64},
    {"complex128",   16, DLPACK_COMPLEX, "Zd", "<c16", WEFT_C128},
};
/* clang-format on */
#define EACH(ROW) \
    for (const struct pyweft_dtype_row *ROW = rows; ROW < rows + sizeof rows / sizeof *rows; ROW++)

/* Accepts "torch.float32" for float32, and Python's own types in numpy's widths. */
static const struct pyweft_dtype_row *find(const char *name) {
    if (strncmp(name, "torch.", 6) == 0)
        name += 6;
    if (strcmp(name, "float") == 0)
        name = "float64";
    else if (strcmp(name, "int") == 0)
        name = "int64";
    else if (strcmp(name, "complex") == 0)
        name = "complex128";
    EACH(row)
    if (strcmp(row->name, name) == 0)
        return row;
    return NULL;
}

/* Returns the name of a type, a new reference. */
static PyObject *name_of(PyObject *object) {
    static const char *const attributes[] = {"name", "__name__"};
    if (PyUnicode_Check(object))
        return Py_NewRef(object);
    for (int i = 0; i < 2; i++) {
        PyObject *name = PyObject_GetAttrString(object, attributes[i]);
        if (name && PyUnicode_Check(name))
            return name;
        Py_XDECREF(name);
        PyErr_Clear();
    }
    return PyObject_Str(object);
}

const struct pyweft_dtype_row *pyweft_dtype_find(const char *call, PyObject *object) {
    PyObject *name = name_of(object);
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    const struct pyweft_dtype_row *row = text ? find(text) : NULL;
    if (!row && !PyErr_Occurred()) {
        char known[320] = "";
        EACH(each)
        snprintf(known + strlen(known), sizeof known - strlen(known), " %s", each->name);
        PyErr_Format(PyExc_ValueError, "%s: argument dtype is %R: pass one of%s", call, object,
                     known);
    }
    Py_XDECREF(name);
    return row;
}

const struct pyweft_dtype_row *pyweft_dtype_of_dlpack(unsigned code, unsigned bits) {
    EACH(row)
    if (row->dlpack == code && row->bytes * 8 == bits)
        return row;
    return NULL;
}

/* 'l' and 'L' have the platform's width; "c" and NULL mean bytes. */
const struct pyweft_dtype_row *pyweft_dtype_of_format(const char *format, size_t bytes) {
    const char *wide = bytes == 8 ? "qQ" : "iI";
    char plain[3] = {'B', '\0', '\0'};
    if (format && (*format == '@' || *format == '=' || *format == '<'))
        format++;
    if (format && strlen(format) > 2)
        return NULL;
    if (format && strcmp(format, "c") != 0)
        strcpy(plain, format);
    if (strcmp(plain, "l") == 0)
        plain[0] = wide[0];
    else if (strcmp(plain, "L") == 0)
        plain[0] = wide[1];
    EACH(row)
    if (row->format && strcmp(row->format, plain) == 0 && row->bytes == bytes)
        return row;
    return NULL;
}

const struct pyweft_dtype_row *pyweft_dtype_of_typestr(const char *typestr) {
    EACH(row)
    if (row->typestr && strcmp(row->typestr, typestr) == 0)
        return row;
    return NULL;
}
