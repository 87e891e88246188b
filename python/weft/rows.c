/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges whose numbers are in arrays: all_to_allv_on_device, kv_shuffle. */
#include "argument.h"
#include "operator.h"
#include "session.h"

/* --- all_to_allv_on_device -------------------------------------------------------------------- */

enum { DEST, SOURCE, DEST_SPLITS, DEST_OFFSETS, SOURCE_SPLITS, SOURCE_OFFSETS, ARRAYS };

struct row_call {
    struct pyweft_operator on;
    weft_row_exchange shape;
    struct pyweft_array arrays[ARRAYS];
};

static bool take_numbers(struct row_call *c, const char *const *names, PyObject *const *in) {
    size_t expected = c->shape.nparts * (size_t)c->on.size;
    for (int i = DEST_SPLITS; i < ARRAYS; i++) {
        enum pyweft_array_use use = i < SOURCE_SPLITS ? PYWEFT_ARRAY_WRITTEN : PYWEFT_ARRAY_READ;
        if (i == SOURCE_OFFSETS && (!in[i] || in[i] == Py_None))
            continue;
        if (!pyweft_array_take_typed(&c->arrays[i], c->on.call, names[i], in[i], use, c->on.stream,
                                     "int64") ||
            !pyweft_array_check_nelems(c->on.call, names[i], &c->arrays[i], expected,
                                       "nparts for each member"))
            return false;
    }
    return true;
}

/* Returns the elements of a row: of all dimensions but the first. */
static size_t cols_of(const struct pyweft_array *array) {
    size_t cols = 1;
    for (int i = 1; i < array->ndim && i < PYWEFT_DIMS_MAX; i++)
        cols *= (size_t)array->shape[i];
    return cols;
}

static bool take_rows(struct row_call *c, const char *const *names, PyObject *const *in) {
    struct pyweft_array *dest = &c->arrays[DEST], *source = &c->arrays[SOURCE];
    if (!pyweft_array_take(dest, c->on.call, names[DEST], in[DEST], PYWEFT_ARRAY_WRITTEN,
                           c->on.stream) ||
        !pyweft_array_take(source, c->on.call, names[SOURCE], in[SOURCE], PYWEFT_ARRAY_READ,
                           c->on.stream) ||
        !pyweft_array_check_dtype(c->on.call, "dest", dest, "source", source))
        return false;
    c->shape.cols = cols_of(source);
    if (dest->ndim < 1 || source->ndim < 1 || cols_of(dest) != c->shape.cols) {
        PyErr_Format(PyExc_ValueError,
                     "%s: argument dest has rows of %zu elements, but source has rows of %zu: pass "
                     "arrays of the same rows",
                     c->on.call, cols_of(dest), c->shape.cols);
        return false;
    }
    c->shape.dest_rows = (size_t)dest->shape[0];
    c->shape.source_rows = (size_t)source->shape[0];
    c->shape.dtype = source->dtype->operand;
    return true;
}

/* Reads an optional truth value. */
static bool take_bool(PyObject *object, bool *value) {
    int found = object ? PyObject_IsTrue(object) : *value;
    *value = found > 0;
    return found >= 0;
}

static bool take_exchange(struct row_call *c, const char *const *names, PyObject *const *in) {
    return pyweft_argument_size(c->on.call, "nparts", in[6], &c->shape.nparts) &&
           take_bool(in[7], &c->shape.source_by_part) && take_bool(in[8], &c->shape.dest_by_part) &&
           pyweft_argument_size(c->on.call, "align", in[9], &c->shape.align) &&
           take_rows(c, names, in) && take_numbers(c, names, in);
}

static int exchange_rows(const struct row_call *c) {
    const struct pyweft_array *a = c->arrays;
    return weft_all_to_allv_on_device(
        c->on.team, &c->shape, a[DEST].data, (int64_t *)a[DEST_SPLITS].data,
        (int64_t *)a[DEST_OFFSETS].data, a[SOURCE].data, (int64_t *)a[SOURCE_SPLITS].data,
        (int64_t *)a[SOURCE_OFFSETS].data, c->on.stream);
}

