/* SPDX-License-Identifier: BSD-3-Clause */
/* The type Buffer: weft.empty and weft.zeros, its methods and attributes. Its indexing is in
 * subscript.c, its interfaces to other libraries in export.c. */
#include "buffer.h"
#include <stdlib.h>
#include <string.h>
#include "argument.h"
#include "error.h"
#include "gpu.h"
#include "session.h"
#include "type.h"

static void dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_ClearWeakRefs(self);
    pyweft_memory_drop(((struct pyweft_buffer *)self)->memory);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* --- empty, zeros ---------------------------------------------------------------------------- */

static bool read_wanted(const char *call, PyObject *const *in, struct pyweft_shape *shape,
                        const struct pyweft_dtype_row **dtype, shmemx_space_t *space) {
    PyObject *name = in[1] ? Py_NewRef(in[1]) : PyUnicode_FromString("float32");
    *space = SHMEMX_SPACE_HOST;
    *dtype = name ? pyweft_dtype_find(call, name) : NULL;
    Py_XDECREF(name);
    return *dtype && pyweft_shape_read(call, in[0], shape) &&
           pyweft_argument_space(call, in[2], space) &&
           (*space == SHMEMX_SPACE_HOST || pyweft_gpu(call) >= 0);
}

/* Collective: if the arguments are wrong on this PE, the call fails on all PEs. */
static PyObject *allocate(const struct pyweft_signature *signature, PyObject *const *args,
                          Py_ssize_t nargs, PyObject *names, bool zero) {
    PyObject *in[3];
    struct pyweft_shape shape;
    const struct pyweft_dtype_row *dtype = NULL;
    shmemx_space_t space = SHMEMX_SPACE_HOST;
    if (!pyweft_session_check(signature->call))
        return NULL;
    bool right = pyweft_arguments_sort(signature, args, nargs, names, in) &&
                 read_wanted(signature->call, in, &shape, &dtype, &space);
    size_t bytes = right ? shape.nelems * dtype->bytes : SIZE_MAX;
    struct pyweft_memory *memory = pyweft_memory_allocate(signature->call, space, bytes, zero);
    if (!memory)
        return NULL;
    PyObject *buffer = pyweft_buffer_make(memory, memory->begin, dtype, &shape);
    pyweft_memory_drop(memory);
    return buffer;
}

PYWEFT_FUNCTION(empty) {
    static const struct pyweft_signature signature = {"empty", 1, 3, {"shape", "dtype", "space"}};
    (void)self;
    return allocate(&signature, args, nargs, names, false);
}

PYWEFT_FUNCTION(zeros) {
    static const struct pyweft_signature signature = {"zeros", 1, 3, {"shape", "dtype", "space"}};
    (void)self;
    return allocate(&signature, args, nargs, names, true);
}

/* --- Methods --------------------------------------------------------------------------------- */

static size_t bytes_of(const struct pyweft_buffer *buffer) {
    return buffer->part.nelems * buffer->part.itemsize;
}

/* A view of a peer's memory holds this PE's own memory, because symmetric memory is freed by all
 * PEs together. */
PYWEFT_FUNCTION(peer) {
    static const struct pyweft_signature signature = {"Buffer.peer", 1, 1, {"pe"}};
    struct pyweft_buffer *buffer = (struct pyweft_buffer *)self;
    PyObject *in[1];
    int pe;
    if (!pyweft_memory_check(buffer->memory, "Buffer.peer", "this Buffer") ||
        !pyweft_arguments_sort(&signature, args, nargs, names, in) ||
        !pyweft_argument_pe("Buffer.peer", in[0], &pe))
        return NULL;
    char *own = buffer->part.data;
    if (!buffer->memory->symmetric || !shmem_addr_accessible(own, pe))
        return PyErr_Format(PyExc_ValueError,
                            "Buffer.peer: this Buffer is not this PE's own symmetric memory");
    char *there = shmemx_ptr(buffer->memory->space, own, pe);
    if (!there)
        return PyErr_Format(
            PyExc_RuntimeError,
            "Buffer.peer: the memory of PE %d is not mapped here, for example because it is on "
            "another host: use weft.put, weft.get, weft.p and weft.g",
            pe);
    struct pyweft_part part = buffer->part;
    part.data = there;
    struct pyweft_buffer *shown = (struct pyweft_buffer *)pyweft_buffer_make_part(buffer, &part);
    if (shown) {
        shown->pe = pe;
        shown->shift = there - own;
    }
    return (PyObject *)shown;
}

