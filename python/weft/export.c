/* SPDX-License-Identifier: BSD-3-Clause */
/* A Buffer's interfaces to other libraries: the buffer protocol, DLPack, __cuda_array_interface__.
 * An exported view keeps the memory alive, even after the Buffer is freed or the job is over. */
#include <stdlib.h>
#include "argument.h"
#include "buffer.h"
#include "dlpack.h"

/* --- The buffer protocol --------------------------------------------------------------------- */

struct exported_view {
    struct pyweft_memory *memory;
    Py_ssize_t shape[PYWEFT_DIMS_MAX], strides[PYWEFT_DIMS_MAX];
};

/* C order satisfies every request except one for Fortran order. */
static bool fits_layout(const struct pyweft_part *part, int flags) {
    const int fortran = PyBUF_F_CONTIGUOUS & ~PyBUF_STRIDES;
    const int any = (PyBUF_C_CONTIGUOUS | PyBUF_ANY_CONTIGUOUS) & ~PyBUF_STRIDES;
    bool strided = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
    if (strided && (flags & fortran))
        return part->ndim <= 1 && pyweft_part_contiguous(part);
    return (strided && !(flags & any)) || pyweft_part_contiguous(part);
}

static bool check_shown(const struct pyweft_buffer *buffer, int flags) {
    if (!pyweft_memory_check(buffer->memory, "Buffer", "this Buffer"))
        return false;
    if (buffer->memory->space == SHMEMX_SPACE_DEVICE)
        PyErr_SetString(PyExc_BufferError,
                        "Buffer: GPU memory cannot be shown to processors: use DLPack or "
                        "__cuda_array_interface__");
    else if (!buffer->dtype->format && (flags & PyBUF_FORMAT))
        PyErr_Format(PyExc_BufferError,
                     "Buffer: the buffer protocol has no format for %s: use DLPack, or "
                     "view(dtype='uint%zu')",
                     buffer->dtype->name, buffer->dtype->bytes * 8);
    else if (!fits_layout(&buffer->part, flags))
        PyErr_SetString(PyExc_BufferError, "Buffer: the elements are not in the requested order");
    else if (buffer->memory->readonly && (flags & PyBUF_WRITABLE))
        PyErr_SetString(PyExc_BufferError, "Buffer: this memory is read-only");
    return !PyErr_Occurred();
}

int pyweft_buffer_get(PyObject *self, Py_buffer *view, int flags) {
    struct pyweft_buffer *buffer = (struct pyweft_buffer *)self;
    view->obj = NULL;
    struct exported_view *exported = check_shown(buffer, flags) ? malloc(sizeof *exported) : NULL;
    if (!exported) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        return -1;
    }
    exported->memory = buffer->memory;
    for (int i = 0; i < buffer->part.ndim; i++) {
        exported->shape[i] = (Py_ssize_t)buffer->part.shape[i];
        exported->strides[i] =
            (Py_ssize_t)(buffer->part.strides[i] * (int64_t)buffer->dtype->bytes);
    }
    pyweft_memory_view(buffer->memory);
    *view = (Py_buffer){
        .buf = buffer->part.data,
        .obj = Py_NewRef(self),
        .len = (Py_ssize_t)(buffer->part.nelems * buffer->part.itemsize),
        .itemsize = (Py_ssize_t)buffer->dtype->bytes,
        .readonly = buffer->memory->readonly,
        .ndim = buffer->part.ndim,
        .format = flags & PyBUF_FORMAT ? (char *)buffer->dtype->format : NULL,
        .shape = flags & PyBUF_ND ? exported->shape : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? exported->strides : NULL,
        .internal = exported,
    };
    return 0;
}

void pyweft_buffer_release(PyObject *self, Py_buffer *view) {
    struct exported_view *exported = view->internal;
    (void)self;
    pyweft_memory_unview(exported->memory);
    free(exported);
}

/* --- numpy ----------------------------------------------------------------------------------- */

static PyObject *import_numpy(void) {
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (!numpy && PyErr_ExceptionMatches(PyExc_ModuleNotFoundError)) {
        PyErr_Clear();
        PyErr_SetString(
            PyExc_ModuleNotFoundError,
            "Buffer.numpy: numpy is not installed: pip install numpy, or use the Buffer itself, "
            "memoryview() or tolist()");
    }
    return numpy;
}

/* Goes through a memoryview, whose exception explains what is not possible. */
PyObject *pyweft_buffer_numpy(PyObject *self, PyObject *unused) {
    (void)unused;
    PyObject *view = PyMemoryView_FromObject(self), *numpy = view ? import_numpy() : NULL;
    PyObject *array = numpy ? PyObject_CallMethod(numpy, "asarray", "O", view) : NULL;
    Py_XDECREF(view);
    Py_XDECREF(numpy);
    return array;
}

