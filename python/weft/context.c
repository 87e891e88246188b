/* SPDX-License-Identifier: BSD-3-Clause */
/* The type Ctx. Contexts are made and ended locally, so that one ends with its object, too; those
 * of a team end with the team, which is found out when one is used. */
#include "context.h"
#include <errno.h>
#include "argument.h"
#include "error.h"
#include "pending.h"
#include "session.h"
#include "type.h"
#include "team.h"

struct ctx {
    PyObject_HEAD PyObject *weak, *team;
    shmem_ctx_t handle;
    unsigned session;
    unsigned long thread; /* the only one that may use it; 0: any */
};

static PyTypeObject *ctx_type;

static bool is_alive(const struct ctx *ctx, shmem_team_t *team) {
    return ctx->handle != SHMEM_CTX_INVALID && shmem_ctx_get_team(ctx->handle, team) == 0;
}

static bool check(const struct ctx *ctx, const char *call, shmem_team_t *team) {
    if (!weft_session_check(call))
        return false;
    if (ctx->session != weft_session.number)
        PyErr_Format(PyExc_RuntimeError, "%s: this context is of before finalize()", call);
    else if (!is_alive(ctx, team))
        PyErr_Format(PyExc_ValueError, "%s: this context was destroyed, or its team was", call);
    else if (ctx->thread && ctx->thread != PyThread_get_thread_ident())
        PyErr_Format(PyExc_ValueError,
                     "%s: this context is private to the thread that made it: make one here, or "
                     "without private=True",
                     call);
    return !PyErr_Occurred();
}

static struct ctx *ctx_of(const char *call, PyObject *object, weft_stream stream) {
    if (!Py_IS_TYPE(object, ctx_type))
        PyErr_Format(PyExc_TypeError, "%s: argument ctx is %R: pass a weft.Ctx", call, object);
    else if (stream != WEFT_STREAM_HOST)
        PyErr_Format(PyExc_ValueError,
                     "%s: arguments ctx and stream are both given: a stream has its own order, and "
                     "takes no context",
                     call);
    return PyErr_Occurred() ? NULL : (struct ctx *)object;
}

bool weft_ctx_take(const char *call, PyObject *object, weft_stream stream, shmem_ctx_t *handle) {
    shmem_team_t team;
    *handle = SHMEM_CTX_DEFAULT;
    if (!object || object == Py_None)
        return true;
    struct ctx *ctx = ctx_of(call, object, stream);
    if (!ctx || !check(ctx, call, &team))
        return false;
    *handle = ctx->handle;
    return true;
}

static bool route_by(const struct ctx *ctx, const char *call, PyObject *pe,
                     struct weft_route *route) {
    shmem_team_t team;
    if (!check(ctx, call, &team) || !weft_argument_int(call, "pe", pe, &route->pe))
        return false;
    int size = shmem_team_n_pes(team);
    if (route->pe < 0 || route->pe >= size) {
        PyErr_Format(PyExc_ValueError,
                     "%s: argument pe is %d: the context's team has ranks 0 to %d", call, route->pe,
                     size - 1);
        return false;
    }
    route->ctx = ctx->handle;
    route->world_pe = shmem_team_translate_pe(team, route->pe, SHMEM_TEAM_WORLD);
    return true;
}

bool weft_route_take(const char *call, PyObject *object, PyObject *pe, weft_stream stream,
                     struct weft_route *route) {
    if (object && object != Py_None) {
        struct ctx *ctx = ctx_of(call, object, stream);
        return ctx && route_by(ctx, call, pe, route);
    }
    route->ctx = SHMEM_CTX_DEFAULT;
    if (!weft_argument_pe(call, pe, &route->pe))
        return false;
    route->world_pe = route->pe;
    return true;
}

/* --- Making and ending ----------------------------------------------------------------------- */

static bool take_options(PyObject *const *in, long *options) {
    static const long option[] = {SHMEM_CTX_PRIVATE, SHMEM_CTX_SERIALIZED, SHMEM_CTX_NOSTORE};
    *options = 0;
    for (int i = 0; i < 3; i++) {
        int wanted = in[i] ? PyObject_IsTrue(in[i]) : 0;
        if (wanted < 0)
            return false;
        *options |= wanted ? option[i] : 0;
    }
    return true;
}

static PyObject *wrap(PyTypeObject *type, PyObject *team, shmem_ctx_t handle, long options) {
    struct ctx *ctx = PyObject_New(struct ctx, type);
    if (!ctx) {
        shmem_ctx_destroy(handle);
        return NULL;
    }
    ctx->weak = NULL;
    ctx->team = Py_NewRef(team && team != Py_None ? team : weft_team_world());
    ctx->handle = handle;
    ctx->session = weft_session.number;
    ctx->thread = options & SHMEM_CTX_PRIVATE ? PyThread_get_thread_ident() : 0;
    return (PyObject *)ctx;
}

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *names) {
    static char *keywords[] = {"team", "private", "serialized", "nostore", NULL};
    PyObject *in[4] = {NULL};
    shmem_team_t team;
    shmem_ctx_t handle;
    long options;
    int size;
    if (!PyArg_ParseTupleAndKeywords(args, names, "|O$OOO:Ctx", keywords, &in[0], &in[1], &in[2],
                                     &in[3]) ||
        !weft_team_take("Ctx", in[0], &team, &size) || !take_options(in + 1, &options))
        return NULL;
    int error = shmem_team_create_ctx(team, options, &handle);
    if (error)
        return PyErr_Format(PyExc_RuntimeError, "Ctx: there is no room for another context%s",
                            error == -ENOSPC ? "" : " of this team");
    return wrap(type, in[0], handle, options);
}