static bool check_contiguous(const struct pyweft_buffer *buffer, const char *call) {
    if (pyweft_part_contiguous(&buffer->part))
        return true;
    PyErr_Format(
        PyExc_ValueError,
        "%s: this Buffer is not contiguous, as after a slice with a step: take the view before "
        "the slice",
        call);
    return false;
}

/* A view of a peer's memory shows the same peer. */
static PyObject *as_of(const struct pyweft_buffer *of, PyObject *view) {
    if (view) {
        ((struct pyweft_buffer *)view)->pe = of->pe;
        ((struct pyweft_buffer *)view)->shift = of->shift;
    }
    return view;
}

PYWEFT_FUNCTION(view) {
    static const struct pyweft_signature signature = {
        "Buffer.view", 0, 3, {"shape", "dtype", "offset"}};
    struct pyweft_buffer *buffer = (struct pyweft_buffer *)self;
    PyObject *in[3];
    if (!pyweft_memory_check(buffer->memory, "Buffer.view", "this Buffer") ||
        !pyweft_arguments_sort(&signature, args, nargs, names, in) ||
        !check_contiguous(buffer, "Buffer.view"))
        return NULL;
    return as_of(buffer, pyweft_buffer_view(signature.call, buffer->memory, buffer->part.data,
                                            bytes_of(buffer), buffer->dtype, in));
}

static bool is_minus_one(PyObject *object) {
    int overflow;
    return PyLong_Check(object) && PyLong_AsLongAndOverflow(object, &overflow) == -1 && !overflow;
}

/* Returns the arguments of reshape(), given one by one or as a sequence, as a list. A -1 is
 * replaced by 1, and *left is its index. */
static PyObject *list_dims(PyObject *args, Py_ssize_t *left) {
    PyObject *first = PyTuple_Size(args) == 1 ? PyTuple_GetItem(args, 0) : NULL;
    PyObject *dims = PySequence_List(first && !PyIndex_Check(first) ? first : args);
    *left = -1;
    for (Py_ssize_t i = 0; dims && i < PyList_Size(dims); i++) {
        if (!is_minus_one(PyList_GetItem(dims, i)))
            continue;
        if (*left >= 0)
            PyErr_SetString(PyExc_ValueError, "Buffer.reshape: argument shape has -1 twice");
        if (*left >= 0 || PyList_SetItem(dims, i, PyLong_FromLong(1)) < 0)
            Py_CLEAR(dims);
        *left = i;
    }
    return dims;
}

static bool read_shape(PyObject *args, size_t nelems, struct pyweft_shape *shape) {
    Py_ssize_t left;
    PyObject *dims = list_dims(args, &left);
    bool right = dims && pyweft_shape_read("Buffer.reshape", dims, shape);
    if (right && left >= 0) {
        shape->dims[left] = shape->nelems ? (int64_t)(nelems / shape->nelems) : 0;
        shape->nelems *= (size_t)shape->dims[left];
    }
    if (right && shape->nelems != nelems)
        PyErr_Format(PyExc_ValueError,
                     "Buffer.reshape: argument shape is %R, but this Buffer has %zu elements", args,
                     nelems);
    Py_XDECREF(dims);
    return right && !PyErr_Occurred();
}

static PyObject *reshape(PyObject *self, PyObject *args) {
    struct pyweft_buffer *buffer = (struct pyweft_buffer *)self;
    struct pyweft_shape shape;
    if (!pyweft_memory_check(buffer->memory, "Buffer.reshape", "this Buffer") ||
        !check_contiguous(buffer, "Buffer.reshape") ||
        !read_shape(args, buffer->part.nelems, &shape))
        return NULL;
    struct pyweft_part part = pyweft_part_whole(buffer->part.data, buffer->part.itemsize, &shape);
    return pyweft_buffer_make_part(buffer, &part);
}

static PyObject *free_buffer(PyObject *self, PyObject *unused) {
    struct pyweft_memory *memory = ((struct pyweft_buffer *)self)->memory;
    (void)unused;
    if (!pyweft_memory_check(memory, "Buffer.free", "this Buffer"))
        return NULL;
    if (!memory->symmetric)
        return PyErr_Format(PyExc_ValueError,
                            "Buffer.free: this Buffer shows memory that another object owns");
    atomic_store(&memory->freed, true);
    Py_RETURN_NONE;
}

