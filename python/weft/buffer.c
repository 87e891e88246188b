/* SPDX-License-Identifier: BSD-3-Clause */
/* The type Buffer: making, looking at, freeing. What it shows to other libraries is in export.c. */
#include "buffer.h"
#include <stdlib.h>
#include <string.h>
#include "argument.h"
#include "error.h"
#include "session.h"

static PyTypeObject *buffer_type;

struct weft_buffer *weft_buffer_of(PyObject *object) {
    return Py_IS_TYPE(object, buffer_type) ? (struct weft_buffer *)object : NULL;
}

/* --- Shapes ---------------------------------------------------------------------------------- */

static bool add_dim(const char *call, PyObject *object, struct weft_shape *shape) {
    size_t dim = 0;
    if (!object || !weft_argument_size(call, "shape", object, &dim))
        return false;
    if (shape->ndim == WEFT_BUFFER_DIMS_MAX)
        PyErr_Format(PyExc_ValueError, "%s: argument shape has more than %d dimensions", call,
                     WEFT_BUFFER_DIMS_MAX);
    else if (__builtin_mul_overflow(shape->nelems, dim, &shape->nelems) ||
             shape->nelems > (size_t)PTRDIFF_MAX / 16)
        PyErr_Format(PyExc_ValueError, "%s: argument shape has more elements than memory", call);
    if (PyErr_Occurred())
        return false;
    shape->dims[shape->ndim++] = (int64_t)dim;
    return true;
}

bool weft_shape_read(const char *call, PyObject *object, struct weft_shape *shape) {
    shape->ndim = 0;
    shape->nelems = 1;
    if (PyIndex_Check(object))
        return add_dim(call, object, shape);
    Py_ssize_t count = PySequence_Check(object) ? PySequence_Size(object) : -1;
    if (count < 0) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "%s: argument shape is %R: pass a number or several", call,
                     object);
        return false;
    }
    bool right = true;
    for (Py_ssize_t i = 0; right && i < count; i++) {
        PyObject *dim = PySequence_GetItem(object, i);
        right = add_dim(call, dim, shape);
        Py_XDECREF(dim);
    }
    return right;
}

PyObject *weft_buffer_make(struct weft_memory *memory, char *data,
                           const struct weft_dtype_row *dtype, const struct weft_shape *shape) {
    struct weft_buffer *buffer = PyObject_New(struct weft_buffer, buffer_type);
    if (!buffer)
        return NULL;
    buffer->weak = NULL;
    buffer->memory = memory;
    buffer->data = data;
    buffer->dtype = dtype;
    buffer->ndim = shape->ndim;
    buffer->nelems = shape->nelems;
    buffer->bytes = shape->nelems * dtype->bytes;
    int64_t stride = 1;
    for (int i = shape->ndim - 1; i >= 0; i--) {
        buffer->shape[i] = shape->dims[i];
        buffer->strides[i] = stride;
        stride *= shape->dims[i];
    }
    weft_memory_hold(memory);
    return (PyObject *)buffer;
}

static void dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_ClearWeakRefs(self);
    weft_memory_drop(((struct weft_buffer *)self)->memory);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* --- empty, zeros ---------------------------------------------------------------------------- */

static bool read_wanted(const char *call, PyObject *const *in, struct weft_shape *shape,
                        const struct weft_dtype_row **dtype, shmemx_space_t *space) {
    PyObject *name = in[1] ? Py_NewRef(in[1]) : PyUnicode_FromString("float32");
    *space = SHMEMX_SPACE_HOST;
    *dtype = name ? weft_dtype_find(call, name) : NULL;
    Py_XDECREF(name);
    return *dtype && weft_shape_read(call, in[0], shape) &&
           weft_argument_space(call, in[2], space) &&
           (*space == SHMEMX_SPACE_HOST || weft_session_device(call) >= 0);
}

