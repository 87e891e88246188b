/* SPDX-License-Identifier: BSD-3-Clause */
/* collect: an all-gather in which each member brings as many elements as it likes. First all tell
 * each other how many, then each sends all of its own to everyone. */
#include <errno.h>
#include "argument.h"
#include "session.h"
#include "vectors.h"

struct collect {
    struct weft_vectors v;
    int64_t *sizes;                             /* of the members */
    size_t *from_each, *to_each, *from_nowhere; /* elements; and offsets of 0 */
};

static bool make_lists(struct collect *collect) {
    size_t count = (size_t)collect->v.on.size;
    collect->sizes = PyMem_Calloc(count, sizeof *collect->sizes);
    collect->from_each = PyMem_Calloc(count, sizeof(size_t));
    collect->to_each = PyMem_Calloc(count, sizeof(size_t));
    collect->from_nowhere = PyMem_Calloc(count, sizeof(size_t));
    if (collect->sizes && collect->from_each && collect->to_each && collect->from_nowhere)
        return true;
    PyErr_NoMemory();
    return false;
}

static void drop_lists(struct collect *collect) {
    PyMem_Free(collect->sizes);
    PyMem_Free(collect->from_each);
    PyMem_Free(collect->to_each);
    PyMem_Free(collect->from_nowhere);
}

/* All learn how many elements each brings. */
static int share_sizes(struct collect *collect, bool right) {
    int64_t mine = right ? (int64_t)collect->v.source.nelems : 0;
    int error;
    WEFT_UNLOCKED(error, weft_all_gather(collect->v.on.team, collect->sizes, &mine, 1,
                                         right ? WEFT_I64 : (weft_dtype)WEFT_OPERATOR_REFUSES,
                                         WEFT_STREAM_HOST));
    return error;
}

/* Whether dest has room for what all bring. */
static bool check_room(struct collect *collect) {
    size_t all = 0;
    for (int member = 0; member < collect->v.on.size; member++) {
        collect->from_each[member] = (size_t)collect->sizes[member];
        collect->to_each[member] = collect->v.source.nelems;
        all += collect->from_each[member];
    }
    if (all <= collect->v.dest.nelems)
        return true;
    PyErr_Format(PyExc_ValueError,
                 "collect: argument dest has %zu elements, and the members bring %zu: pass as many",
                 collect->v.dest.nelems, all);
    return false;
}

static int exchange(struct collect *collect, bool right) {
    struct weft_vectors *v = &collect->v;
    int error;
    WEFT_UNLOCKED(error, weft_all_to_allv(v->on.team, v->dest.data, collect->from_each, NULL,
                                          v->source.data, collect->to_each, collect->from_nowhere,
                                          1, weft_vectors_type(v, right), v->on.stream));
    return error;
}

static PyObject *tuple_of_sizes(const struct collect *collect) {
    PyObject *sizes = PyTuple_New(collect->v.on.size);
    for (int member = 0; sizes && member < collect->v.on.size; member++) {
        PyObject *size = PyLong_FromSize_t(collect->from_each[member]);
        if (!size || PyTuple_SetItem(sizes, member, size) < 0)
            Py_CLEAR(sizes);
    }
    return sizes;
}

WEFT_FUNCTION(collect) {
    static const struct weft_signature signature = {"collect", 2, 2, {"dest", "source", "team"}};
    struct collect collect = {.v.on.call = signature.call};
    PyObject *in[3];
    (void)self;
    bool right = weft_arguments_sort(&signature, args, nargs, names, in);
    if (!weft_operator_open(&collect.v.on, in[2], NULL))
        return NULL;
    right = right && weft_vectors_take(&collect.v, in[0], in[1]) && make_lists(&collect);
    int error = share_sizes(&collect, right);
    if (!error && right) {
        right = check_room(&collect);
        error = exchange(&collect, right);
    }
    PyObject *result = weft_vectors_close(&collect.v, error);
    if (result)
        Py_DECREF(result), result = tuple_of_sizes(&collect);
    drop_lists(&collect);
    return result;
}

PyMethodDef weft_collect_methods[] = {
    WEFT_METHOD(
        collect,
        "collect(dest, source, *, team=None)\n--\n\n"
        "dest is the members' sources, one behind the other in order of rank. Each may bring\n"
        "another number of elements, also none; dest has room for all. Returns how many each has\n"
        "brought.\n\n"
        "Collective over the team. The arrays are any contiguous memory of the host. A wrong\n"
        "argument on one member is a ValueError on all, and nothing has been written then.\n"
        "RuntimeError: before init(), after finalize(), a peer that failed."),
    {NULL, NULL, 0, NULL},
};
