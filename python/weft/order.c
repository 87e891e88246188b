/* SPDX-License-Identifier: BSD-3-Clause */
/* fence, quiet, sync and barrier, and sessions of contexts. */
#include "argument.h"
#include "context.h"
#include "error.h"
#include "operator.h"
#include "pending.h"
#include "session.h"

/* --- fence, quiet ---------------------------------------------------------------------------- */

static int put_in_order(shmem_ctx_t ctx, weft_stream stream, void (*by_thread)(shmem_ctx_t),
                        int (*by_stream)(shmemx_stream_t)) {
    if (stream != WEFT_STREAM_HOST)
        return by_stream((shmemx_stream_t)stream);
    by_thread(ctx);
    return 0;
}

/* After a quiet, the arrays of completed calls are released. */
static PyObject *order(const struct pyweft_signature *signature, PyObject *const *args,
                       Py_ssize_t nargs, PyObject *names, void (*by_thread)(shmem_ctx_t),
                       int (*by_stream)(shmemx_stream_t)) {
    PyObject *in[2];
    weft_stream stream;
    shmem_ctx_t ctx;
    int error;
    if (!pyweft_arguments_in_job(signature, args, nargs, names, in) ||
        !pyweft_argument_stream(signature->call, in[1], &stream) ||
        !pyweft_ctx_take(signature->call, in[0], stream, &ctx))
        return NULL;
    uint64_t begun = pyweft_pending_count();
    PYWEFT_WITHOUT_GIL(error, put_in_order(ctx, stream, by_thread, by_stream));
    if (!error && by_thread == shmem_ctx_quiet && stream == WEFT_STREAM_HOST)
        pyweft_pending_drop(ctx, begun);
    return pyweft_error_result(signature->call, error);
}

PYWEFT_FUNCTION(fence) {
    static const struct pyweft_signature signature = {"fence", 0, 0, {"ctx", "stream"}};
    (void)self;
    return order(&signature, args, nargs, names, shmem_ctx_fence, shmemx_fence_on_stream);
}

PYWEFT_FUNCTION(quiet) {
    static const struct pyweft_signature signature = {"quiet", 0, 0, {"ctx", "stream"}};
    (void)self;
    return order(&signature, args, nargs, names, shmem_ctx_quiet, shmemx_quiet_on_stream);
}

/* --- Sessions --------------------------------------------------------------------------------- */

PYWEFT_FUNCTION(session_start) {
    static const struct pyweft_signature signature = {
        "session_start", 0, 0, {"ctx", "batch", "total_ops"}};
    shmem_ctx_session_config_t config = {.total_ops = 0};
    PyObject *in[3];
    shmem_ctx_t ctx;
    int error = 0;
    (void)self;
    if (!pyweft_arguments_in_job(&signature, args, nargs, names, in) ||
        !pyweft_ctx_take(signature.call, in[0], WEFT_STREAM_HOST, &ctx))
        return NULL;
    int batch = in[1] ? PyObject_IsTrue(in[1]) : 0;
    bool counted = in[2] && in[2] != Py_None;
    if (batch < 0 ||
        (counted && !pyweft_argument_size(signature.call, "total_ops", in[2], &config.total_ops)))
        return NULL;
    PYWEFT_WITH_GIL(error,
                    (shmem_ctx_session_start(ctx, batch ? SHMEM_CTX_SESSION_BATCH : 0, &config,
                                             counted ? SHMEM_CTX_SESSION_TOTAL_OPS : 0),
                     0));
    return pyweft_error_result(signature.call, error);
}

PYWEFT_FUNCTION(session_stop) {
    static const struct pyweft_signature signature = {"session_stop", 0, 0, {"ctx"}};
    PyObject *in[1];
    shmem_ctx_t ctx;
    int error = 0;
    (void)self;
    if (!pyweft_arguments_in_job(&signature, args, nargs, names, in) ||
        !pyweft_ctx_take(signature.call, in[0], WEFT_STREAM_HOST, &ctx))
        return NULL;
    PYWEFT_WITH_GIL(error, (shmem_ctx_session_stop(ctx), 0));
    return pyweft_error_result(signature.call, error);
}