/* What is wrong on this PE makes the call fail on all: they meet in it. */
static PyObject *allocate(const struct weft_signature *signature, PyObject *const *args,
                          Py_ssize_t nargs, PyObject *names, bool zero) {
    PyObject *in[3];
    struct weft_shape shape;
    const struct weft_dtype_row *dtype = NULL;
    shmemx_space_t space = SHMEMX_SPACE_HOST;
    if (!weft_session_check(signature->call))
        return NULL;
    bool right = weft_arguments_sort(signature, args, nargs, names, in) &&
                 read_wanted(signature->call, in, &shape, &dtype, &space);
    size_t bytes = right ? shape.nelems * dtype->bytes : SIZE_MAX;
    struct weft_memory *memory = weft_memory_allocate(signature->call, space, bytes, zero);
    if (!memory)
        return NULL;
    PyObject *buffer = weft_buffer_make(memory, memory->begin, dtype, &shape);
    weft_memory_drop(memory);
    return buffer;
}

WEFT_FUNCTION(empty) {
    static const struct weft_signature signature = {"empty", 1, 3, {"shape", "dtype", "space"}};
    (void)self;
    return allocate(&signature, args, nargs, names, false);
}

WEFT_FUNCTION(zeros) {
    static const struct weft_signature signature = {"zeros", 1, 3, {"shape", "dtype", "space"}};
    (void)self;
    return allocate(&signature, args, nargs, names, true);
}

/* --- Methods --------------------------------------------------------------------------------- */

static struct weft_shape shape_of(const struct weft_buffer *buffer) {
    struct weft_shape shape = {.ndim = buffer->ndim, .nelems = buffer->nelems};
    memcpy(shape.dims, buffer->shape, sizeof shape.dims);
    return shape;
}

/* Peers' memory is held by holding one's own: nobody gives it back alone. */
WEFT_FUNCTION(peer) {
    static const struct weft_signature signature = {"Buffer.peer", 1, 1, {"pe"}};
    struct weft_buffer *buffer = (struct weft_buffer *)self;
    PyObject *in[1];
    int pe;
    if (!weft_memory_check(buffer->memory, "Buffer.peer", "this Buffer") ||
        !weft_arguments_sort(&signature, args, nargs, names, in) ||
        !weft_argument_pe("Buffer.peer", in[0], &pe))
        return NULL;
    if (!buffer->memory->symmetric || !shmem_addr_accessible(buffer->data, pe))
        return PyErr_Format(PyExc_ValueError,
                            "Buffer.peer: this Buffer is not this PE's own symmetric memory");
    char *there = shmemx_ptr(buffer->memory->space, buffer->data, pe);
    if (!there)
        return PyErr_Format(PyExc_RuntimeError,
                            "Buffer.peer: the memory of PE %d is not mapped here", pe);
    struct weft_shape shape = shape_of(buffer);
    return weft_buffer_make(buffer->memory, there, buffer->dtype, &shape);
}

static bool read_view(const char *call, size_t bytes, PyObject *const *in, struct weft_shape *shape,
                      const struct weft_dtype_row **dtype, size_t *offset) {
    *offset = 0;
    if ((in[1] && !(*dtype = weft_dtype_find(call, in[1]))) ||
        !weft_argument_size(call, "offset", in[2], offset))
        return false;
    if (in[0] && in[0] != Py_None)
        return weft_shape_read(call, in[0], shape);
    shape->ndim = 1;
    shape->nelems = *offset <= bytes ? (bytes - *offset) / (*dtype)->bytes : 0;
    shape->dims[0] = (int64_t)shape->nelems;
    return true;
}

PyObject *weft_buffer_view(const char *call, struct weft_memory *memory, char *data, size_t bytes,
                           const struct weft_dtype_row *dtype, PyObject *const *in) {
    struct weft_shape shape;
    size_t offset;
    if (!read_view(call, bytes, in, &shape, &dtype, &offset))
        return NULL;
    size_t wanted = shape.nelems * dtype->bytes;
    if (offset > bytes || wanted > bytes - offset)
        return PyErr_Format(PyExc_ValueError,
                            "%s: asks for %zu bytes from byte %zu on, of %zu in all", call, wanted,
                            offset, bytes);
    if ((uintptr_t)(data + offset) % dtype->bytes != 0)
        return PyErr_Format(PyExc_ValueError,
                            "%s: argument offset is %zu, no multiple of the %zu bytes of %s", call,
                            offset, dtype->bytes, dtype->name);
    return weft_buffer_make(memory, data + offset, dtype, &shape);
}

