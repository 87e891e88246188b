/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays through DLPack. If the type offers version 1.3's table of C functions (torch from 2.10
 * on), that is used: it takes a hundredth of the time of a call of __dlpack__. */
#include <string.h>
#include "array_source.h"
#include "dlpack.h"

static bool is_cuda(int type) {
    return type == DLPACK_CUDA || type == DLPACK_CUDA_MANAGED;
}

static bool refuse_device(const struct pyweft_request *request, int type) {
    PyErr_Format(PyExc_ValueError,
                 "%s: argument %s is on a device of DLPack's type %d: pass memory of the host or "
                 "of a CUDA GPU",
                 request->call, request->name, type);
    return false;
}

static bool refuse_type(const struct pyweft_request *request, const struct dlpack_tensor *tensor) {
    char text[48];
    PyOS_snprintf(text, sizeof text, "%d of %d bits, %d lanes", tensor->dtype.code,
                  tensor->dtype.bits, tensor->dtype.lanes);
    return pyweft_array_refuse_type(request, "DLPack's code", text);
}

static bool read_tensor(struct pyweft_array *array, const struct dlpack_tensor *tensor,
                        const struct pyweft_request *request) {
    array->dtype = tensor->dtype.lanes == 1
                       ? pyweft_dtype_of_dlpack(tensor->dtype.code, tensor->dtype.bits)
                       : NULL;
    if (!array->dtype)
        return refuse_type(request, tensor);
    bool host = tensor->device.type == DLPACK_CPU || tensor->device.type == DLPACK_CUDA_HOST;
    if (!host && !is_cuda(tensor->device.type))
        return refuse_device(request, tensor->device.type);
    array->device = host ? -1 : tensor->device.id;
    array->data = tensor->data ? (char *)tensor->data + tensor->byte_offset : NULL;
    pyweft_array_set_shape(array, tensor->ndim, tensor->shape, tensor->strides);
    return true;
}

/* --- The C function table --------------------------------------------------------------------- */

/* A cache of the types seen last. */
static struct known_type {
    PyTypeObject *type; /* a reference, so that no other type gets this address */
    const struct dlpack_exchange *exchange; /* NULL if the type has none */
    struct bit {
        PyCFunction ask; /* the C function behind the method, or NULL; ten times faster to call */
        bool exists;
    } neg, conj;
    bool grad; /* objects have requires_grad */
} known[8];

static const struct dlpack_exchange *ask_type(PyTypeObject *type) {
    PyObject *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");
    const struct dlpack_exchange *exchange =
        capsule ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
    Py_XDECREF(capsule);
    PyErr_Clear();
    bool usable = exchange && exchange->version.major == 1 && exchange->tensor_from_object;
    return usable ? exchange : NULL;
}

static struct bit find_bit(PyObject *object, const char *name) {
    PyObject *method = PyObject_GetAttrString(object, name);
    struct bit bit = {.exists = method && PyCallable_Check(method)};
    if (method && PyCFunction_Check(method) && PyCFunction_GetSelf(method) == object &&
        PyCFunction_GetFlags(method) == METH_NOARGS)
        bit.ask = PyCFunction_GetFunction(method);
    Py_XDECREF(method);
    PyErr_Clear();
    return bit;
}

static const struct known_type *know(PyObject *object) {
    static unsigned next;
    PyTypeObject *type = Py_TYPE(object);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].type == type)
            return &known[i];
    const struct known_type found = {.type = (PyTypeObject *)Py_NewRef((PyObject *)type),
                                     .exchange = ask_type(type),
                                     .neg = find_bit(object, "is_neg"),
                                     .conj = find_bit(object, "is_conj"),
                                     .grad = PyObject_HasAttrString(object, "requires_grad")};
    struct known_type *entry = &known[next++ % (sizeof known / sizeof *known)];
    PyTypeObject *before = entry->type;
    *entry = found;
    Py_XDECREF((PyObject *)before);
    return entry;
}

/* Returns whether the producer's work is ordered before `stream`, or need not be. */
static bool is_ordered(const struct dlpack_exchange *exchange, const struct dlpack_tensor *tensor,
                       weft_stream stream) {
    void *current = NULL;
    if (stream == WEFT_STREAM_HOST || !is_cuda(tensor->device.type))
        return true;
    return exchange->current_work_stream(tensor->device.type, tensor->device.id, &current) == 0 &&
           current == (void *)stream;
}

/* The table does not keep the memory alive, so the object is held. */
static bool take_exchanged(struct pyweft_array *array, PyObject *object,
                           const struct dlpack_exchange *exchange,
                           const struct pyweft_request *request) {
    struct dlpack_tensor tensor;
    if (exchange->tensor_from_object(object, &tensor) != 0 ||
        !is_ordered(exchange, &tensor, request->stream)) {
        PyErr_Clear(); /* __dlpack__ can order streams, and reports errors */
        return false;
    }
    array->held.object = Py_NewRef(object);
    array->holder = PYWEFT_HELD_BY_OBJECT;
    return read_tensor(array, &tensor, request);
}

/* --- The method __dlpack__ -------------------------------------------------------------------- */

/* The stream that the producer's work must be ordered before. -1 for a call by the host thread,
 * which waits for no stream. */
static PyObject *stream_for_producer(weft_stream stream) {
    if (stream == WEFT_STREAM_HOST)
        return PyLong_FromLong(-1);
    return PyLong_FromLongLong(stream ? (long long)(intptr_t)stream : 1);
}

