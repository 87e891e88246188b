/* SPDX-License-Identifier: BSD-3-Clause */
/* The type Team. A team is destroyed by destroy() or with the job, not with the Python object:
 * destroying is collective, and objects are collected at different times on each PE. */
#include "team.h"
#include <errno.h>
#include "argument.h"
#include "error.h"
#include "pending.h"
#include "session.h"
#include "type.h"

struct team_object {
    PyObject_HEAD PyObject *weak;
    shmem_team_t handle;
    unsigned session; /* 0: the world, valid in any session */
};

static PyTypeObject *team_type;
static PyObject *world; /* weft.world, also referenced by the module */

static bool check(struct team_object *team, const char *call) {
    if (!pyweft_session_check_made(call, "team", team->session))
        return false;
    bool alive = shmem_team_n_pes(team->handle) >= 0;
    if (!alive)
        PyErr_Format(PyExc_ValueError, "%s: this team was destroyed", call);
    return alive;
}

bool pyweft_team_take(const char *call, PyObject *object, shmem_team_t *team, int *size) {
    *team = SHMEM_TEAM_WORLD;
    *size = pyweft_session.npes;
    if (!object || object == Py_None)
        return pyweft_session_check(call);
    if (!Py_IS_TYPE(object, team_type)) {
        PyErr_Format(PyExc_TypeError, "%s: argument team is %R: pass a weft.Team", call, object);
        return false;
    }
    struct team_object *given = (struct team_object *)object;
    *team = given->handle;
    if (!check(given, call))
        return false;
    *size = shmem_team_n_pes(given->handle);
    return true;
}

static PyObject *make(shmem_team_t handle, unsigned session) {
    struct team_object *team = PyObject_New(struct team_object, team_type);
    if (!team)
        return NULL;
    team->weak = NULL;
    team->handle = handle;
    team->session = session;
    return (PyObject *)team;
}

/* --- Attributes ------------------------------------------------------------------------------ */

PYWEFT_GETTER(rank, struct team_object,
              check(object, "Team.rank") ? PyLong_FromLong(shmem_team_my_pe(object->handle)) : NULL)
PYWEFT_GETTER(size, struct team_object,
              check(object, "Team.size") ? PyLong_FromLong(shmem_team_n_pes(object->handle)) : NULL)
PYWEFT_GETTER(handle, struct team_object,
              check(object, "Team.handle") ? PyLong_FromVoidPtr(object->handle) : NULL)

static PyObject *get_pes(PyObject *self, void *unused) {
    struct team_object *team = (struct team_object *)self;
    (void)unused;
    if (!check(team, "Team.pes"))
        return NULL;
    int size = shmem_team_n_pes(team->handle);
    PyObject *pes = PyTuple_New(size);
    for (int i = 0; pes && i < size; i++) {
        PyObject *pe = PyLong_FromLong(shmem_team_translate_pe(team->handle, i, SHMEM_TEAM_WORLD));
        if (!pe || PyTuple_SetItem(pes, i, pe) < 0)
            Py_CLEAR(pes);
    }
    return pes;
}

static PyObject *repr(PyObject *self) {
    struct team_object *team = (struct team_object *)self;
    bool live = pyweft_session.running && shmem_team_n_pes(team->handle) > 0 &&
                (!team->session || team->session == pyweft_session.number);
    if (!live)
        return PyUnicode_FromString(team->session ? "<weft.Team, gone>" : "<weft.Team, world>");
    return PyUnicode_FromFormat("<weft.Team, rank %d of %d>", shmem_team_my_pe(team->handle),
                                shmem_team_n_pes(team->handle));
}

/* --- Methods --------------------------------------------------------------------------------- */

static bool check_split(int start, int stride, int size, int parent) {
    long last = start + (long)stride * (size - 1);
    if (start >= 0 && start < parent && size >= 1 && last >= 0 && last < parent &&
        (stride != 0 || size == 1))
        return true;
    PyErr_Format(PyExc_ValueError,
                 "Team.split: start %d, stride %d and size %d exceed the team's ranks 0 to %d",
                 start, stride, size, parent - 1);
    return false;
}

