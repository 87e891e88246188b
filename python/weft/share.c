/* SPDX-License-Identifier: BSD-3-Clause */
/* The type Share. Its memory stays as long as a Share, a Buffer or an array uses it, even if the
 * owner frees the block meanwhile, and after finalize(). */
#include "argument.h"
#include "block.h"
#include "buffer.h"
#include "error.h"
#include "session.h"
#include "type.h"

struct share_object {
    PyObject_HEAD PyObject *weak;
    struct pyweft_memory *memory; /* of the group; the handle leads to the members' blocks */
    shmemx_share_t handle;
    int size;
};

static PyTypeObject *share_type;

static void release_share(void *handle) {
    shmemx_share_release(handle);
}

/* --- Making ---------------------------------------------------------------------------------- */

static PyObject *make(shmemx_share_t handle, shmemx_block_t block, int size) {
    struct pyweft_memory *memory = pyweft_memory_wrap(
        NULL, shmemx_block_bytes(block), shmemx_block_gpu(block), release_share, handle);
    struct share_object *share = memory ? PyObject_New(struct share_object, share_type) : NULL;
    if (!share) {
        if (memory)
            pyweft_memory_drop(memory);
        else
            shmemx_share_release(handle);
        return NULL;
    }
    share->weak = NULL;
    share->memory = memory;
    share->handle = handle;
    share->size = size;
    return (PyObject *)share;
}

PyObject *pyweft_share_make(shmemx_block_t block, PyObject *list, uint64_t tag) {
    shmemx_share_t handle;
    int count, error;
    int *pes = pyweft_argument_pes("Block.share", list, &count);
    if (!pes)
        return NULL;
    PYWEFT_WITHOUT_GIL(error, shmemx_share_attach(block, pes, count, tag, &handle));
    PyMem_Free(pes);
    if (error)
        return pyweft_error_raise("Block.share", error);
    return make(handle, block, count);
}

static void dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_ClearWeakRefs(self);
    pyweft_memory_drop(((struct share_object *)self)->memory);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* --- Methods --------------------------------------------------------------------------------- */

/* Returns the address of a member's block, or NULL with an exception. */
static char *find(struct share_object *share, const char *call, PyObject *object) {
    int member = -1;
    if (!pyweft_memory_check(share->memory, call, "this Share") ||
        !pyweft_argument_int(call, "member", object, &member))
        return NULL;
    char *at = member >= 0 && member < share->size ? shmemx_share_ptr(share->handle, member) : NULL;
    if (!at)
        PyErr_Format(PyExc_ValueError, "%s: argument member is %d: the share has members 0 to %d",
                     call, member, share->size - 1);
    return at;
}

PYWEFT_FUNCTION(ptr) {
    static const struct pyweft_signature signature = {"Share.ptr", 1, 1, {"member"}};
    PyObject *in[1];
    if (!pyweft_arguments_sort(&signature, args, nargs, names, in))
        return NULL;
    char *at = find((struct share_object *)self, signature.call, in[0]);
    return at ? PyLong_FromVoidPtr(at) : NULL;
}

PYWEFT_FUNCTION(view) {
    static const struct pyweft_signature signature = {
        "Share.view", 1, 4, {"member", "shape", "dtype", "offset"}};
    struct share_object *share = (struct share_object *)self;
    PyObject *in[4];
    if (!pyweft_arguments_sort(&signature, args, nargs, names, in))
        return NULL;
    char *at = find(share, signature.call, in[0]);
    if (!at)
        return NULL;
    return pyweft_buffer_view(signature.call, share->memory, at, share->memory->bytes,
                              pyweft_dtype_of_format("B", 1), in + 1);
}

static PyObject *release(PyObject *self, PyObject *unused) {
    struct share_object *share = (struct share_object *)self;
    (void)unused;
    if (!pyweft_memory_check(share->memory, "Share.release", "this Share"))
        return NULL;
    atomic_store(&share->memory->freed, true);
    Py_RETURN_NONE;
}

PYWEFT_GETTER(size, struct share_object, PyLong_FromLong(object->size))
PYWEFT_GETTER(nbytes, struct share_object, PyLong_FromSize_t(object->memory->bytes))

static PyObject *get_handle(PyObject *self, void *unused) {
    struct share_object *share = (struct share_object *)self;
    (void)unused;
    if (!pyweft_memory_check(share->memory, "Share.handle", "this Share"))
        return NULL;
    return PyLong_FromVoidPtr(share->handle);
}

static PyObject *repr(PyObject *self) {
    const struct share_object *share = (struct share_object *)self;
    return PyUnicode_FromFormat("<weft.Share of %d member%s, %zu bytes each%s>", share->size,
                                share->size == 1 ? "" : "s", share->memory->bytes,
                                atomic_load(&share->memory->freed) ? ", released" : "");
}

/* --- The type -------------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    PYWEFT_METHOD(
        ptr, "ptr($self, /, member)\n--\n\n"
             "Returns the address of a member's block for this PE, or for its GPU if the blocks\n"
             "are on GPUs. `member` is an index into the list."),
    PYWEFT_METHOD(view,
                  "view($self, /, member, shape=None, dtype='uint8', offset=0)\n--\n\n"
                  "Returns a Buffer over a member's block, from byte `offset` on, which keeps the\n"
                  "memory alive."),
    {"release", release, METH_NOARGS,
     "release($self, /)\n--\n\n"
     "Releases the share. Local. Its memory is freed with its last Buffer and array. A\n"
     "Share that is garbage-collected is released, too."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"size", get_size, NULL, "Number of members.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of each member's block.", NULL},
    {"handle", get_handle, NULL, "The shmemx_share_t for C code, as a number.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PYWEFT_WEAK_MEMBERS(struct share_object);

static PyType_Slot slots[] = {
    {Py_tp_doc, "Access of a group of PEs to each other's blocks, made by Block.share."},
    {Py_tp_dealloc, dealloc},
    {Py_tp_repr, repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "weft.Share",
    .basicsize = sizeof(struct share_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

bool pyweft_share_define(PyObject *module) {
    share_type = pyweft_type_define(module, &spec);
    return share_type != NULL;
}