/* --- sync, barrier --------------------------------------------------------------------------- */

static int meet_by_thread(shmem_team_t team, bool complete) {
    if (complete)
        shmem_quiet();
    return shmem_team_sync(team);
}

static int meet_by_stream(shmem_team_t team, bool complete, shmemx_stream_t stream) {
    return (complete ? shmemx_barrier_on_stream : shmemx_sync_on_stream)(team, stream);
}

/* A barrier has no way to refuse. So a member whose arguments cannot be sorted takes part first and
 * raises its exception afterwards; otherwise its next barrier would match the others' current
 * one. */
static PyObject *meet(const struct pyweft_signature *signature, PyObject *const *args,
                      Py_ssize_t nargs, PyObject *names, bool complete) {
    PyObject *in[2];
    struct pyweft_operator on = {.call = signature->call};
    int error;
    (void)pyweft_arguments_sort(signature, args, nargs, names, in);
    if (!pyweft_operator_open(&on, in[0], in[1]))
        return NULL;
    uint64_t begun = pyweft_pending_count();
    PYWEFT_WITHOUT_GIL(error, on.stream == WEFT_STREAM_HOST
                                  ? meet_by_thread(on.team, complete)
                                  : meet_by_stream(on.team, complete, (shmemx_stream_t)on.stream));
    if (!error && complete && on.stream == WEFT_STREAM_HOST)
        pyweft_pending_drop(SHMEM_CTX_DEFAULT, begun);
    return pyweft_operator_close(&on, error);
}

PYWEFT_FUNCTION(sync_team) {
    static const struct pyweft_signature signature = {"sync", 0, 1, {"team", "stream"}};
    (void)self;
    return meet(&signature, args, nargs, names, false);
}

PYWEFT_FUNCTION(barrier) {
    static const struct pyweft_signature signature = {"barrier", 0, 1, {"team", "stream"}};
    (void)self;
    return meet(&signature, args, nargs, names, true);
}

#define STATE                                                                         \
    "\n\nRuntimeError: before init(), after finalize(), or a GPU or a peer failed.\n" \
    "ValueError: not a stream."
#define MEETING                                                                             \
    STATE                                                                                   \
    " Other members do not learn of a wrong argument: for one that is unknown or surplus, " \
    "the call takes part and then raises TypeError; a wrong team is an exception at once, " \
    "and the other members wait."

PyMethodDef pyweft_order_methods[] = {
    PYWEFT_METHOD(
        fence, "fence(*, ctx=None, stream=None)\n--\n\n"
               "Earlier puts and signals of this PE to a PE arrive before later ones; with ctx,\n"
               "those of that context." STATE),
    PYWEFT_METHOD(
        quiet,
        "quiet(*, ctx=None, stream=None)\n--\n\n"
        "Completes all puts, signals and gets of this PE; with ctx, those of that context." STATE),
    PYWEFT_METHOD(
        session_start,
        "session_start(*, ctx=None, batch=False, total_ops=None)\n--\n\n"
        "Announces the calls that this PE is going to make on the context (None: the default\n"
        "one): batch, many calls that may be combined; total_ops, about how many. Completes\n"
        "and orders nothing: quiet() and fence() do. Between PEs that share memory, calls\n"
        "complete at once, so the announcement is checked and ignored.\n\n"
        "TypeError: no Ctx. ValueError: a context that was destroyed, a number below 0.\n"
        "RuntimeError: before init(), after finalize()."),
    PYWEFT_METHOD(session_stop, "session_stop(*, ctx=None)\n--\n\n"
                                "Ends the session of session_start().\n\n"
                                "Errors as for session_start()."),
    PYWEFT_METHOD_AS("sync", sync_team,
                     "sync(team=None, *, stream=None)\n--\n\n"
                     "Blocks until all members have called it. Collective over the team." MEETING),
    PYWEFT_METHOD(
        barrier,
        "barrier(team=None, *, stream=None)\n--\n\n"
        "sync(), and everything that the members have put has arrived. Collective over the\n"
        "team." MEETING),
    {NULL, NULL, 0, NULL},
};
