/* SPDX-License-Identifier: BSD-3-Clause */
/* The type Ctx. Contexts are made and destroyed locally, so a context is destroyed with its Python
 * object. Destroying a team destroys its contexts, which is detected when such a context is
 * used. */
#include "context.h"
#include <errno.h>
#include "argument.h"
#include "error.h"
#include "pending.h"
#include "session.h"
#include "type.h"
#include "team.h"

struct ctx_object {
    PyObject_HEAD PyObject *weak, *team;
    shmem_ctx_t handle;
    unsigned session;
    unsigned long thread; /* the only thread that may use it; 0: any */
};

static PyTypeObject *ctx_type;

static bool is_alive(const struct ctx_object *ctx, shmem_team_t *team) {
    return ctx->handle != SHMEM_CTX_INVALID && shmem_ctx_get_team(ctx->handle, team) == 0;
}

static bool check(const struct ctx_object *ctx, const char *call, shmem_team_t *team) {
    if (!pyweft_session_check_made(call, "context", ctx->session))
        return false;
    if (!is_alive(ctx, team))
        PyErr_Format(PyExc_ValueError, "%s: this context was destroyed, or its team was", call);
    else if (ctx->thread && ctx->thread != PyThread_get_thread_ident())
        PyErr_Format(PyExc_ValueError,
                     "%s: this context is private to the thread that made it: make one here, or "
                     "without private=True",
                     call);
    return !PyErr_Occurred();
}

static struct ctx_object *ctx_of(const char *call, PyObject *object, weft_stream stream) {
    if (!Py_IS_TYPE(object, ctx_type))
        PyErr_Format(PyExc_TypeError, "%s: argument ctx is %R: pass a weft.Ctx", call, object);
    else if (stream != WEFT_STREAM_HOST)
        PyErr_Format(PyExc_ValueError,
                     "%s: arguments ctx and stream are both given: a stream has its own order, so "
                     "pass one of them",
                     call);
    return PyErr_Occurred() ? NULL : (struct ctx_object *)object;
}

bool pyweft_ctx_take(const char *call, PyObject *object, weft_stream stream, shmem_ctx_t *handle) {
    shmem_team_t team;
    *handle = SHMEM_CTX_DEFAULT;
    if (!object || object == Py_None)
        return true;
    struct ctx_object *ctx = ctx_of(call, object, stream);
    if (!ctx || !check(ctx, call, &team))
        return false;
    *handle = ctx->handle;
    return true;
}

static bool target_by(const struct ctx_object *ctx, const char *call, PyObject *pe,
                      struct pyweft_target *target) {
    shmem_team_t team;
    if (!check(ctx, call, &team) || !pyweft_argument_int(call, "pe", pe, &target->pe))
        return false;
    int size = shmem_team_n_pes(team);
    if (target->pe < 0 || target->pe >= size) {
        PyErr_Format(PyExc_ValueError,
                     "%s: argument pe is %d: the context's team has ranks 0 to %d", call,
                     target->pe, size - 1);
        return false;
    }
    target->ctx = ctx->handle;
    target->world_pe = shmem_team_translate_pe(team, target->pe, SHMEM_TEAM_WORLD);
    return true;
}

bool pyweft_target_take(const char *call, PyObject *object, PyObject *pe, weft_stream stream,
                        struct pyweft_target *target) {
    if (object && object != Py_None) {
        struct ctx_object *ctx = ctx_of(call, object, stream);
        return ctx && target_by(ctx, call, pe, target);
    }
    target->ctx = SHMEM_CTX_DEFAULT;
    if (!pyweft_argument_pe(call, pe, &target->pe))
        return false;
    target->world_pe = target->pe;
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
    struct ctx_object *ctx = PyObject_New(struct ctx_object, type);
    if (!ctx) {
        shmem_ctx_destroy(handle);
        return NULL;
    }
    ctx->weak = NULL;
    ctx->team = Py_NewRef(team && team != Py_None ? team : pyweft_team_world());
    ctx->handle = handle;
    ctx->session = pyweft_session.number;
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
        !pyweft_team_take("Ctx", in[0], &team, &size) || !take_options(in + 1, &options))
        return NULL;
    int error = shmem_team_create_ctx(team, options, &handle);
    if (error)
        return PyErr_Format(PyExc_RuntimeError, "Ctx: there is no room for another context%s",
                            error == -ENOSPC ? "" : " of this team");
    return wrap(type, in[0], handle, options);
}

static int end(struct ctx_object *ctx) {
    shmem_ctx_t handle = ctx->handle;
    uint64_t begun = pyweft_pending_count();
    int error;
    ctx->handle = SHMEM_CTX_INVALID;
    PYWEFT_WITHOUT_GIL(error, (shmem_ctx_destroy(handle), 0));
    if (!error)
        pyweft_pending_drop(handle, begun);
    return error;
}