PYWEFT_FUNCTION(all_to_allv_on_device) {
    static const struct pyweft_signature signature = {
        "all_to_allv_on_device",
        5,
        6,
        {"dest", "source", "dest_splits", "dest_offsets", "source_splits", "source_offsets",
         "nparts", "source_by_part", "dest_by_part", "align", "team", "stream"}};
    struct row_call c = {.on.call = signature.call, .shape.nparts = 1};
    PyObject *in[PYWEFT_ARGUMENTS_MAX];
    int error;
    (void)self;
    bool right = pyweft_arguments_sort(&signature, args, nargs, names, in);
    if (!pyweft_operator_open(&c.on, in[10], in[11]))
        return NULL;
    right = right && take_exchange(&c, signature.names, in);
    if (!right)
        c.shape.dtype = (weft_dtype)PYWEFT_OPERATOR_REFUSES;
    PYWEFT_WITHOUT_GIL(error, exchange_rows(&c));
    for (int i = 0; i < ARRAYS; i++)
        pyweft_array_drop(&c.arrays[i]);
    return pyweft_operator_close(&c.on, error);
}

/* --- kv_shuffle ------------------------------------------------------------------------------- */

enum { PAIR, FROM, TO, TABLES };

struct kv_call {
    struct pyweft_operator on;
    weft_kv_caches shape;
    struct pyweft_array *caches, tables[TABLES];
    void **at;
};

/* Checks that a cache has blocks like those of the first one. */
static bool check_blocks(const struct kv_call *c, size_t i) {
    const struct pyweft_array *first = &c->caches[0], *cache = &c->caches[i];
    if (cache->ndim > 0 && cache->bytes == first->bytes && cache->shape[0] == first->shape[0])
        return true;
    PyErr_Format(
        PyExc_ValueError,
        "%s: cache %zu has %zu bytes in %zd blocks, but cache 0 has %zu in %zd: pass arrays "
        "of the same shape, blocks x ...",
        c->on.call, i, cache->bytes, cache->ndim > 0 ? (Py_ssize_t)cache->shape[0] : 0,
        first->bytes, first->ndim > 0 ? (Py_ssize_t)first->shape[0] : 0);
    return false;
}

static bool take_cache(struct kv_call *c, PyObject *list, size_t i) {
    PyObject *cache = PySequence_GetItem(list, (Py_ssize_t)i);
    bool right = cache &&
                 pyweft_array_take(&c->caches[i], c->on.call, "caches", cache, PYWEFT_ARRAY_WRITTEN,
                                   c->on.stream) &&
                 check_blocks(c, i);
    Py_XDECREF(cache);
    c->at[i] = c->caches[i].data;
    return right;
}

static bool take_caches(struct kv_call *c, PyObject *list) {
    Py_ssize_t count = PySequence_Size(list);
    if (count < 0)
        return false;
    c->caches = PyMem_Calloc((size_t)count + 1, sizeof *c->caches);
    c->at = PyMem_Calloc((size_t)count + 1, sizeof *c->at);
    if (!c->caches || !c->at) {
        PyErr_NoMemory();
        return false;
    }
    for (; c->shape.count < (size_t)count; c->shape.count++)
        if (!take_cache(c, list, c->shape.count))
            return false;
    if (count > 0 && c->caches[0].shape[0] > 0) {
        c->shape.blocks = (size_t)c->caches[0].shape[0];
        c->shape.block_bytes = c->caches[0].bytes / c->shape.blocks;
    }
    return true;
}