WEFT_FUNCTION(view) {
    static const struct weft_signature signature = {
        "Buffer.view", 0, 3, {"shape", "dtype", "offset"}};
    struct weft_buffer *buffer = (struct weft_buffer *)self;
    PyObject *in[3];
    if (!weft_memory_check(buffer->memory, "Buffer.view", "this Buffer") ||
        !weft_arguments_sort(&signature, args, nargs, names, in))
        return NULL;
    return weft_buffer_view(signature.call, buffer->memory, buffer->data, buffer->bytes,
                            buffer->dtype, in);
}

static PyObject *free_buffer(PyObject *self, PyObject *unused) {
    struct weft_memory *memory = ((struct weft_buffer *)self)->memory;
    (void)unused;
    if (!weft_memory_check(memory, "Buffer.free", "this Buffer"))
        return NULL;
    if (!memory->symmetric)
        return PyErr_Format(PyExc_ValueError, "Buffer.free: this Buffer only shows memory that "
                                              "another object owns");
    atomic_store(&memory->freed, true);
    Py_RETURN_NONE;
}

/* --- Attributes ------------------------------------------------------------------------------ */

#define GETTER(NAME, EXPRESSION)                                       \
    static PyObject *get_##NAME(PyObject *self, void *unused) {        \
        const struct weft_buffer *buffer = (struct weft_buffer *)self; \
        (void)unused;                                                  \
        return EXPRESSION;                                             \
    }

static PyObject *shape_tuple(const struct weft_buffer *buffer) {
    PyObject *shape = PyTuple_New(buffer->ndim);
    for (int i = 0; shape && i < buffer->ndim; i++) {
        PyObject *dim = PyLong_FromLongLong(buffer->shape[i]);
        if (!dim || PyTuple_SetItem(shape, i, dim) < 0)
            Py_CLEAR(shape);
    }
    return shape;
}

static PyObject *address(struct weft_buffer *buffer) {
    if (!weft_memory_check(buffer->memory, "Buffer.ptr", "this Buffer"))
        return NULL;
    return PyLong_FromVoidPtr(buffer->data);
}

GETTER(ptr, address((struct weft_buffer *)buffer))
GETTER(nbytes, PyLong_FromSize_t(buffer->bytes))
GETTER(size, PyLong_FromSize_t(buffer->nelems))
GETTER(ndim, PyLong_FromLong(buffer->ndim))
GETTER(itemsize, PyLong_FromSize_t(buffer->dtype->bytes))
GETTER(shape, shape_tuple(buffer))
GETTER(dtype, PyUnicode_FromString(buffer->dtype->name))
GETTER(space,
       PyUnicode_FromString(buffer->memory->space == SHMEMX_SPACE_DEVICE ? "device" : "host"))
GETTER(freed, PyBool_FromLong(atomic_load(&buffer->memory->freed)))

static PyObject *repr(PyObject *self) {
    const struct weft_buffer *buffer = (struct weft_buffer *)self;
    PyObject *shape = shape_tuple(buffer);
    if (!shape)
        return NULL;
    PyObject *text = PyUnicode_FromFormat(
        "<weft.Buffer of %s, shape %R, in memory of the %s%s>", buffer->dtype->name, shape,
        buffer->memory->space == SHMEMX_SPACE_DEVICE ? "GPU" : "host",
        atomic_load(&buffer->memory->freed) ? ", freed" : "");
    Py_DECREF(shape);
    return text;
}

static Py_ssize_t length(PyObject *self) {
    const struct weft_buffer *buffer = (struct weft_buffer *)self;
    if (buffer->ndim > 0)
        return (Py_ssize_t)buffer->shape[0];
    PyErr_SetString(PyExc_TypeError, "a Buffer without dimensions has no length");
    return -1;
}

static PyObject *enter(PyObject *self, PyObject *unused) {
    (void)unused;
    return Py_NewRef(self);
}