static PyObject *call_method(PyObject *object, bool device, weft_stream stream, bool versioned) {
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    PyObject *none = PyTuple_New(0), *options = PyDict_New(), *capsule = NULL;
    PyObject *on = device ? stream_for_producer(stream) : NULL;
    PyObject *version = versioned ? Py_BuildValue("(ii)", 1, 1) : NULL;
    bool made = method && none && options && (on || !device) && (version || !versioned);
    if (made && on)
        made = PyDict_SetItemString(options, "stream", on) == 0;
    if (made && version)
        made = PyDict_SetItemString(options, "max_version", version) == 0;
    if (made)
        capsule = PyObject_Call(method, none, options);
    Py_XDECREF(method);
    Py_XDECREF(none);
    Py_XDECREF(options);
    Py_XDECREF(on);
    Py_XDECREF(version);
    return capsule;
}

/* Producers older than version 1 do not know max_version. */
static PyObject *ask_method(PyObject *object, bool device, weft_stream stream) {
    PyObject *capsule = call_method(object, device, stream, true);
    if (capsule || !PyErr_ExceptionMatches(PyExc_TypeError))
        return capsule;
    PyErr_Clear();
    return call_method(object, device, stream, false);
}

/* The capsule is kept and not renamed, so it returns the tensor when it is released. */
static bool read_capsule(struct pyweft_array *array, PyObject *capsule,
                         const struct pyweft_request *request) {
    if (!PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        struct dlpack_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
        return managed && read_tensor(array, &managed->tensor, request);
    }
    struct dlpack_versioned *versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (versioned->version.major != 1) {
        PyErr_Format(PyExc_ValueError, "%s: argument %s: DLPack version %d is not supported",
                     request->call, request->name, (int)versioned->version.major);
        return false;
    }
    array->readonly = versioned->flags & DLPACK_READ_ONLY;
    return read_tensor(array, &versioned->tensor, request);
}

static bool take_method(struct pyweft_array *array, PyObject *object,
                        const struct pyweft_request *request) {
    PyObject *where = PyObject_CallMethod(object, "__dlpack_device__", NULL);
    PyObject *first = where ? PySequence_GetItem(where, 0) : NULL;
    long type = first ? PyLong_AsLong(first) : -1;
    Py_XDECREF(first);
    Py_XDECREF(where);
    if (PyErr_Occurred())
        return false;
    if (type != DLPACK_CPU && type != DLPACK_CUDA_HOST && !is_cuda((int)type))
        return refuse_device(request, (int)type);
    PyObject *capsule = ask_method(object, is_cuda((int)type), request->stream);
    if (!capsule)
        return false;
    array->held.object = capsule;
    array->holder = PYWEFT_HELD_BY_OBJECT;
    return read_capsule(array, capsule, request);
}

/* --- Properties that DLPack does not report --------------------------------------------------- */

/* Returns the truth of the object, and drops the reference, which may be NULL. */
static bool is_true(PyObject *answer) {
    int truth = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return truth == 1;
}

static bool is_set(const struct bit *bit, const char *name, PyObject *object) {
    if (!bit->exists)
        return false;
    return is_true(bit->ask ? bit->ask(object, NULL) : PyObject_CallMethod(object, name, NULL));
}

static bool refuse(const struct pyweft_request *request, const char *what) {
    PyErr_Format(PyExc_BufferError, "%s: argument %s %s", request->call, request->name, what);
    return false;
}

/* torch negates and conjugates tensors lazily, when it reads them. */
static bool check_bits(const struct known_type *type, const struct pyweft_array *array,
                       PyObject *object, const struct pyweft_request *request) {
    if (is_set(&type->neg, "is_neg", object))
        return refuse(
            request,
            "has the negative bit set, so its elements in memory are not negated yet: pass "
            "tensor.resolve_neg()");
    if (array->dtype->dlpack == DLPACK_COMPLEX && !PyErr_Occurred() &&
        is_set(&type->conj, "is_conj", object))
        return refuse(
            request,
            "has the conjugate bit set, so its elements in memory are not conjugated yet: pass "
            "tensor.resolve_conj()");
    return !PyErr_Occurred();
}

/* torch does not see what Weft writes, so gradients of this tensor would be wrong. Reading is
 * harmless. */
static bool check_grad(const struct known_type *type, PyObject *object,
                       const struct pyweft_request *request) {
    static PyObject *name;
    if (!type->grad || request->use != PYWEFT_ARRAY_WRITTEN)
        return true;
    if (!name)
        name = PyUnicode_InternFromString("requires_grad");
    if (name && is_true(PyObject_GetAttr(object, name)))
        return refuse(request, "requires grad, but this call writes it: pass tensor.detach()");
    return !PyErr_Occurred();
}

/* --- Both ways -------------------------------------------------------------------------------- */

static bool take_either(struct pyweft_array *array, PyObject *object, const struct known_type *type,
                        const struct pyweft_request *request) {
    if (type->exchange) {
        if (take_exchanged(array, object, type->exchange, request))
            return true;
        if (array->holder != PYWEFT_HELD_BY_NONE)
            return false;
    }
    return PyObject_HasAttrString(object, "__dlpack__") && take_method(array, object, request);
}

/* A copy: the producer's code may run, and change the cache. */
bool pyweft_array_from_dlpack(struct pyweft_array *array, PyObject *object,
                              const struct pyweft_request *request) {
    const struct known_type type = *know(object);
    return check_grad(&type, object, request) && take_either(array, object, &type, request) &&
           check_bits(&type, array, object, request);
}
