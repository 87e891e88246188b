/* SPDX-License-Identifier: BSD-3-Clause */
/* Indexing and assigning elements of a Buffer, and its values as lists and text. A slice is a view,
 * an element a Python number. */
#include <string.h>
#include "argument.h"
#include "buffer.h"
#include "element.h"
#include "copy.h"
#include "session.h"
#include "value.h"

static bool check(const struct pyweft_buffer *buffer) {
    return pyweft_memory_check(buffer->memory, "Buffer", "this Buffer");
}

/* Reading a key or a value may run Python code, which may free this Buffer. begin() keeps its
 * memory until end(). */
static bool begin(const struct pyweft_buffer *buffer) {
    if (!check(buffer))
        return false;
    pyweft_memory_view(buffer->memory);
    return true;
}

static void end(const struct pyweft_buffer *buffer) {
    pyweft_memory_unview(buffer->memory);
}

/* --- Reading --------------------------------------------------------------------------------- */

static PyObject *read_element(const struct pyweft_buffer *buffer, const struct pyweft_part *part) {
    _Alignas(16) char element[PYWEFT_ELEMENT_BYTES_MAX];
    if (buffer->memory->space == SHMEMX_SPACE_HOST)
        return pyweft_element_read(buffer->dtype, part->data);
    const struct pyweft_part here = {.data = element, .nelems = 1, .itemsize = part->itemsize};
    return pyweft_copy(buffer, part, &here, PYWEFT_FROM_BUFFER)
               ? pyweft_element_read(buffer->dtype, element)
               : NULL;
}

PyObject *pyweft_buffer_subscript(PyObject *self, PyObject *key) {
    const struct pyweft_buffer *buffer = (struct pyweft_buffer *)self;
    struct pyweft_part part;
    PyObject *found = NULL;
    bool one;
    if (!begin(buffer))
        return NULL;
    if (pyweft_part_find(&buffer->part, key, &part, &one))
        found = one ? read_element(buffer, &part) : pyweft_buffer_make_part(buffer, &part);
    end(buffer);
    return found;
}

PyObject *pyweft_buffer_item(PyObject *self, Py_ssize_t at) {
    const struct pyweft_buffer *buffer = (struct pyweft_buffer *)self;
    struct pyweft_part part;
    PyObject *found = NULL;
    if (!begin(buffer))
        return NULL;
    if (at < 0 || buffer->part.ndim == 0 || at >= buffer->part.shape[0])
        PyErr_Format(PyExc_IndexError, "Buffer: index %zd is out of range", at);
    else if (pyweft_part_entry(&buffer->part, at, &part))
        found =
            part.ndim == 0 ? read_element(buffer, &part) : pyweft_buffer_make_part(buffer, &part);
    end(buffer);
    return found;
}

PyObject *pyweft_buffer_iterate(PyObject *self) {
    if (((struct pyweft_buffer *)self)->part.ndim > 0)
        return PySeqIter_New(self);
    PyErr_SetString(PyExc_TypeError, "a Buffer without dimensions has no entries: use b[()]");
    return NULL;
}

/* For memory that this process reads directly. */
static PyObject *list(const struct pyweft_dtype_row *dtype, const struct pyweft_part *part, int dim,
                      const char *at) {
    if (dim == part->ndim)
        return pyweft_element_read(dtype, at);
    PyObject *entries = PyList_New((Py_ssize_t)part->shape[dim]);
    for (int64_t i = 0; entries && i < part->shape[dim]; i++) {
        PyObject *entry = list(dtype, part, dim + 1, at);
        at += part->strides[dim] * (int64_t)part->itemsize;
        if (!entry || PyList_SetItem(entries, (Py_ssize_t)i, entry) < 0)
            Py_CLEAR(entries);
    }
    return entries;
}

PyObject *pyweft_buffer_tolist(PyObject *self, PyObject *unused) {
    struct pyweft_buffer *buffer = (struct pyweft_buffer *)self;
    PyObject *entries = NULL;
    struct pyweft_value fetched;
    (void)unused;
    if (!begin(buffer))
        return NULL;
    if (buffer->memory->space == SHMEMX_SPACE_HOST)
        entries = list(buffer->dtype, &buffer->part, 0, buffer->part.data);
    else {
        if (pyweft_value_fetch(&fetched, buffer))
            entries = list(buffer->dtype, &fetched.part, 0, fetched.part.data);
        pyweft_value_drop(&fetched);
    }
    end(buffer);
    return entries;
}

/* --- Writing --------------------------------------------------------------------------------- */

static bool begin_written(const struct pyweft_buffer *buffer) {
    if (check(buffer) && buffer->memory->readonly)
        PyErr_SetString(PyExc_ValueError, "Buffer: this memory is read-only");
    return !PyErr_Occurred() && begin(buffer);
}

/* Returns whether a single put copies an array in GPU memory, which is contiguous, to its place. */
static bool is_one_put(const struct pyweft_buffer *buffer, const struct pyweft_part *part,
                       const struct pyweft_part *from) {
    bool alike = part->ndim == from->ndim &&
                 memcmp(part->shape, from->shape, (size_t)part->ndim * sizeof *part->shape) == 0;
    return alike && pyweft_part_contiguous(part) && buffer->memory->symmetric &&
           !pyweft_part_overlap(part, from);
}

