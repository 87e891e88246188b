/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives in which every member sends to every other: all_to_all, all_to_alls, all_to_allv. */
#include "argument.h"
#include "session.h"
#include "vectors.h"

static bool check_shares(const struct pyweft_vectors *v) {
    if (v->source.nelems % (size_t)v->on.size == 0)
        return pyweft_array_check_nelems(v->on.call, "dest", &v->dest, v->source.nelems,
                                         "as many as source has");
    PyErr_Format(PyExc_ValueError,
                 "%s: argument source has %zu elements, which cannot be divided by %d members",
                 v->on.call, v->source.nelems, v->on.size);
    return false;
}

static int all_to_all_of(const struct pyweft_vectors *v, weft_dtype dtype) {
    return weft_all_to_all(v->on.team, v->dest.data, v->source.data,
                           v->source.nelems / (size_t)v->on.size, dtype, v->on.stream);
}

PYWEFT_FUNCTION(all_to_all) {
    static const struct pyweft_signature signature = {
        "all_to_all", 2, 2, {"dest", "source", "team", "stream"}};
    struct pyweft_vectors v = {.on.call = signature.call};
    PyObject *in[4];
    (void)self;
    bool right = pyweft_arguments_sort(&signature, args, nargs, names, in);
    if (!pyweft_operator_open(&v.on, in[2], in[3]))
        return NULL;
    right = right && pyweft_vectors_take(&v, in[0], in[1]) && check_shares(&v);
    return pyweft_vectors_run(&v, right, all_to_all_of);
}

/* --- all_to_alls ----------------------------------------------------------------------------- */

/* Elements of each part, and their strides in dest and source. */
struct part_strides {
    size_t nelems, dst, sst;
};

/* Selects the C function by the element size. */
static int move_strided(const struct pyweft_vectors *v, const struct part_strides *strided) {
#define MOVE(BYTES, NAME)                                                                         \
    case BYTES:                                                                                   \
        return shmem_##NAME##_alltoalls(v->on.team, (void *)v->dest.data, (void *)v->source.data, \
                                        (ptrdiff_t)strided->dst, (ptrdiff_t)strided->sst,         \
                                        strided->nelems);
    _Static_assert(sizeof(long double) == 16, "long double serves elements of 16 bytes");
    switch (v->dest.dtype->bytes) {
        MOVE(1, int8) MOVE(2, int16) MOVE(4, int32) MOVE(8, int64) MOVE(16, longdouble)
    }
#undef MOVE
    return -EINVAL;
}

/* Returns how many elements each part can have with this stride. */
static size_t elements_in(const struct pyweft_array *array, size_t stride, int parts) {
    return array->nelems == 0 ? 0 : ((array->nelems - 1) / stride + 1) / (size_t)parts;
}

/* Returns the bytes from the first element to the last. */
static size_t extent(const struct pyweft_vectors *v, size_t nelems, size_t stride) {
    size_t all = nelems * (size_t)v->on.size;
    return all == 0 ? 0 : ((all - 1) * stride + 1) * v->dest.dtype->bytes;
}

static bool check_strided(const struct pyweft_vectors *v, struct part_strides *strided,
                          PyObject *nelems) {
    const char *call = v->on.call;
    if (strided->dst == 0 || strided->sst == 0) {
        PyErr_Format(PyExc_ValueError, "%s: argument %s is 0: pass 1 or more", call,
                     strided->dst ? "sst" : "dst");
        return false;
    }
    size_t in_dest = elements_in(&v->dest, strided->dst, v->on.size);
    size_t in_source = elements_in(&v->source, strided->sst, v->on.size);
    size_t most = in_dest < in_source ? in_dest : in_source;
    strided->nelems = most;
    if (!nelems || nelems == Py_None)
        return true;
    if (!pyweft_argument_size(call, "nelems", nelems, &strided->nelems))
        return false;
    if (strided->nelems <= most)
        return true;
    PyErr_Format(PyExc_ValueError,
                 "%s: argument nelems is %zu: dest has %zu elements and source %zu, enough for %zu "
                 "per member",
                 call, strided->nelems, v->dest.nelems, v->source.nelems, most);
    return false;
}

static bool take_strided(struct pyweft_vectors *v, struct part_strides *strided,
                         PyObject *const *in) {
    return pyweft_vectors_take(v, in[0], in[1]) &&
           pyweft_argument_size(v->on.call, "dst", in[2], &strided->dst) &&
           pyweft_argument_size(v->on.call, "sst", in[3], &strided->sst) &&
           check_strided(v, strided, in[4]) &&
           pyweft_vectors_check_symmetric(v, extent(v, strided->nelems, strided->dst),
                                          extent(v, strided->nelems, strided->sst), false);
}

PYWEFT_FUNCTION(all_to_alls) {
    static const struct pyweft_signature signature = {
        "all_to_alls", 2, 5, {"dest", "source", "dst", "sst", "nelems", "team"}};
    struct pyweft_vectors v = {.on.call = signature.call};
    struct part_strides strided = {.dst = 1, .sst = 1};
    PyObject *in[6];
    (void)self;
    bool right = pyweft_arguments_sort(&signature, args, nargs, names, in);
    if (!pyweft_operator_open(&v.on, in[5], NULL))
        return NULL;
    right = right && take_strided(&v, &strided, in);
    const int64_t numbers[] = {(int64_t)strided.nelems, (int64_t)strided.dst, (int64_t)strided.sst};
    struct pyweft_proposal *proposals =
        pyweft_vectors_agree(&v, right, PYWEFT_CALL_ALL_TO_ALLS, numbers, 3, NULL);
    int error = 0;
    if (!proposals)
        return NULL;
    PyMem_Free(proposals);
    PYWEFT_WITHOUT_GIL(error, move_strided(&v, &strided));
    return pyweft_vectors_close(&v, error);
}