/* numpy calls this for memory without the buffer protocol, and gets the exception that explains
 * why. */
PyObject *pyweft_buffer_array(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                              PyObject *names) {
    (void)args;
    (void)nargs;
    (void)names;
    return pyweft_buffer_numpy(self, NULL);
}

/* --- DLPack ---------------------------------------------------------------------------------- */

/* One of the two forms is used. It outlives the Buffer, and may be freed without the GIL. */
struct export {
    union {
        struct dlpack_managed managed;
        struct dlpack_versioned versioned;
    };
    struct pyweft_memory *memory;
    int64_t shape[PYWEFT_DIMS_MAX], strides[PYWEFT_DIMS_MAX];
};

static void drop_export(struct export *export) {
    pyweft_memory_unview(export->memory);
    free(export);
}

static void delete_managed(struct dlpack_managed *self) {
    drop_export(self->context);
}

static void delete_versioned(struct dlpack_versioned *self) {
    drop_export(self->context);
}

/* The capsule was never consumed. */
static void end_managed(PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, "dltensor"))
        delete_managed(PyCapsule_GetPointer(capsule, "dltensor"));
}

static void end_versioned(PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        delete_versioned(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
}

static struct dlpack_device device_of(const struct pyweft_buffer *buffer) {
    int gpu = buffer->memory->gpu;
    return (struct dlpack_device){gpu < 0 ? DLPACK_CPU : DLPACK_CUDA, gpu < 0 ? 0 : gpu};
}

/* Returns the first dimension with a negative stride, or -1. Consumers of DLPack and
 * __cuda_array_interface__, torch among them, assume that there is none, and some do not check. */
static int find_reversed(const struct pyweft_part *part) {
    for (int i = 0; i < part->ndim; i++)
        if (part->nelems > 1 && part->shape[i] > 1 && part->strides[i] < 0)
            return i;
    return -1;
}

static bool check_strides(const struct pyweft_part *part) {
    int dim = find_reversed(part);
    if (dim >= 0)
        PyErr_Format(PyExc_BufferError,
                     "Buffer.__dlpack__: dimension %d is reversed, which consumers of DLPack do "
                     "not support: "
                     "pass a copy, or the Buffer in its own order; numpy.asarray accepts it",
                     dim);
    return dim < 0;
}

static bool fill_tensor(struct dlpack_tensor *tensor, struct export *export,
                        const struct pyweft_buffer *buffer) {
    if (!check_strides(&buffer->part))
        return false;
    for (int i = 0; i < buffer->part.ndim; i++) {
        export->shape[i] = buffer->part.shape[i];
        export->strides[i] = buffer->part.strides[i];
    }
    tensor->data = buffer->part.nelems ? buffer->part.data : NULL;
    tensor->device = device_of(buffer);
    tensor->ndim = buffer->part.ndim;
    tensor->dtype.code = buffer->dtype->dlpack;
    tensor->dtype.bits = (uint8_t)(buffer->dtype->bytes * 8);
    tensor->dtype.lanes = 1;
    tensor->shape = export->shape;
    tensor->strides = export->strides;
    return true;
}

static PyObject *make_capsule(struct pyweft_buffer *buffer, bool versioned) {
    struct export *export = calloc(1, sizeof *export);
    if (!export)
        return PyErr_NoMemory();
    if (!fill_tensor(versioned ? &export->versioned.tensor : &export->managed.tensor, export,
                     buffer)) {
        free(export);
        return NULL;
    }
    if (versioned) {
        export->versioned.version.major = 1;
        export->versioned.context = export;
        export->versioned.deleter = delete_versioned;
        export->versioned.flags = buffer->memory->readonly ? DLPACK_READ_ONLY : 0;
    } else {
        export->managed.context = export;
        export->managed.deleter = delete_managed;
    }
    export->memory = buffer->memory;
    pyweft_memory_view(buffer->memory);
    PyObject *capsule = PyCapsule_New(export, versioned ? "dltensor_versioned" : "dltensor",
                                      versioned ? end_versioned : end_managed);
    if (!capsule)
        drop_export(export);
    return capsule;
}

/* Reads a tuple of two numbers. */
static bool read_pair(const char *name, PyObject *object, int *first, int *second) {
    if (PyTuple_Check(object) && PyTuple_Size(object) == 2)
        return pyweft_argument_int("Buffer.__dlpack__", name, PyTuple_GetItem(object, 0), first) &&
               pyweft_argument_int("Buffer.__dlpack__", name, PyTuple_GetItem(object, 1), second);
    PyErr_Format(PyExc_TypeError,
                 "Buffer.__dlpack__: argument %s is %R: pass None or a tuple of two numbers", name,
                 object);
    return false;
}

/* Sets whether the consumer knows version 1 or later. */
static bool read_version(PyObject *object, bool *versioned) {
    int major = 0, minor = 0;
    if (object && object != Py_None && !read_pair("max_version", object, &major, &minor))
        return false;
    *versioned = major >= 1;
    return true;
}

static bool check_wanted(const struct pyweft_buffer *buffer, PyObject *device, PyObject *copy) {
    struct dlpack_device lies = device_of(buffer);
    int wanted_type, wanted_id;
    if (copy == Py_True) {
        PyErr_SetString(PyExc_BufferError,
                        "Buffer.__dlpack__: copies are not supported: pass copy=None");
        return false;
    }
    if (!device || device == Py_None)
        return true;
    if (!read_pair("dl_device", device, &wanted_type, &wanted_id))
        return false;
    if (lies.type == wanted_type && lies.id == wanted_id)
        return true;
    PyErr_Format(PyExc_BufferError,
                 "Buffer.__dlpack__: argument dl_device is %R, but the memory is on (%d, %d)",
                 device, lies.type, lies.id);
    return false;
}

PyObject *pyweft_buffer_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *names) {
    static const struct pyweft_signature signature = {
        "Buffer.__dlpack__", 0, 1, {"stream", "max_version", "dl_device", "copy"}};
    struct pyweft_buffer *buffer = (struct pyweft_buffer *)self;
    PyObject *in[4];
    bool versioned;
    if (!pyweft_memory_check(buffer->memory, "Buffer.__dlpack__", "this Buffer") ||
        !pyweft_arguments_sort(&signature, args, nargs, names, in) ||
        !read_version(in[1], &versioned) || !check_wanted(buffer, in[2], in[3]))
        return NULL;
    if (!versioned && buffer->memory->readonly)
        return PyErr_Format(PyExc_BufferError,
                            "Buffer.__dlpack__: read-only memory needs max_version=(1, 0) or more");
    return make_capsule(buffer, versioned);
}