static int end_by_thread(shmem_ctx_t handle) {
    shmem_ctx_destroy(handle);
    return 0;
}

static int end(struct ctx *ctx) {
    shmem_ctx_t handle = ctx->handle;
    uint64_t begun = weft_pending_count();
    int error;
    ctx->handle = SHMEM_CTX_INVALID;
    WEFT_UNLOCKED(error, end_by_thread(handle));
    if (!error)
        weft_pending_drop(handle, begun);
    return error;
}

static void dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    struct ctx *ctx = (struct ctx *)self;
    PyObject *kind, *value, *traceback;
    shmem_team_t team;
    PyErr_Fetch(&kind, &value, &traceback);
    if (weft_session.running && !weft_session.lost && ctx->session == weft_session.number &&
        is_alive(ctx, &team))
        end(ctx);
    PyErr_Restore(kind, value, traceback);
    PyObject_ClearWeakRefs(self);
    Py_DECREF(ctx->team);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* --- Attributes and methods ------------------------------------------------------------------ */

static PyObject *get_team(PyObject *self, void *unused) {
    (void)unused;
    return Py_NewRef(((struct ctx *)self)->team);
}

static PyObject *get_handle(PyObject *self, void *unused) {
    struct ctx *ctx = (struct ctx *)self;
    shmem_team_t team;
    (void)unused;
    return check(ctx, "Ctx.handle", &team) ? PyLong_FromVoidPtr(ctx->handle) : NULL;
}

static int fence_by_thread(shmem_ctx_t handle) {
    shmem_ctx_fence(handle);
    return 0;
}

static PyObject *fence(PyObject *self, PyObject *unused) {
    struct ctx *ctx = (struct ctx *)self;
    shmem_team_t team;
    int error;
    (void)unused;
    if (!check(ctx, "Ctx.fence", &team))
        return NULL;
    WEFT_UNLOCKED(error, fence_by_thread(ctx->handle));
    return weft_error_result("Ctx.fence", error);
}

static int quiet_by_thread(shmem_ctx_t handle) {
    shmem_ctx_quiet(handle);
    return 0;
}

static PyObject *quiet(PyObject *self, PyObject *unused) {
    struct ctx *ctx = (struct ctx *)self;
    shmem_team_t team;
    int error;
    (void)unused;
    if (!check(ctx, "Ctx.quiet", &team))
        return NULL;
    uint64_t begun = weft_pending_count();
    WEFT_UNLOCKED(error, quiet_by_thread(ctx->handle));
    if (!error)
        weft_pending_drop(ctx->handle, begun);
    return weft_error_result("Ctx.quiet", error);
}

static PyObject *destroy(PyObject *self, PyObject *unused) {
    struct ctx *ctx = (struct ctx *)self;
    shmem_team_t team;
    (void)unused;
    if (!check(ctx, "Ctx.destroy", &team))
        return NULL;
    return weft_error_result("Ctx.destroy", end(ctx));
}

/* Behind an exception, too, since nobody else takes part; one that went with its team is gone. */
WEFT_FUNCTION(leave) {
    struct ctx *ctx = (struct ctx *)self;
    shmem_team_t team;
    (void)args, (void)nargs, (void)names;
    if (!weft_session.running || weft_session.lost || !is_alive(ctx, &team))
        Py_RETURN_NONE;
    return destroy(self, NULL);
}

static PyObject *repr(PyObject *self) {
    struct ctx *ctx = (struct ctx *)self;
    shmem_team_t team;
    if (!weft_session.running || ctx->session != weft_session.number || !is_alive(ctx, &team))
        return PyUnicode_FromString("<weft.Ctx, gone>");
    return PyUnicode_FromFormat("<weft.Ctx of %R%s>", ctx->team, ctx->thread ? ", private" : "");
}

static PyMethodDef methods[] = {
    {"fence", fence, METH_NOARGS,
     "fence($self, /)\n--\n\n"
     "What this PE has put to a PE by this context is there before what it puts by it after."},
    {"quiet", quiet, METH_NOARGS,
     "quiet($self, /)\n--\n\n"
     "What this PE has begun by this context is complete: puts are there, gets are here."},
    {"destroy", destroy, METH_NOARGS, "destroy($self, /)\n--\n\nquiet(), and the context ends."},
    WEFT_TYPE_ENTER,
    WEFT_METHOD_AS("__exit__", leave,
                   "__exit__($self, /, kind, value, traceback)\n--\n\ndestroy()."),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"team", get_team, NULL, "The Team whose ranks are the context's PEs.", NULL},
    {"handle", get_handle, NULL, "The shmem_ctx_t of C, as a number.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

WEFT_WEAK_MEMBERS(struct ctx);

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Ctx(team=None, *, private=False, serialized=False, nostore=False)\n--\n\n"
     "A context: calls with ctx= are ordered by its fence() and completed by its quiet(), apart\n"
     "from all others. Their `pe` is a rank of the team (None: all PEs). private: only the thread\n"
     "that makes it uses it; serialized: threads take turns on it; nostore: its fence and quiet\n"
     "need not order plain stores. Made and ended locally; ends by destroy(), a with block, with\n"
     "the object, or with the team.\n\n"
     "TypeError: no Team. ValueError: a team that was destroyed. RuntimeError: before init(),\n"
     "after finalize(), more than 1022 contexts at once."},
    {Py_tp_new, create},
    {Py_tp_dealloc, dealloc},
    {Py_tp_repr, repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "weft.Ctx",
    .basicsize = sizeof(struct ctx),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

bool weft_ctx_define(PyObject *module) {
    ctx_type = weft_type_define(module, &spec);
    return ctx_type != NULL;
}