/* A member with a wrong argument calls the library nevertheless, which informs the others. */
PYWEFT_FUNCTION(split) {
    static const struct pyweft_signature signature = {
        "Team.split", 3, 3, {"start", "stride", "size"}};
    struct team_object *team = (struct team_object *)self;
    PyObject *in[3];
    int start = -1, stride = -1, size = -1;
    if (!check(team, "Team.split"))
        return NULL;
    bool right = pyweft_arguments_sort(&signature, args, nargs, names, in) &&
                 pyweft_argument_int("Team.split", "start", in[0], &start) &&
                 pyweft_argument_int("Team.split", "stride", in[1], &stride) &&
                 pyweft_argument_int("Team.split", "size", in[2], &size) &&
                 check_split(start, stride, size, shmem_team_n_pes(team->handle));
    shmem_team_t made = SHMEM_TEAM_INVALID;
    int error;
    PYWEFT_WITHOUT_GIL(error, shmem_team_split_strided(team->handle, right ? start : -1, stride,
                                                       size, NULL, 0, &made));
    if (error == PYWEFT_JOB_LOST)
        return pyweft_error_raise("Team.split", error);
    if (!right)
        return NULL;
    if (error)
        return PyErr_Format(error == -22 ? PyExc_ValueError : PyExc_RuntimeError,
                            error == -22 ? "Team.split: the members pass different arguments"
                                         : "Team.split: there is no room for another team");
    return made == SHMEM_TEAM_INVALID ? Py_NewRef(Py_None) : make(made, pyweft_session.number);
}

/* The members compare xrange first: C makes one team after the other, so members with different
 * arguments would wait for each other forever. */
static int agree_on_xrange(shmem_team_t team, bool right, int xrange) {
    double both[] = {xrange, -(double)xrange};
    int error;
    PYWEFT_WITHOUT_GIL(error,
                       weft_all_reduce(team, both, both, 2, right ? WEFT_F64 : (weft_dtype)-1,
                                       WEFT_MIN, WEFT_STREAM_HOST));
    return !error && both[0] != -both[1] ? -EINVAL : error;
}

PYWEFT_FUNCTION(split_2d) {
    static const struct pyweft_signature signature = {"Team.split_2d", 1, 1, {"xrange"}};
    struct team_object *team = (struct team_object *)self;
    PyObject *in[1];
    int xrange = -1, error;
    shmem_team_t row = SHMEM_TEAM_INVALID, column = SHMEM_TEAM_INVALID;
    if (!check(team, "Team.split_2d"))
        return NULL;
    bool right = pyweft_arguments_sort(&signature, args, nargs, names, in) &&
                 pyweft_argument_int("Team.split_2d", "xrange", in[0], &xrange);
    if (right && xrange < 1) {
        PyErr_Format(PyExc_ValueError, "Team.split_2d: argument xrange is %d: pass 1 or more",
                     xrange);
        right = false;
    }
    error = agree_on_xrange(team->handle, right, xrange);
    if (!error && right)
        PYWEFT_WITHOUT_GIL(
            error, shmem_team_split_2d(team->handle, xrange, NULL, 0, &row, NULL, 0, &column));
    if (error && !PyErr_Occurred())
        return error == PYWEFT_JOB_LOST ? pyweft_error_raise("Team.split_2d", error)
               : error == -EINVAL
                   ? PyErr_Format(PyExc_ValueError,
                                  "Team.split_2d: the members pass different arguments")
                   : PyErr_Format(PyExc_RuntimeError,
                                  "Team.split_2d: there is no room for more teams");
    if (PyErr_Occurred())
        return NULL;
    return Py_BuildValue("(NN)", make(row, pyweft_session.number),
                         make(column, pyweft_session.number));
}

/* Returns None if the PE is not in the other team. */
PYWEFT_FUNCTION(translate_pe) {
    static const struct pyweft_signature signature = {"Team.translate_pe", 1, 2, {"pe", "team"}};
    struct team_object *team = (struct team_object *)self;
    PyObject *in[2];
    shmem_team_t to;
    int pe, size;
    if (!check(team, "Team.translate_pe") ||
        !pyweft_arguments_sort(&signature, args, nargs, names, in) ||
        !pyweft_argument_int("Team.translate_pe", "pe", in[0], &pe) ||
        !pyweft_team_take("Team.translate_pe", in[1], &to, &size))
        return NULL;
    int mine = shmem_team_n_pes(team->handle);
    if (pe < 0 || pe >= mine)
        return PyErr_Format(PyExc_ValueError,
                            "Team.translate_pe: argument pe is %d: the team has ranks 0 to %d", pe,
                            mine - 1);
    int found = shmem_team_translate_pe(team->handle, pe, to);
    return found < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(found);
}

static PyObject *sync_team(PyObject *self, PyObject *unused) {
    struct team_object *team = (struct team_object *)self;
    (void)unused;
    if (!check(team, "Team.sync"))
        return NULL;
    int error;
    PYWEFT_WITHOUT_GIL(error, shmem_team_sync(team->handle));
    return pyweft_error_result("Team.sync", error);
}

static PyObject *barrier(PyObject *self, PyObject *unused) {
    struct team_object *team = (struct team_object *)self;
    (void)unused;
    if (!check(team, "Team.barrier"))
        return NULL;
    uint64_t begun = pyweft_pending_count();
    int error;
    PYWEFT_WITHOUT_GIL(error, (shmem_quiet(), shmem_team_sync(team->handle)));
    if (!error)
        pyweft_pending_drop(SHMEM_CTX_DEFAULT, begun);
    return pyweft_error_result("Team.barrier", error);
}

