/* SPDX-License-Identifier: BSD-3-Clause */
/* The type Block. A block made by Python lives as long as a Block, a Buffer or an array that uses
 * it. A block made by C code is only borrowed, and looked up again at each use. */
#include "block.h"
#include <pthread.h>
#include "argument.h"
#include "buffer.h"
#include "error.h"
#include "session.h"
#include "type.h"

struct block_object {
    PyObject_HEAD PyObject *weak;
    struct pyweft_memory *memory;
    shmemx_block_t handle;
    bool borrowed; /* made by C code */
};

static PyTypeObject *block_type;

/* --- Blocks made by Python -------------------------------------------------------------------- */

/* Protects the list, because the last holder may let go without the GIL. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static struct pyweft_memory *made;

static void enlist(struct pyweft_memory *memory) {
    pthread_mutex_lock(&changing);
    memory->next = made;
    made = memory;
    pthread_mutex_unlock(&changing);
}

static void end_made(void *handle) {
    pthread_mutex_lock(&changing);
    struct pyweft_memory **link = &made;
    while (*link && (*link)->owner != handle)
        link = &(*link)->next;
    if (*link)
        *link = (*link)->next;
    pthread_mutex_unlock(&changing);
    shmemx_block_free(handle);
}

/* Returns the block's memory with a reference for the caller, or NULL if Python has not made the
 * block (*known is false), or if it is being freed. */
static struct pyweft_memory *find_made(shmemx_block_t handle, bool *known) {
    pthread_mutex_lock(&changing);
    struct pyweft_memory *memory = made;
    while (memory && memory->owner != handle)
        memory = memory->next;
    *known = memory != NULL;
    if (memory && !pyweft_memory_hold_live(memory))
        memory = NULL;
    pthread_mutex_unlock(&changing);
    return memory;
}

/* --- Making ---------------------------------------------------------------------------------- */

static PyObject *make(struct pyweft_memory *memory, shmemx_block_t handle, bool borrowed) {
    struct block_object *block = PyObject_New(struct block_object, block_type);
    if (!block) {
        pyweft_memory_drop(memory);
        return NULL;
    }
    block->weak = NULL;
    block->memory = memory;
    block->handle = handle;
    block->borrowed = borrowed;
    return (PyObject *)block;
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *options) {
    static char *names[] = {"space", "nbytes", NULL};
    PyObject *in[2];
    shmemx_space_t space = SHMEMX_SPACE_HOST;
    shmemx_block_t handle;
    size_t bytes = 0;
    int error;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, options, "OO:Block", names, &in[0], &in[1]) ||
        !pyweft_session_check("Block") || !pyweft_argument_space("Block", in[0], &space) ||
        !pyweft_argument_size("Block", "nbytes", in[1], &bytes))
        return NULL;
    PYWEFT_WITHOUT_GIL(error, shmemx_block_alloc(space, bytes, &handle));
    if (error)
        return pyweft_error_raise("Block", error);
    struct pyweft_memory *memory = pyweft_memory_wrap(shmemx_block_ptr(handle), bytes,
                                                      shmemx_block_gpu(handle), end_made, handle);
    if (!memory) {
        shmemx_block_free(handle);
        return NULL;
    }
    enlist(memory);
    return make(memory, handle, false);
}

static void dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_ClearWeakRefs(self);
    pyweft_memory_drop(((struct block_object *)self)->memory);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *borrow(shmemx_block_t handle) {
    struct pyweft_memory *memory = pyweft_memory_wrap(
        shmemx_block_ptr(handle), shmemx_block_bytes(handle), shmemx_block_gpu(handle), NULL, NULL);
    return memory ? make(memory, handle, true) : NULL;
}

PYWEFT_FUNCTION(block_of) {
    static const struct pyweft_signature signature = {"block_of", 1, 1, {"ptr"}};
    PyObject *in[1];
    uint64_t address;
    bool known;
    (void)self;
    if (!pyweft_arguments_sort(&signature, args, nargs, names, in) ||
        !pyweft_argument_uint64(signature.call, "ptr", in[0], &address))
        return NULL;
    shmemx_block_t handle = shmemx_block_find((const void *)(uintptr_t)address);
    if (!handle)
        Py_RETURN_NONE;
    struct pyweft_memory *memory = find_made(handle, &known);
    if (!known)
        return borrow(handle);
    if (memory && !atomic_load(&memory->freed))
        return make(memory, handle, false);
    if (memory)
        pyweft_memory_drop(memory);
    Py_RETURN_NONE;
}

/* --- Methods and attributes ------------------------------------------------------------------ */

static bool check(struct block_object *block, const char *call) {
    if (!pyweft_memory_check(block->memory, call, "this Block"))
        return false;
    if (!block->borrowed || shmemx_block_find(block->memory->begin) == block->handle)
        return true;
    PyErr_Format(PyExc_ValueError, "%s: this Block was freed", call);
    return false;
}