WEFT_FUNCTION(leave) {
    struct weft_memory *memory = ((struct weft_buffer *)self)->memory;
    (void)args;
    (void)nargs;
    (void)names;
    if (memory->symmetric)
        atomic_store(&memory->freed, true);
    Py_RETURN_NONE;
}

/* --- The type -------------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    WEFT_METHOD(peer,
                "peer($self, /, pe)\n--\n\n"
                "A Buffer that shows PE pe's copy of this one: by the processor in memory of\n"
                "the host, by this PE's GPU in memory of a GPU."),
    WEFT_METHOD(view,
                "view($self, /, shape=None, dtype=None, offset=0)\n--\n\n"
                "A Buffer over a part of this one, from byte `offset` on. A shape of None is\n"
                "all that is left, in one dimension."),
    {"free", free_buffer, METH_NOARGS,
     "free($self, /)\n--\n\n"
     "Gives the memory up; this Buffer and its views raise ValueError from then on. Local. The\n"
     "memory is used anew once every PE has given it up, or has no Buffer of it any more, and\n"
     "no array shows it: then, the next weft.empty or weft.zeros takes it."},
    WEFT_METHOD_AS(
        "__dlpack__", weft_buffer_dlpack,
        "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
        "DLPack's capsule. Nothing is waited for: order work on the memory by Weft's calls."),
    {"__dlpack_device__", weft_buffer_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\n(1, 0) for the host, (2, number) for a CUDA GPU."},
    {"__enter__", enter, METH_NOARGS, NULL},
    WEFT_METHOD_AS("__exit__", leave,
                   "__exit__($self, /, kind, value, traceback)\n--\n\nfree(), if it has not been."),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"ptr", get_ptr, NULL, "Address of the first byte.", NULL},
    {"nbytes", get_nbytes, NULL, "Size in bytes.", NULL},
    {"size", get_size, NULL, "Number of elements.", NULL},
    {"ndim", get_ndim, NULL, "Number of dimensions.", NULL},
    {"itemsize", get_itemsize, NULL, "Bytes of an element.", NULL},
    {"shape", get_shape, NULL, "Elements in each dimension.", NULL},
    {"dtype", get_dtype, NULL, "Name of the elements' type, as \"float32\".", NULL},
    {"space", get_space, NULL, "\"host\" or \"device\".", NULL},
    {"freed", get_freed, NULL, "Whether free() was called.", NULL},
    {"__cuda_array_interface__", weft_buffer_cuda_array_interface, NULL,
     "Version 3; of memory of a GPU only.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct weft_buffer, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Elements of one type in a shape, over symmetric memory: every PE has one like it.\n\n"
     "weft.empty and weft.zeros make them. numpy.asarray, memoryview and\n"
     "torch.from_dlpack show the memory without a copy."},
    {Py_tp_dealloc, dealloc},
    {Py_tp_repr, repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_members, members},
    {Py_sq_length, length},
    {Py_bf_getbuffer, weft_buffer_get},
    {Py_bf_releasebuffer, weft_buffer_release},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "weft.Buffer",
    .basicsize = sizeof(struct weft_buffer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

bool weft_buffer_define(PyObject *module) {
    buffer_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return buffer_type && PyModule_AddObjectRef(module, "Buffer", (PyObject *)buffer_type) == 0;
}

#define WANTED                                                                                   \
    "Symmetric memory: every PE gets its own, of `shape` elements of `dtype`, and finds the\n"   \
    "others' by it. Collective over all PEs, which ask for the same. `space` is \"host\" or\n"   \
    "\"device\", this PE's GPU. MemoryError on all PEs where one does not have it; ValueError\n" \
    "on all where they differ, or one cannot take part: that one has the reason, such as a\n"    \
    "RuntimeError without a GPU."

PyMethodDef weft_buffer_methods[] = {
    WEFT_METHOD(empty, "empty(shape, dtype='float32', space='host')\n--\n\n" WANTED),
    WEFT_METHOD(zeros, "zeros(shape, dtype='float32', space='host')\n--\n\n" WANTED
                       "\n\nThe elements are 0."),
    {NULL, NULL, 0, NULL},
};