static PyObject *destroy(PyObject *self, PyObject *unused) {
    struct team_object *team = (struct team_object *)self;
    (void)unused;
    if (!check(team, "Team.destroy"))
        return NULL;
    if (!team->session)
        return PyErr_Format(PyExc_ValueError, "Team.destroy: the world ends with finalize()");
    pyweft_pending_finish(); /* the team's contexts are destroyed with it, and could not be
                                completed afterwards */
    if (!pyweft_session_check("Team.destroy"))
        return NULL;
    int error;
    PYWEFT_WITHOUT_GIL(error, (shmem_team_destroy(team->handle), 0));
    return pyweft_error_result("Team.destroy", error);
}

/* Not after an exception: the other members may not come. */
PYWEFT_FUNCTION(leave) {
    (void)names;
    if (nargs > 0 && args[0] != Py_None)
        Py_RETURN_NONE;
    return destroy(self, NULL);
}

static PyMethodDef methods[] = {
    PYWEFT_METHOD(
        split,
        "split($self, /, start, stride, size)\n--\n\n"
        "Makes a team of `size` ranks of this one: start, start + stride, ... Collective over\n"
        "this team; returns None on members that are not in the new one."),
    PYWEFT_METHOD(
        split_2d,
        "split_2d($self, /, xrange)\n--\n\n"
        "Arranges the team as a grid with rows of xrange members, and returns the team of\n"
        "this PE's row and that of its column as a tuple. The last row may be short.\n"
        "Collective over this team."),
    PYWEFT_METHOD(
        translate_pe,
        "translate_pe($self, /, pe, team=None)\n--\n\n"
        "Returns the rank in another team (None: all PEs) of this team's rank pe, or None if\n"
        "it is not a member there."),
    {"sync", sync_team, METH_NOARGS,
     "sync($self, /)\n--\n\n"
     "Blocks until all members have called it. Collective."},
    {"barrier", barrier, METH_NOARGS,
     "barrier($self, /)\n--\n\n"
     "sync(), and everything that this PE has put has arrived. Collective."},
    {"destroy", destroy, METH_NOARGS,
     "destroy($self, /)\n--\n\n"
     "Destroys the team. Collective over it; the end of the job destroys all teams."},
    PYWEFT_TYPE_ENTER,
    PYWEFT_METHOD_AS("__exit__", leave,
                     "__exit__($self, /, kind, value, traceback)\n--\n\n"
                     "destroy(), except after an exception."),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"rank", get_rank, NULL, "This PE's number in the team.", NULL},
    {"size", get_size, NULL, "Number of members.", NULL},
    {"pes", get_pes, NULL, "The members' PE numbers, in order of rank.", NULL},
    {"handle", get_handle, NULL, "The shmem_team_t for C code, as a number.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PYWEFT_WEAK_MEMBERS(struct team_object);

static PyType_Slot slots[] = {
    {Py_tp_doc, "PEs in a given order. weft.world has all; split() and weft.team() make others."},
    {Py_tp_dealloc, pyweft_type_dealloc},
    {Py_tp_repr, repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "weft.Team",
    .basicsize = sizeof(struct team_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

PYWEFT_FUNCTION(team) {
    static const struct pyweft_signature signature = {"team", 1, 2, {"pes", "tag"}};
    PyObject *in[2];
    uint64_t tag = 0;
    int count, error;
    (void)self;
    if (!pyweft_arguments_in_job(&signature, args, nargs, names, in) ||
        !pyweft_argument_uint64(signature.call, "tag", in[1], &tag))
        return NULL;
    int *pes = pyweft_argument_pes(signature.call, in[0], &count);
    shmem_team_t made;
    if (!pes)
        return NULL;
    PYWEFT_WITHOUT_GIL(error, shmemx_team_create(pes, count, tag, &made));
    PyMem_Free(pes);
    return error ? pyweft_error_raise(signature.call, error) : make(made, pyweft_session.number);
}

PyMethodDef pyweft_team_methods[] = {
    PYWEFT_METHOD(
        team,
        "team(pes, tag=0)\n--\n\n"
        "Makes a team of these PEs, in this order. Collective over them alone; all pass the\n"
        "same list and tag. Tags distinguish simultaneous calls with the same list.\n"
        "ValueError, on the caller only, for a list that names a PE twice or lacks this one."),
    {NULL, NULL, 0, NULL},
};

PyObject *pyweft_team_world(void) {
    return world;
}

bool pyweft_team_define(PyObject *module) {
    team_type = pyweft_type_define(module, &spec);
    world = team_type ? make(SHMEM_TEAM_WORLD, 0) : NULL;
    return world && PyModule_AddObjectRef(module, "world", world) == 0;
}