/* --- Attributes ------------------------------------------------------------------------------ */

static PyObject *address(struct pyweft_buffer *buffer) {
    if (!pyweft_memory_check(buffer->memory, "Buffer.ptr", "this Buffer"))
        return NULL;
    return PyLong_FromVoidPtr(buffer->part.data);
}

PYWEFT_GETTER(ptr, struct pyweft_buffer, address(object))
PYWEFT_GETTER(nbytes, struct pyweft_buffer, PyLong_FromSize_t(bytes_of(object)))
PYWEFT_GETTER(size, struct pyweft_buffer, PyLong_FromSize_t(object->part.nelems))
PYWEFT_GETTER(ndim, struct pyweft_buffer, PyLong_FromLong(object->part.ndim))
PYWEFT_GETTER(itemsize, struct pyweft_buffer, PyLong_FromSize_t(object->dtype->bytes))
PYWEFT_GETTER(shape, struct pyweft_buffer, pyweft_part_shape(&object->part))
PYWEFT_GETTER(dtype, struct pyweft_buffer, PyUnicode_FromString(object->dtype->name))
PYWEFT_GETTER(space, struct pyweft_buffer,
              PyUnicode_FromString(object->memory->space == SHMEMX_SPACE_DEVICE ? "device"
                                                                                : "host"))
PYWEFT_GETTER(freed, struct pyweft_buffer, PyBool_FromLong(atomic_load(&object->memory->freed)))

static PyObject *repr(PyObject *self) {
    const struct pyweft_buffer *buffer = (struct pyweft_buffer *)self;
    PyObject *shape = pyweft_part_shape(&buffer->part), *values = pyweft_buffer_text(buffer);
    PyObject *text = NULL;
    if (shape && values)
        text = PyUnicode_FromFormat("<weft.Buffer of %s, shape %R, in %s memory%s%s%U>",
                                    buffer->dtype->name, shape,
                                    buffer->memory->space == SHMEMX_SPACE_DEVICE ? "GPU" : "host",
                                    atomic_load(&buffer->memory->freed) ? ", freed" : "",
                                    PyUnicode_GetLength(values) ? ": " : "", values);
    Py_XDECREF(shape);
    Py_XDECREF(values);
    return text;
}

static Py_ssize_t length(PyObject *self) {
    const struct pyweft_buffer *buffer = (struct pyweft_buffer *)self;
    if (buffer->part.ndim > 0)
        return (Py_ssize_t)buffer->part.shape[0];
    PyErr_SetString(PyExc_TypeError, "a Buffer without dimensions has no length");
    return -1;
}

PYWEFT_FUNCTION(leave) {
    struct pyweft_memory *memory = ((struct pyweft_buffer *)self)->memory;
    (void)args;
    (void)nargs;
    (void)names;
    if (memory->symmetric)
        atomic_store(&memory->freed, true);
    Py_RETURN_NONE;
}