PYWEFT_FUNCTION(share) {
    static const struct pyweft_signature signature = {"Block.share", 1, 2, {"pes", "tag"}};
    struct block_object *block = (struct block_object *)self;
    PyObject *in[2];
    uint64_t tag = 0;
    if (!pyweft_session_check(signature.call) || !check(block, signature.call) ||
        !pyweft_arguments_sort(&signature, args, nargs, names, in) ||
        !pyweft_argument_uint64(signature.call, "tag", in[1], &tag))
        return NULL;
    return pyweft_share_make(block->handle, in[0], tag);
}

/* C code may free its block at any time, so arrays must not use the memory. */
PYWEFT_FUNCTION(view) {
    static const struct pyweft_signature signature = {
        "Block.view", 0, 3, {"shape", "dtype", "offset"}};
    struct block_object *block = (struct block_object *)self;
    PyObject *in[3];
    if (!check(block, signature.call) || !pyweft_arguments_sort(&signature, args, nargs, names, in))
        return NULL;
    if (block->borrowed)
        return PyErr_Format(
            PyExc_ValueError,
            "Block.view: this Block was made by C code, which may free its memory at any time");
    return pyweft_buffer_view(signature.call, block->memory, block->memory->begin,
                              block->memory->bytes, pyweft_dtype_of_format("B", 1), in);
}

static PyObject *free_block(PyObject *self, PyObject *unused) {
    struct block_object *block = (struct block_object *)self;
    (void)unused;
    if (!check(block, "Block.free"))
        return NULL;
    if (block->borrowed)
        return PyErr_Format(PyExc_ValueError,
                            "Block.free: this Block was made by C code, which must free it");
    atomic_store(&block->memory->freed, true);
    Py_RETURN_NONE;
}

PYWEFT_GETTER(ptr, struct block_object,
              check(object, "Block.ptr") ? PyLong_FromVoidPtr(object->memory->begin) : NULL)
PYWEFT_GETTER(handle, struct block_object,
              check(object, "Block.handle") ? PyLong_FromVoidPtr(object->handle) : NULL)
PYWEFT_GETTER(nbytes, struct block_object, PyLong_FromSize_t(object->memory->bytes))
PYWEFT_GETTER(space, struct block_object,
              PyUnicode_FromString(object->memory->space == SHMEMX_SPACE_DEVICE ? "device"
                                                                                : "host"))

static PyObject *repr(PyObject *self) {
    const struct pyweft_memory *memory = ((struct block_object *)self)->memory;
    return PyUnicode_FromFormat("<weft.Block of %zu bytes, in %s memory%s>", memory->bytes,
                                memory->space == SHMEMX_SPACE_DEVICE ? "GPU" : "host",
                                atomic_load(&memory->freed) ? ", freed" : "");
}

static PyObject *compare(PyObject *self, PyObject *other, int how) {
    if (!Py_IS_TYPE(other, block_type) || (how != Py_EQ && how != Py_NE))
        return Py_NewRef(Py_NotImplemented);
    bool same = ((struct block_object *)self)->handle == ((struct block_object *)other)->handle;
    return PyBool_FromLong(same == (how == Py_EQ));
}

static Py_hash_t hash(PyObject *self) {
    return (Py_hash_t)((uintptr_t)((struct block_object *)self)->handle >> 4);
}

static PyMethodDef methods[] = {
    PYWEFT_METHOD(
        share,
        "share($self, /, pes, tag=0)\n--\n\n"
        "Returns a Share of the blocks of the listed PEs. Collective over them: all pass the\n"
        "same list and tag, and blocks of the same size and space. Called again with the same\n"
        "list and tag, it returns the same memory without communication."),
    PYWEFT_METHOD(view,
                  "view($self, /, shape=None, dtype='uint8', offset=0)\n--\n\n"
                  "Returns a Buffer over the block, from byte `offset` on, which keeps the memory\n"
                  "alive."),
    {"free", free_block, METH_NOARGS,
     "free($self, /)\n--\n\n"
     "Releases the block. Local. The memory is freed with its last Buffer, array and\n"
     "Share. A Block that is garbage-collected is released, too."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"ptr", get_ptr, NULL, "Address of the first byte.", NULL},
    {"nbytes", get_nbytes, NULL, "Size in bytes.", NULL},
    {"space", get_space, NULL, "\"host\" or \"device\".", NULL},
    {"handle", get_handle, NULL, "The shmemx_block_t for C code, as a number.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PYWEFT_WEAK_MEMBERS(struct block_object);

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Block(space, nbytes)\n--\n\n"
     "Memory of this PE in space \"host\" or \"device\", zeroed, that other PEs can share.\n"
     "Made and freed locally, at any time, by any thread."},
    {Py_tp_new, create},
    {Py_tp_dealloc, dealloc},
    {Py_tp_repr, repr},
    {Py_tp_richcompare, compare},
    {Py_tp_hash, hash},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "weft.Block",
    .basicsize = sizeof(struct block_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

PyMethodDef pyweft_block_methods[] = {
    PYWEFT_METHOD(block_of,
                  "block_of(ptr)\n--\n\n"
                  "Returns the block of this PE that contains the address, or None. Local."),
    {NULL, NULL, 0, NULL},
};

bool pyweft_block_define(PyObject *module) {
    block_type = pyweft_type_define(module, &spec);
    return block_type != NULL;
}