/* --- all_to_allv ----------------------------------------------------------------------------- */

/* The parts of one array: their sizes and offsets. Without offsets the parts follow each other. */
struct parts {
    size_t *nelems, *offsets;
};

static bool take_parts(struct parts *parts, const char *call, const char *const *names,
                       PyObject *nelems, PyObject *offsets, size_t count) {
    parts->nelems = pyweft_argument_sizes(call, names[0], nelems, count);
    if (!parts->nelems)
        return false;
    if (!offsets || offsets == Py_None)
        return true;
    parts->offsets = pyweft_argument_sizes(call, names[1], offsets, count);
    return parts->offsets != NULL;
}

static bool check_parts(const struct parts *parts, const char *call, const char *name,
                        const struct pyweft_array *array, size_t count) {
    size_t next = 0;
    for (size_t i = 0; i < count; i++) {
        size_t begin = parts->offsets ? parts->offsets[i] : next;
        if (begin > array->nelems || parts->nelems[i] > array->nelems - begin) {
            PyErr_Format(PyExc_ValueError,
                         "%s: part %zu of %s has %zu elements from element %zu on, but the array "
                         "has %zu in all",
                         call, i, name, parts->nelems[i], begin, array->nelems);
            return false;
        }
        next = begin + parts->nelems[i];
    }
    return true;
}

static void drop_parts(struct parts *parts) {
    PyMem_Free(parts->nelems);
    PyMem_Free(parts->offsets);
}

struct exchange_parts {
    struct pyweft_vectors v;
    struct parts dest, source;
    size_t nparts;
};

static bool take_exchange(struct exchange_parts *exchange, PyObject *const *in) {
    static const char *const dest[] = {"dest_nelems", "dest_offsets"};
    static const char *const source[] = {"source_nelems", "source_offsets"};
    const char *call = exchange->v.on.call;
    if (!pyweft_vectors_take(&exchange->v, in[0], in[1]) ||
        !pyweft_argument_size(call, "nparts", in[6], &exchange->nparts))
        return false;
    if (exchange->nparts < 1 || exchange->nparts > 1 << 20) {
        PyErr_Format(PyExc_ValueError, "%s: argument nparts is %zu: pass 1 or more", call,
                     exchange->nparts);
        return false;
    }
    size_t count = exchange->nparts * (size_t)exchange->v.on.size;
    return take_parts(&exchange->dest, call, dest, in[2], in[4], count) &&
           take_parts(&exchange->source, call, source, in[3], in[5], count) &&
           check_parts(&exchange->dest, call, "dest", &exchange->v.dest, count) &&
           check_parts(&exchange->source, call, "source", &exchange->v.source, count);
}

PYWEFT_FUNCTION(all_to_allv) {
    static const struct pyweft_signature signature = {
        "all_to_allv",
        4,
        4,
        {"dest", "source", "dest_nelems", "source_nelems", "dest_offsets", "source_offsets",
         "nparts", "team", "stream"}};
    struct exchange_parts exchange = {.v.on.call = signature.call, .nparts = 1};
    struct pyweft_vectors *v = &exchange.v;
    PyObject *in[9];
    int error;
    (void)self;
    bool right = pyweft_arguments_sort(&signature, args, nargs, names, in);
    if (!pyweft_operator_open(&v->on, in[7], in[8]))
        return NULL;
    right = right && take_exchange(&exchange, in);
    PYWEFT_WITHOUT_GIL(error, weft_all_to_allv(v->on.team, v->dest.data, exchange.dest.nelems,
                                               exchange.dest.offsets, v->source.data,
                                               exchange.source.nelems, exchange.source.offsets,
                                               exchange.nparts, pyweft_vectors_type(v, right),
                                               v->on.stream));
    drop_parts(&exchange.dest);
    drop_parts(&exchange.source);
    return pyweft_vectors_close(v, error);
}

PyMethodDef pyweft_exchange_methods[] = {
    PYWEFT_METHOD(
        all_to_alls,
        "all_to_alls(dest, source, dst=1, sst=1, nelems=None, *, team=None)\n--\n\n"
        "dest[(r * nelems + i) * dst] = source[(rank * nelems + i) * sst] of the member of\n"
        "rank r, for `nelems` elements from each; None: as many as fit both arrays. Elements\n"
        "between them are left alone.\n\n"
        "Collective over the team. dest and source are symmetric, in either space, the same\n"
        "objects on all members, and do not overlap. A wrong argument on one member is a\n"
        "ValueError on all, before anything is written. RuntimeError: before init(), after\n"
        "finalize(), or a peer failed."),
    PYWEFT_METHOD(
        all_to_all,
        "all_to_all(dest, source, *, team=None, stream=None)\n--\n\n"
        "Both arrays have one part for each member, of equal size, in order of rank: part r\n"
        "of dest becomes this member's part of rank r's source. They must not overlap.\n\n"
        "Collective over the team; a wrong argument on one member is a ValueError on all."),
    PYWEFT_METHOD(
        all_to_allv,
        "all_to_allv(dest, source, dest_nelems, source_nelems, *, dest_offsets=None,\n"
        "            source_offsets=None, nparts=1, team=None, stream=None)\n--\n\n"
        "Sends any number of elements from each member to each other: source_nelems[r] to\n"
        "rank r, from element source_offsets[r] of source on, and receives dest_nelems[r]\n"
        "from it. Without offsets the parts follow each other. ValueError on all members if\n"
        "one sends a number that the receiver does not expect. With nparts, entry r * nparts\n"
        "+ k is part k for, or from, rank r. Streams are not supported.\n\n"
        "Collective over the team."),
    {NULL, NULL, 0, NULL},
};