PyObject *pyweft_buffer_dlpack_device(PyObject *self, PyObject *unused) {
    struct dlpack_device lies = device_of((struct pyweft_buffer *)self);
    (void)unused;
    return Py_BuildValue("(ii)", lies.type, lies.id);
}

/* --- __cuda_array_interface__ ---------------------------------------------------------------- */

/* Returns None for C order. */
static PyObject *byte_strides(const struct pyweft_buffer *buffer) {
    const struct pyweft_part *part = &buffer->part;
    if (pyweft_part_contiguous(part))
        return Py_NewRef(Py_None);
    PyObject *strides = PyTuple_New(part->ndim);
    for (int i = 0; strides && i < part->ndim; i++) {
        PyObject *stride = PyLong_FromLongLong(part->strides[i] * (int64_t)part->itemsize);
        if (!stride || PyTuple_SetItem(strides, i, stride) < 0)
            Py_CLEAR(strides);
    }
    return strides;
}

/* Consumers do not report when they are done, but most keep the Buffer, so its lifetime decides. */
PyObject *pyweft_buffer_cuda_array_interface(PyObject *self, void *unused) {
    struct pyweft_buffer *buffer = (struct pyweft_buffer *)self;
    (void)unused;
    if (buffer->memory->space != SHMEMX_SPACE_DEVICE || !buffer->dtype->typestr)
        return PyErr_Format(
            PyExc_AttributeError, "__cuda_array_interface__: this Buffer is of %s in %s memory",
            buffer->dtype->name, buffer->memory->space == SHMEMX_SPACE_DEVICE ? "GPU" : "host");
    if (!pyweft_memory_check(buffer->memory, "Buffer.__cuda_array_interface__", "this Buffer"))
        return NULL;
    int dim = find_reversed(&buffer->part);
    if (dim >= 0)
        return PyErr_Format(
            PyExc_AttributeError,
            "__cuda_array_interface__: dimension %d of this Buffer is reversed, which consumers do "
            "not support: pass the Buffer in its own order",
            dim);
    void *begin =
        buffer->part.nelems ? buffer->part.data : NULL; /* NULL if empty, by the protocol */
    PyObject *shape = pyweft_part_shape(&buffer->part), *strides = byte_strides(buffer);
    if (!shape || !strides) {
        Py_XDECREF(shape);
        Py_XDECREF(strides);
        return NULL;
    }
    atomic_store(&buffer->memory->exposed, true);
    return Py_BuildValue("{s:N,s:s,s:(NO),s:i,s:N,s:O}", "shape", shape, "typestr",
                         buffer->dtype->typestr, "data", PyLong_FromVoidPtr(begin),
                         buffer->memory->readonly ? Py_True : Py_False, "version", 3, "strides",
                         strides, "stream", Py_None);
}
