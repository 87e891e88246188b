/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives on arrays: dest, then source, as in C. */
#include "argument.h"
#include "operator.h"
#include "session.h"

struct vectors {
    struct weft_operator on;
    struct weft_array dest, source;
    size_t nelems; /* of one part */
};

/* dest and source of one type. A source of None is dest itself. */
static bool take(struct vectors *vectors, PyObject *dest, PyObject *source) {
    const struct weft_operator *on = &vectors->on;
    if (!weft_array_take(&vectors->dest, on->call, "dest", dest, WEFT_ARRAY_WRITTEN, on->stream) ||
        !weft_array_take(&vectors->source, on->call, "source",
                         source && source != Py_None ? source : dest, WEFT_ARRAY_READ, on->stream))
        return false;
    return weft_array_check_dtype(on->call, "dest", &vectors->dest, "source", &vectors->source) &&
           weft_operator_check_type(on, "source", &vectors->source);
}

/* The whole has a part for each member. */
static bool divide(struct vectors *vectors, const char *whole_name, const struct weft_array *whole,
                   const char *part_name, const struct weft_array *part) {
    char because[96];
    PyOS_snprintf(because, sizeof because, "the %zu of %s times %d members", part->nelems,
                  part_name, vectors->on.size);
    vectors->nelems = part->nelems;
    return weft_array_check_nelems(vectors->on.call, whole_name, whole,
                                   part->nelems * (size_t)vectors->on.size, because);
}

static PyObject *close_vectors(struct vectors *vectors, int error) {
    weft_array_drop(&vectors->dest);
    weft_array_drop(&vectors->source);
    return weft_operator_close(&vectors->on, error);
}

/* A type that is none: the library tells the members. */
static weft_dtype type(const struct vectors *vectors, bool right) {
    return right ? vectors->source.dtype->operand : 0;
}

WEFT_FUNCTION(all_reduce) {
    static const struct weft_signature signature = {
        "all_reduce", 1, 3, {"dest", "source", "op", "team", "stream"}};
    struct vectors v = {.on.call = signature.call};
    PyObject *in[5];
    int error;
    (void)self;
    if (!weft_arguments_sort(&signature, args, nargs, names, in) ||
        !weft_operator_open(&v.on, in[3], in[4]))
        return NULL;
    bool right = weft_operator_take_op(&v.on, in[2]) && take(&v, in[0], in[1]) &&
                 weft_array_check_nelems(signature.call, "dest", &v.dest, v.source.nelems,
                                         "as many as source has");
    WEFT_BEGIN_UNLOCKED;
    error = weft_all_reduce(v.on.team, v.dest.data, v.source.data, v.source.nelems, type(&v, right),
                            v.on.op, v.on.stream);
    WEFT_END_UNLOCKED;
    return close_vectors(&v, error);
}

WEFT_FUNCTION(all_gather) {
    static const struct weft_signature signature = {
        "all_gather", 2, 2, {"dest", "source", "team", "stream"}};
    struct vectors v = {.on.call = signature.call};
    PyObject *in[4];
    int error;
    (void)self;
    if (!weft_arguments_sort(&signature, args, nargs, names, in) ||
        !weft_operator_open(&v.on, in[2], in[3]))
        return NULL;
    bool right = take(&v, in[0], in[1]) && divide(&v, "dest", &v.dest, "source", &v.source);
    WEFT_BEGIN_UNLOCKED;
    error = weft_all_gather(v.on.team, v.dest.data, v.source.data, v.nelems, type(&v, right),
                            v.on.stream);
    WEFT_END_UNLOCKED;
    return close_vectors(&v, error);
}

WEFT_FUNCTION(reduce_scatter) {
    static const struct weft_signature signature = {
        "reduce_scatter", 2, 3, {"dest", "source", "op", "team", "stream"}};
    struct vectors v = {.on.call = signature.call};
    PyObject *in[5];
    int error;
    (void)self;
    if (!weft_arguments_sort(&signature, args, nargs, names, in) ||
        !weft_operator_open(&v.on, in[3], in[4]))
        return NULL;
    bool right = weft_operator_take_op(&v.on, in[2]) && take(&v, in[0], in[1]) &&
                 divide(&v, "source", &v.source, "dest", &v.dest);
    WEFT_BEGIN_UNLOCKED;
    error = weft_reduce_scatter(v.on.team, v.dest.data, v.source.data, v.nelems, type(&v, right),
                                v.on.op, v.on.stream);
    WEFT_END_UNLOCKED;
    return close_vectors(&v, error);
}

/* What was committed stays, so that a size that cannot be read asks for none. */
WEFT_FUNCTION(reserve) {
    static const struct weft_signature signature = {"reserve", 2, 2, {"team", "nbytes"}};
    struct weft_operator on = {.call = signature.call};
    PyObject *in[2];
    size_t bytes = 0;
    int error;
    (void)self;
    if (!weft_arguments_sort(&signature, args, nargs, names, in) ||
        !weft_operator_open(&on, in[0], NULL))
        return NULL;
    bool right = weft_argument_size(signature.call, "nbytes", in[1], &bytes);
    WEFT_BEGIN_UNLOCKED;
    error = weft_reserve(on.team, right ? bytes : (size_t)PTRDIFF_MAX);
    WEFT_END_UNLOCKED;
    return weft_operator_close(&on, error);
}

#define COLLECTIVE                                                                                \
    "\n\nCollective over the team. The arrays may be any contiguous memory; symmetric ones are\n" \
    "not copied on the way. On return dest is complete and source may be overwritten. A wrong\n"  \
    "argument on one member is a ValueError on all, and nothing has been written then."

PyMethodDef weft_collective_methods[] = {
    WEFT_METHOD(
        all_reduce,
        "all_reduce(dest, source=None, op='sum', *, team=weft.world, stream=None)\n--\n\n"
        "dest[i] = op over the members' source[i]: 'sum', 'avg', 'max', 'min' or 'prod'.\n"
        "A source of None is dest. The same bits on all members and in every run." COLLECTIVE),
    WEFT_METHOD(all_gather,
                "all_gather(dest, source, *, team=weft.world, stream=None)\n--\n\n"
                "dest is the members' sources, one behind the other in order of rank: it has\n"
                "team.size times as many elements." COLLECTIVE),
    WEFT_METHOD(reduce_scatter,
                "reduce_scatter(dest, source, op='sum', *, team=weft.world, stream=None)\n--\n\n"
                "source has a part for each member, one behind the other; dest = op over the\n"
                "members of their part for this one." COLLECTIVE),
    WEFT_METHOD(reserve,
                "reserve(team, nbytes)\n--\n\n"
                "Commits the team's workspace ahead of time, so that no later call has to.\n"
                "Collective over the team."),
    {NULL, NULL, 0, NULL},
};
