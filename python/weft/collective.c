/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives on arrays, with dest before source as in C. */
#include "argument.h"
#include "scan.h"
#include "session.h"
#include "vectors.h"

static int all_reduce_of(const struct pyweft_vectors *v, weft_dtype dtype) {
    return weft_all_reduce(v->on.team, v->dest.data, v->source.data, v->source.nelems, dtype,
                           v->on.op, v->on.stream);
}

PYWEFT_FUNCTION(all_reduce) {
    static const struct pyweft_signature signature = {
        "all_reduce", 1, 3, {"dest", "source", "op", "team", "stream"}};
    static const char *const ops[] = {"sum", "avg", "max", "min", "prod", "and", "or", "xor", NULL};
    enum { BITWISE = 5 }; /* the first bitwise one; they have the order of pyweft_proposed_call */
    struct pyweft_vectors v = {.on.call = signature.call};
    PyObject *in[5];
    int op = 0;
    (void)self;
    bool right = pyweft_arguments_sort(&signature, args, nargs, names, in);
    if (!pyweft_operator_open(&v.on, in[3], in[4]))
        return NULL;
    right = right && pyweft_argument_choice(signature.call, "op", in[2], ops, &op);
    if (op >= BITWISE)
        return pyweft_bitwise_reduce(&v, in[0], in[1], op - BITWISE);
    v.on.op = (weft_op)(WEFT_SUM + op);
    right = right && pyweft_vectors_take(&v, in[0], in[1]) &&
            pyweft_array_check_nelems(signature.call, "dest", &v.dest, v.source.nelems,
                                      "as many as source has");
    return pyweft_vectors_run(&v, right, all_reduce_of);
}

static int reduce_scatter_of(const struct pyweft_vectors *v, weft_dtype dtype) {
    return weft_reduce_scatter(v->on.team, v->dest.data, v->source.data, v->nelems, dtype, v->on.op,
                               v->on.stream);
}

PYWEFT_FUNCTION(reduce_scatter) {
    static const struct pyweft_signature signature = {
        "reduce_scatter", 2, 3, {"dest", "source", "op", "team", "stream"}};
    struct pyweft_vectors v = {.on.call = signature.call};
    PyObject *in[5];
    (void)self;
    bool right = pyweft_arguments_sort(&signature, args, nargs, names, in);
    if (!pyweft_operator_open(&v.on, in[3], in[4]))
        return NULL;
    right = right && pyweft_operator_take_op(&v.on, in[2]) &&
            pyweft_vectors_take(&v, in[0], in[1]) &&
            pyweft_vectors_divide(&v, "source", &v.source, "dest", &v.dest);
    return pyweft_vectors_run(&v, right, reduce_scatter_of);
}

static int all_gather_of(const struct pyweft_vectors *v, weft_dtype dtype) {
    return weft_all_gather(v->on.team, v->dest.data, v->source.data, v->nelems, dtype,
                           v->on.stream);
}

PYWEFT_FUNCTION(all_gather) {
    static const struct pyweft_signature signature = {
        "all_gather", 2, 2, {"dest", "source", "team", "stream"}};
    struct pyweft_vectors v = {.on.call = signature.call};
    PyObject *in[4];
    (void)self;
    bool right = pyweft_arguments_sort(&signature, args, nargs, names, in);
    if (!pyweft_operator_open(&v.on, in[2], in[3]))
        return NULL;
    right = right && pyweft_vectors_take(&v, in[0], in[1]) &&
            pyweft_vectors_divide(&v, "dest", &v.dest, "source", &v.source);
    return pyweft_vectors_run(&v, right, all_gather_of);
}

/* Only the root's source is read. */
static bool take_broadcast(struct pyweft_vectors *v, PyObject *dest, PyObject *source) {
    bool gives = shmem_team_my_pe(v->on.team) == v->root;
    if (v->root < 0 || v->root >= v->on.size) {
        PyErr_Format(PyExc_ValueError, "%s: argument root is %d: the team has ranks 0 to %d",
                     v->on.call, v->root, v->on.size - 1);
        return false;
    }
    return pyweft_vectors_take(v, dest, gives ? source : NULL) &&
           pyweft_array_check_nelems(v->on.call, "dest", &v->dest, v->source.nelems,
                                     "as many as source has");
}