static void dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    struct ctx_object *ctx = (struct ctx_object *)self;
    PyObject *kind, *value, *traceback;
    shmem_team_t team;
    PyErr_Fetch(&kind, &value, &traceback);
    if (pyweft_session.running && !pyweft_session.lost && ctx->session == pyweft_session.number &&
        is_alive(ctx, &team))
        end(ctx);
    PyErr_Restore(kind, value, traceback);
    PyObject_ClearWeakRefs(self);
    Py_DECREF(ctx->team);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* --- Attributes and methods ------------------------------------------------------------------ */

PYWEFT_GETTER(team, struct ctx_object, Py_NewRef(object->team))

static PyObject *get_handle(PyObject *self, void *unused) {
    struct ctx_object *ctx = (struct ctx_object *)self;
    shmem_team_t team;
    (void)unused;
    return check(ctx, "Ctx.handle", &team) ? PyLong_FromVoidPtr(ctx->handle) : NULL;
}

static PyObject *fence(PyObject *self, PyObject *unused) {
    struct ctx_object *ctx = (struct ctx_object *)self;
    shmem_team_t team;
    int error;
    (void)unused;
    if (!check(ctx, "Ctx.fence", &team))
        return NULL;
    PYWEFT_WITHOUT_GIL(error, (shmem_ctx_fence(ctx->handle), 0));
    return pyweft_error_result("Ctx.fence", error);
}

static PyObject *quiet(PyObject *self, PyObject *unused) {
    struct ctx_object *ctx = (struct ctx_object *)self;
    shmem_team_t team;
    int error;
    (void)unused;
    if (!check(ctx, "Ctx.quiet", &team))
        return NULL;
    uint64_t begun = pyweft_pending_count();
    PYWEFT_WITHOUT_GIL(error, (shmem_ctx_quiet(ctx->handle), 0));
    if (!error)
        pyweft_pending_drop(ctx->handle, begun);
    return pyweft_error_result("Ctx.quiet", error);
}

static PyObject *destroy(PyObject *self, PyObject *unused) {
    struct ctx_object *ctx = (struct ctx_object *)self;
    shmem_team_t team;
    (void)unused;
    if (!check(ctx, "Ctx.destroy", &team))
        return NULL;
    return pyweft_error_result("Ctx.destroy", end(ctx));
}

/* Also after an exception, because no other PE takes part. A context that was destroyed with its
 * team is ignored. */
PYWEFT_FUNCTION(leave) {
    struct ctx_object *ctx = (struct ctx_object *)self;
    shmem_team_t team;
    (void)args, (void)nargs, (void)names;
    if (!pyweft_session.running || pyweft_session.lost || !is_alive(ctx, &team))
        Py_RETURN_NONE;
    return destroy(self, NULL);
}

static PyObject *repr(PyObject *self) {
    struct ctx_object *ctx = (struct ctx_object *)self;
    shmem_team_t team;
    if (!pyweft_session.running || ctx->session != pyweft_session.number || !is_alive(ctx, &team))
        return PyUnicode_FromString("<weft.Ctx, gone>");
    return PyUnicode_FromFormat("<weft.Ctx of %R%s>", ctx->team, ctx->thread ? ", private" : "");
}

static PyMethodDef methods[] = {
    {"fence", fence, METH_NOARGS,
     "fence($self, /)\n--\n\n"
     "Earlier puts of this PE to a PE through this context arrive before later ones."},
    {"quiet", quiet, METH_NOARGS,
     "quiet($self, /)\n--\n\n"
     "Completes all calls of this PE through this context: puts have arrived, gets are\n"
     "here."},
    {"destroy", destroy, METH_NOARGS,
     "destroy($self, /)\n"
     "--\n\n"
     "quiet(), then destroys the context."},
    PYWEFT_TYPE_ENTER,
    PYWEFT_METHOD_AS("__exit__", leave,
                     "__exit__($self, /, kind, value, traceback)\n--\n\ndestroy()."),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"team", get_team, NULL, "The Team whose ranks are the context's PEs.", NULL},
    {"handle", get_handle, NULL, "The shmem_ctx_t for C code, as a number.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PYWEFT_WEAK_MEMBERS(struct ctx_object);

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Ctx(team=None, *, private=False, serialized=False, nostore=False)\n--\n\n"
     "A context: fence() and quiet() order and complete the calls made with ctx=, apart\n"
     "from all other calls. Their `pe` is a rank of the team (None: all PEs). private:\n"
     "only the thread that makes it uses it; serialized: threads take turns with it;\n"
     "nostore: its fence and quiet need not order plain stores. Made and destroyed\n"
     "locally, by destroy(), a with block, garbage collection, or with the team.\n\n"
     "TypeError: no Team. ValueError: a team that was destroyed. RuntimeError: before\n"
     "init(), after finalize(), more than 1022 contexts at once."},
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
    .basicsize = sizeof(struct ctx_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

bool pyweft_ctx_define(PyObject *module) {
    ctx_type = pyweft_type_define(module, &spec);
    return ctx_type != NULL;
}