static bool take_tables(struct kv_call *c, PyObject *const *in) {
    static const char *const names[] = {"peer_and_role", "from_blocks", "to_blocks"};
    for (int i = 0; i < TABLES; i++)
        if (in[i] && in[i] != Py_None &&
            !pyweft_array_take_typed(&c->tables[i], c->on.call, names[i], in[i], PYWEFT_ARRAY_READ,
                                     c->on.stream, i == PAIR ? "int32" : "int64"))
            return false;
    if (!pyweft_array_check_nelems(c->on.call, "peer_and_role", &c->tables[PAIR], 2,
                                   "a peer and a role"))
        return false;
    return pyweft_array_check_nelems(c->on.call, "to_blocks", &c->tables[TO],
                                     c->tables[FROM].nelems, "as many as from_blocks");
}

static bool take_shuffle(struct kv_call *c, PyObject *const *in) {
    bool right = take_caches(c, in[0]) && take_tables(c, in + 1);
    c->shape.at = c->at;
    return right;
}

/* A member with wrong arguments calls the library nevertheless (operator.h), without a pair. */
static int shuffle(const struct kv_call *c, bool right) {
    return weft_kv_shuffle(
        c->on.team, &c->shape, right ? (const int32_t *)c->tables[PAIR].data : NULL,
        (const int64_t *)c->tables[FROM].data, (const int64_t *)c->tables[TO].data,
        c->tables[FROM].nelems, c->on.stream);
}

PYWEFT_FUNCTION(kv_shuffle) {
    static const struct pyweft_signature signature = {
        "kv_shuffle",
        2,
        4,
        {"caches", "peer_and_role", "from_blocks", "to_blocks", "team", "stream"}};
    struct kv_call c = {.on.call = signature.call};
    PyObject *in[PYWEFT_ARGUMENTS_MAX];
    int error;
    (void)self;
    bool right = pyweft_arguments_sort(&signature, args, nargs, names, in);
    if (!pyweft_operator_open(&c.on, in[4], in[5]))
        return NULL;
    right = right && take_shuffle(&c, in);
    PYWEFT_WITHOUT_GIL(error, shuffle(&c, right));
    for (size_t i = 0; c.caches && i <= c.shape.count; i++)
        pyweft_array_drop(&c.caches[i]);
    for (int i = 0; i < TABLES; i++)
        pyweft_array_drop(&c.tables[i]);
    PyMem_Free(c.caches);
    PyMem_Free(c.at);
    return pyweft_operator_close(&c.on, error);
}

PyMethodDef pyweft_row_methods[] = {
    PYWEFT_METHOD(
        all_to_allv_on_device,
        "all_to_allv_on_device(dest, source, dest_splits, dest_offsets, source_splits,\n"
        "                      source_offsets=None, *, nparts=1, source_by_part=False,\n"
        "                      dest_by_part=False, align=0, team=None, stream=None)\n--\n\n"
        "Sends rows to all members, in nparts parts for each: source_splits[r * nparts + k]\n"
        "rows to rank r, from row source_offsets[...] of source on. dest_splits and\n"
        "dest_offsets receive the rows of each part for this member, and where it begins in\n"
        "dest. by_part: entries are k * members + r. align: in a dest by part, the rows of each\n"
        "k begin at a multiple of it. All numbers are arrays of int64. On a stream the GPU\n"
        "reads them, and dest is symmetric.\n\n"
        "Collective over the team. ValueError on all members if one sends rows that it does\n"
        "not have, RuntimeError if one has no room for its rows; on a stream the job ends."),
    PYWEFT_METHOD(
        kv_shuffle,
        "kv_shuffle(caches, peer_and_role, from_blocks=None, to_blocks=None, *, team=None,\n"
        "           stream=None)\n--\n\n"
        "Copies blocks of caches between pairs of members. caches is a list of symmetric\n"
        "arrays of the same shape, blocks x ...; peer_and_role (int32) the rank of this\n"
        "member's peer, or -1, and 0 to send or 1 to receive. A sender copies block\n"
        "from_blocks[i] of each cache to block to_blocks[i] of its peer's; both are int64, and\n"
        "-1 in from_blocks skips an entry. On a stream the GPU reads the three arrays.\n\n"
        "Collective over the team; a wrong argument on one member is a ValueError on all."),
    {NULL, NULL, 0, NULL},
};