/* --- The type -------------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    PYWEFT_METHOD(
        peer, "peer($self, /, pe)\n--\n\n"
              "Returns a Buffer that shows PE pe's copy of this one: to the processor if it is in\n"
              "host memory, to this PE's GPU if it is in GPU memory.\n\n"
              "ValueError: no symmetric Buffer, no such PE. RuntimeError: that PE's memory is not\n"
              "mapped here (it may be on another host); before init(), after finalize()."),
    PYWEFT_METHOD(
        view, "view($self, /, shape=None, dtype=None, offset=0)\n--\n\n"
              "Returns a Buffer over a part of this one, from byte `offset` on; without a shape,\n"
              "over all that follows, in one dimension."),
    {"reshape", reshape, METH_VARARGS,
     "reshape($self, /, *shape)\n--\n\n"
     "Returns a Buffer over the same elements in another shape, of which one dimension may\n"
     "be -1, to be computed. ValueError unless the Buffer is contiguous."},
    PYWEFT_METHOD_AS("fill", pyweft_buffer_fill,
                     "fill($self, /, value)\n--\n\n"
                     "Sets all elements to the number `value`, as self[...] = value does."),
    {"tolist", pyweft_buffer_tolist, METH_NOARGS,
     "tolist($self, /)\n--\n\n"
     "Returns the elements as Python numbers, in lists nested like the shape."},
    {"numpy", pyweft_buffer_numpy, METH_NOARGS,
     "numpy($self, /)\n--\n\n"
     "Returns a numpy array over this memory, without a copy. BufferError for memory of a\n"
     "GPU, and for types that numpy lacks; ImportError if numpy is not installed."},
    PYWEFT_METHOD_AS("__array__", pyweft_buffer_array,
                     "__array__($self, /, dtype=None, copy=None)\n--\n\n"
                     "numpy(), as numpy itself calls it."),
    {"free", free_buffer, METH_NOARGS,
     "free($self, /)\n--\n\n"
     "Releases the memory; this Buffer and its views raise ValueError from then on. Local.\n"
     "The memory is reused by the next weft.empty or weft.zeros after every PE has\n"
     "released it, or has no Buffer of it any more, and no array shows it."},
    PYWEFT_METHOD_AS(
        "__dlpack__", pyweft_buffer_dlpack,
        "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
        "Returns a DLPack capsule. Waits for nothing: order work on the memory with Weft's\n"
        "calls."),
    {"__dlpack_device__", pyweft_buffer_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\n"
     "(1, 0) for the host, (2, number) for a CUDA GPU."},
    PYWEFT_TYPE_ENTER,
    PYWEFT_METHOD_AS("__exit__", leave,
                     "__exit__($self, /, kind, value, traceback)\n--\n\n"
                     "free(), if it was not called before."),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"ptr", get_ptr, NULL, "Address of the first byte.", NULL},
    {"nbytes", get_nbytes, NULL, "Size in bytes.", NULL},
    {"size", get_size, NULL, "Number of elements.", NULL},
    {"ndim", get_ndim, NULL, "Number of dimensions.", NULL},
    {"itemsize", get_itemsize, NULL, "Bytes per element.", NULL},
    {"shape", get_shape, NULL, "Elements in each dimension.", NULL},
    {"dtype", get_dtype, NULL, "Name of the element type, such as \"float32\".", NULL},
    {"space", get_space, NULL, "\"host\" or \"device\".", NULL},
    {"freed", get_freed, NULL, "Whether free() was called.", NULL},
    {"__cuda_array_interface__", pyweft_buffer_cuda_array_interface, NULL,
     "Version 3; for GPU memory only.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PYWEFT_WEAK_MEMBERS(struct pyweft_buffer);

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Elements of one type in a shape, over symmetric memory: every PE has a copy.\n\n"
     "Made by weft.empty and weft.zeros. Works like an array: b[0] is a number, b[1:3] a\n"
     "view of the same memory, b[:] = x writes a number, an array or a sequence into it.\n"
     "numpy(), memoryview and torch.from_dlpack show the memory without a copy. Two\n"
     "Buffers are equal if they are the same object: compare values with tolist() or\n"
     "numpy()."},
    {Py_tp_dealloc, dealloc},
    {Py_tp_repr, repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_members, members},
    {Py_mp_length, length},
    {Py_mp_subscript, pyweft_buffer_subscript},
    {Py_mp_ass_subscript, pyweft_buffer_assign},
    {Py_sq_length, length},
    {Py_sq_item, pyweft_buffer_item},
    {Py_tp_iter, pyweft_buffer_iterate},
    {Py_bf_getbuffer, pyweft_buffer_get},
    {Py_bf_releasebuffer, pyweft_buffer_release},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "weft.Buffer",
    .basicsize = sizeof(struct pyweft_buffer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

bool pyweft_buffer_define(PyObject *module) {
    pyweft_buffer_type = pyweft_type_define(module, &spec);
    return pyweft_buffer_type != NULL;
}

#define WANTED                                                                              \
    "Allocates symmetric memory: a copy on every PE, of `shape` elements of `dtype`.\n"     \
    "Collective over all PEs, which must ask for the same. `space` is \"host\" or\n"        \
    "\"device\", this PE's GPU. MemoryError on all PEs if one lacks the memory;\n"          \
    "ValueError on all if their arguments differ or one cannot take part: that PE raises\n" \
    "the reason, such as RuntimeError without a GPU."

PyMethodDef pyweft_buffer_methods[] = {
    PYWEFT_METHOD(empty, "empty(shape, dtype='float32', space='host')\n--\n\n" WANTED),
    PYWEFT_METHOD(zeros, "zeros(shape, dtype='float32', space='host')\n--\n\n" WANTED "\n\n"
                         "The elements are 0."),
    {NULL, NULL, 0, NULL},
};