static int broadcast_of(const struct pyweft_vectors *v, weft_dtype dtype) {
    return weft_broadcast(v->on.team, v->dest.data, v->source.data, v->source.nelems, dtype,
                          v->root, v->on.stream);
}

PYWEFT_FUNCTION(broadcast) {
    static const struct pyweft_signature signature = {
        "broadcast", 1, 3, {"dest", "source", "root", "team", "stream"}};
    struct pyweft_vectors v = {.on.call = signature.call};
    PyObject *in[5];
    (void)self;
    bool right = pyweft_arguments_sort(&signature, args, nargs, names, in);
    if (!pyweft_operator_open(&v.on, in[3], in[4]))
        return NULL;
    right = right && pyweft_argument_int(signature.call, "root", in[2], &v.root) &&
            take_broadcast(&v, in[0], in[1]);
    return pyweft_vectors_run(&v, right, broadcast_of);
}

/* Committed memory stays, so an nbytes that cannot be read must not commit any. */
PYWEFT_FUNCTION(reserve) {
    static const struct pyweft_signature signature = {"reserve", 2, 2, {"team", "nbytes"}};
    struct pyweft_operator on = {.call = signature.call};
    PyObject *in[2];
    size_t bytes = 0;
    int error;
    (void)self;
    bool right = pyweft_arguments_sort(&signature, args, nargs, names, in);
    if (!pyweft_operator_open(&on, in[0], NULL))
        return NULL;
    right = right && pyweft_argument_size(signature.call, "nbytes", in[1], &bytes);
    PYWEFT_WITHOUT_GIL(error, weft_reserve(on.team, right ? bytes : (size_t)PTRDIFF_MAX));
    return pyweft_operator_close(&on, error);
}

#define COLLECTIVE                                                                            \
    "\n\nCollective over the team. Without a stream, this thread works, and the arrays are\n" \
    "any contiguous host memory; symmetric ones avoid a copy. On return dest is\n"            \
    "complete and source may be overwritten; a wrong argument on one member is a\n"           \
    "ValueError on all, before anything is written. With a stream, dest must be\n"            \
    "symmetric, and source too if it is reduced; GPU memory needs a stream, except\n"         \
    "for 'and', 'or' and 'xor'; errors are raised on this member only."

PyMethodDef pyweft_collective_methods[] = {
    PYWEFT_METHOD(
        all_reduce,
        "all_reduce(dest, source=None, op='sum', *, team=None, stream=None)\n--\n\n"
        "dest[i] = op over the members' source[i]: 'sum', 'avg', 'max', 'min' or 'prod'.\n"
        "Without a source, reduces dest in place. The result has the same bits on all members\n"
        "and in every run. Integers also have 'and', 'or' and 'xor', without a stream, if\n"
        "both arrays are symmetric and the same objects on all members." COLLECTIVE),
    PYWEFT_METHOD(
        all_gather,
        "all_gather(dest, source, *, team=None, stream=None)\n--\n\n"
        "Concatenates the members' sources in dest, in order of rank: dest has team.size\n"
        "times as many elements." COLLECTIVE),
    PYWEFT_METHOD(
        reduce_scatter,
        "reduce_scatter(dest, source, op='sum', *, team=None, stream=None)\n--\n\n"
        "source has one part for each member, in order of rank; dest = op over the members'\n"
        "parts for this one." COLLECTIVE),
    PYWEFT_METHOD(broadcast,
                  "broadcast(dest, source=None, root=0, *, team=None, stream=None)\n--\n\n"
                  "Copies the source of the member of rank root to every dest. The other members'\n"
                  "source is ignored; None means dest." COLLECTIVE),
    PYWEFT_METHOD(
        reserve,
        "reserve(team, nbytes)\n--\n\n"
        "Commits the team's workspace in advance, so that no later call has to. Collective\n"
        "over the team."),
    {NULL, NULL, 0, NULL},
};
