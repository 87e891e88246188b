/* SPDX-License-Identifier: BSD-3-Clause */
/* collect: an all-gather in which each member contributes any number of elements. The members first
 * exchange these numbers and the room in dest, together with short sources. Longer sources are then
 * sent to everyone. */
#include <errno.h>
#include <string.h>
#include "argument.h"
#include "session.h"
#include "vectors.h"

enum { SIZE = PYWEFT_FACTS_COMMON, ROOM, CARRIED }; /* indices into a member's facts */

static struct pyweft_proposal describe(const struct pyweft_vectors *v) {
    struct pyweft_proposal mine = {.facts = {[PYWEFT_FACT_CALL] = PYWEFT_CALL_COLLECT,
                                             [PYWEFT_FACT_TYPE] = v->source.dtype->operand,
                                             [SIZE] = (int64_t)v->source.nelems,
                                             [ROOM] = (int64_t)v->dest.nelems}};
    mine.facts[CARRIED] = pyweft_vectors_carry(v, &mine);
    return mine;
}

/* --- Decisions that are the same on all members ----------------------------------------------- */

/* Checks that every member's dest has room for all elements. */
static bool check_room(const struct pyweft_vectors *v, const struct pyweft_proposal *proposals) {
    int64_t all = 0;
    int narrow = -1, me = shmem_team_my_pe(v->on.team);
    for (int member = 0; member < v->on.size; member++)
        all += proposals[member].facts[SIZE];
    for (int member = 0; member < v->on.size && narrow != me; member++)
        if (proposals[member].facts[ROOM] < all && (narrow < 0 || member == me))
            narrow = member;
    if (narrow == me)
        PyErr_Format(
            PyExc_ValueError,
            "%s: argument dest has %zu elements, but the members contribute %lld: pass that many",
            v->on.call, v->dest.nelems, (long long)all);
    else if (narrow >= 0)
        PyErr_Format(
            PyExc_ValueError,
            "%s: argument dest of PE %d has %lld elements, but the members contribute %lld",
            v->on.call, shmem_team_translate_pe(v->on.team, narrow, SHMEM_TEAM_WORLD),
            (long long)proposals[narrow].facts[ROOM], (long long)all);
    return narrow < 0;
}

static bool all_carried(const struct pyweft_vectors *v, const struct pyweft_proposal *proposals) {
    bool carried = true;
    for (int member = 0; member < v->on.size; member++)
        carried = carried && proposals[member].facts[CARRIED];
    return carried;
}

/* --- Moving the elements ---------------------------------------------------------------------- */

static void copy_carried(const struct pyweft_vectors *v, const struct pyweft_proposal *proposals) {
    char *to = v->dest.data;
    for (int member = 0; member < v->on.size; member++) {
        size_t bytes = (size_t)proposals[member].facts[SIZE] * v->dest.dtype->bytes;
        if (bytes > 0)
            memcpy(to, proposals[member].source, bytes);
        to += bytes;
    }
}

/* Sends this member's elements to everyone. */
static int exchange(const struct pyweft_vectors *v, const struct pyweft_proposal *proposals) {
    size_t members = (size_t)v->on.size;
    size_t *lists = PyMem_Calloc(3 * members, sizeof *lists);
    size_t *from_each = lists, *to_each = lists + members, *from_nowhere = to_each + members;
    int error;
    for (size_t member = 0; lists && member < members; member++) {
        from_each[member] = (size_t)proposals[member].facts[SIZE];
        to_each[member] = v->source.nelems;
    }
    if (!lists)
        PyErr_NoMemory();
    PYWEFT_WITHOUT_GIL(error,
                       weft_all_to_allv(v->on.team, v->dest.data, from_each, NULL, v->source.data,
                                        to_each, from_nowhere, 1,
                                        pyweft_vectors_type(v, lists != NULL), v->on.stream));
    PyMem_Free(lists);
    return error;
}

static PyObject *tuple_of_sizes(const struct pyweft_vectors *v,
                                const struct pyweft_proposal *proposals) {
    PyObject *sizes = PyTuple_New(v->on.size);
    for (int member = 0; sizes && member < v->on.size; member++) {
        PyObject *size = PyLong_FromLongLong(proposals[member].facts[SIZE]);
        if (!size || PyTuple_SetItem(sizes, member, size) < 0)
            Py_CLEAR(sizes);
    }
    return sizes;
}

static int move(const struct pyweft_vectors *v, const struct pyweft_proposal *proposals) {
    if (!pyweft_vectors_check_same(v, proposals, PYWEFT_FACTS_COMMON) || !check_room(v, proposals))
        return -EINVAL;
    if (!all_carried(v, proposals))
        return exchange(v, proposals);
    copy_carried(v, proposals);
    return 0;
}

PYWEFT_FUNCTION(collect) {
    static const struct pyweft_signature signature = {"collect", 2, 2, {"dest", "source", "team"}};
    struct pyweft_vectors v = {.on.call = signature.call};
    struct pyweft_proposal mine = {.facts = {0}};
    PyObject *in[3];
    (void)self;
    bool right = pyweft_arguments_sort(&signature, args, nargs, names, in);
    if (!pyweft_operator_open(&v.on, in[2], NULL))
        return NULL;
    right = right && pyweft_vectors_take(&v, in[0], in[1]);
    if (right)
        mine = describe(&v);
    struct pyweft_proposal *proposals = pyweft_vectors_propose(&v, right, &mine);
    if (!proposals)
        return NULL;
    PyObject *result = pyweft_vectors_close(&v, move(&v, proposals));
    if (result)
        Py_DECREF(result), result = tuple_of_sizes(&v, proposals);
    PyMem_Free(proposals);
    return result;
}

PyMethodDef pyweft_collect_methods[] = {
    PYWEFT_METHOD(
        collect,
        "collect(dest, source, *, team=None)\n--\n\n"
        "Concatenates the members' sources in dest, in order of rank. Each member may\n"
        "contribute a different number of elements, also none; dest has room for all. Returns\n"
        "the numbers as a tuple.\n\n"
        "Collective over the team. The arrays are any contiguous host memory. A wrong\n"
        "argument on one member is a ValueError on all, before anything is written.\n"
        "RuntimeError: before init(), after finalize(), or a peer failed."),
    {NULL, NULL, 0, NULL},
};