/* Stores a number in an element in host memory. */
static bool write_element(const struct pyweft_buffer *buffer, char *to, PyObject *number) {
    _Alignas(16) char element[PYWEFT_ELEMENT_BYTES_MAX];
    if (!pyweft_element_make("Buffer", buffer->dtype, number, element))
        return false;
    pyweft_element_copy(to, element, buffer->dtype->bytes);
    return true;
}

static bool write_value(const struct pyweft_buffer *buffer, const struct pyweft_part *part,
                        PyObject *object) {
    struct pyweft_value value;
    if (part->ndim == 0 && buffer->memory->space == SHMEMX_SPACE_HOST &&
        (PyFloat_CheckExact(object) || PyLong_CheckExact(object)))
        return write_element(buffer, part->data, object);
    bool right = pyweft_value_take(&value, buffer->dtype, part, object);
    if (right && value.gpu && is_one_put(buffer, part, &value.part))
        right = pyweft_copy_from_gpu(buffer, part, value.part.data);
    else if (right)
        right = (!value.gpu || pyweft_value_bring(&value, buffer->dtype, object)) &&
                pyweft_value_stretch(&value, part, buffer->shift != 0) &&
                pyweft_copy(buffer, part, &value.part, PYWEFT_TO_BUFFER);
    pyweft_value_drop(&value);
    return right;
}

int pyweft_buffer_assign(PyObject *self, PyObject *key, PyObject *value) {
    const struct pyweft_buffer *buffer = (struct pyweft_buffer *)self;
    struct pyweft_part part;
    bool one;
    if (!value)
        PyErr_SetString(PyExc_TypeError, "Buffer: elements cannot be deleted");
    if (!value || !begin_written(buffer))
        return -1;
    bool right =
        pyweft_part_find(&buffer->part, key, &part, &one) && write_value(buffer, &part, value);
    end(buffer);
    return right ? 0 : -1;
}

PyObject *pyweft_buffer_fill(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *names) {
    static const struct pyweft_signature signature = {"Buffer.fill", 1, 1, {"value"}};
    const struct pyweft_buffer *buffer = (struct pyweft_buffer *)self;
    struct pyweft_part element = {.nelems = 1, .itemsize = buffer->part.itemsize};
    _Alignas(16) char bytes[PYWEFT_ELEMENT_BYTES_MAX];
    PyObject *in[1];
    element.data = bytes;
    if (!begin_written(buffer))
        return NULL;
    bool right = pyweft_arguments_sort(&signature, args, nargs, names, in) &&
                 pyweft_element_make("Buffer", buffer->dtype, in[0], bytes) &&
                 pyweft_part_stretch(&element, &buffer->part) &&
                 pyweft_copy(buffer, &buffer->part, &element, PYWEFT_TO_BUFFER);
    end(buffer);
    return right ? Py_NewRef(Py_None) : NULL;
}

/* --- Text ------------------------------------------------------------------------------------ */

enum { WHOLE_MAX = 64, EDGE = 3, SHOWN_MAX = 1000 }; /* elements */

static PyObject *text_of_element(const struct pyweft_buffer *buffer, const struct pyweft_part *part,
                                 char *at) {
    _Alignas(16) char element[PYWEFT_ELEMENT_BYTES_MAX];
    const struct pyweft_part here = {.data = element, .nelems = 1, .itemsize = part->itemsize};
    const struct pyweft_part there = {.data = at, .nelems = 1, .itemsize = part->itemsize};
    return pyweft_copy(buffer, &there, &here, PYWEFT_FROM_BUFFER)
               ? pyweft_element_text(buffer->dtype, element)
               : NULL;
}

static bool is_cut(const struct pyweft_part *part, int dim) {
    return part->nelems > WHOLE_MAX && part->shape[dim] > 2 * EDGE;
}

/* Appends `more` to *text, and drops the references to both. */
static void append(PyObject **text, PyObject *more) {
    PyObject *joined = *text && more ? PyUnicode_Concat(*text, more) : NULL;
    Py_XDECREF(*text);
    Py_XDECREF(more);
    *text = joined;
}

static PyObject *text_of_part(const struct pyweft_buffer *buffer, const struct pyweft_part *part,
                              int dim, char *at) {
    if (dim == part->ndim)
        return text_of_element(buffer, part, at);
    PyObject *text = PyUnicode_FromString("[");
    for (int64_t i = 0; text && i < part->shape[dim]; i++) {
        if (is_cut(part, dim) && i == EDGE) {
            append(&text, PyUnicode_FromString(", ..."));
            i = part->shape[dim] - EDGE;
        }
        if (i > 0)
            append(&text, PyUnicode_FromString(", "));
        append(&text, text_of_part(buffer, part, dim + 1,
                                   at + i * part->strides[dim] * (int64_t)part->itemsize));
    }
    append(&text, PyUnicode_FromString("]"));
    return text;
}

static size_t count_shown(const struct pyweft_part *part) {
    size_t shown = 1;
    for (int i = 0; i < part->ndim; i++)
        shown *= is_cut(part, i) ? 2 * EDGE : (size_t)part->shape[i];
    return shown;
}

PyObject *pyweft_buffer_text(const struct pyweft_buffer *buffer) {
    if (check(buffer) && !pyweft_session.lost && count_shown(&buffer->part) <= SHOWN_MAX) {
        PyObject *values = text_of_part(buffer, &buffer->part, 0, buffer->part.data);
        if (values)
            return values;
    }
    PyErr_Clear();
    return PyUnicode_FromString("");
}
