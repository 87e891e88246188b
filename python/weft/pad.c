/* SPDX-License-Identifier: BSD-3-Clause */
/* Signal pads, with the protocol of PyTorch's and Helion's kernels, on a stream or by this
 * thread. */
#include <string.h>
#include "argument.h"
#include "array.h"
#include "error.h"
#include "session.h"

struct pad {
    const char *call;
    struct pyweft_array array; /* holds the addresses if they are passed as an array */
    uint32_t *const *pads;
    int rank, n, peer, channel;
    uint64_t timeout_ms;
    weft_stream stream;
};

/* Takes the addresses of n pads: the address of an array of them as a number, or an array. */
static bool take_pads(struct pad *pad, PyObject *object) {
    if (PyLong_Check(object)) {
        pad->pads = PyLong_AsVoidPtr(object);
        return !PyErr_Occurred();
    }
    if (!pyweft_array_take(&pad->array, pad->call, "pads", object, PYWEFT_ARRAY_READ, pad->stream))
        return false;
    pad->pads = (uint32_t *const *)pad->array.data;
    if (pad->array.dtype->bytes == sizeof(void *) && pad->array.nelems == (size_t)pad->n)
        return true;
    PyErr_Format(PyExc_ValueError,
                 "%s: argument pads has %zu elements of %s: pass the addresses of %d pads, in an "
                 "array of uint64 or as the address of one",
                 pad->call, pad->array.nelems, pad->array.dtype->name, pad->n);
    return false;
}

/* in[]: pads, rank, n, peer if the call has one, channel, timeout_ms, stream. */
static bool take(struct pad *pad, PyObject *const *in, bool peer) {
    PyObject *const *rest = in + (peer ? 4 : 3);
    return pyweft_argument_stream(pad->call, rest[2], &pad->stream) &&
           pyweft_argument_int(pad->call, "rank", in[1], &pad->rank) &&
           pyweft_argument_int(pad->call, "n", in[2], &pad->n) &&
           (!peer || pyweft_argument_int(pad->call, "peer", in[3], &pad->peer)) &&
           pyweft_argument_int(pad->call, "channel", rest[0], &pad->channel) &&
           pyweft_argument_uint64(pad->call, "timeout_ms", rest[1], &pad->timeout_ms) &&
           take_pads(pad, in[0]);
}

typedef int to_peer(uint32_t *const *, int, int, int, int, uint64_t, shmemx_stream_t);

/* `act` is put or wait, or NULL for the barrier. */
static int act_on(const struct pad *pad, to_peer *act) {
    shmemx_stream_t stream = (shmemx_stream_t)pad->stream;
    if (act)
        return act(pad->pads, pad->rank, pad->n, pad->peer, pad->channel, pad->timeout_ms, stream);
    return shmemx_pad_barrier_on_stream(pad->pads, pad->rank, pad->n, pad->channel, pad->timeout_ms,
                                        stream);
}

/* A wait with a timeout is allowed after the job was lost: see pyweft_session_guard_limited. */
static bool may_wait(const struct pad *pad) {
    return (pyweft_session.lost && pyweft_session.running && pad->timeout_ms != 0) ||
           pyweft_session_check(pad->call);
}

static PyObject *meet(const struct pyweft_signature *signature, PyObject *const *args,
                      Py_ssize_t nargs, PyObject *names, to_peer *act) {
    struct pad pad = {.call = signature->call};
    PyObject *in[7];
    int error;
    if ((!pyweft_session.lost && !pyweft_session_check(signature->call)) ||
        !pyweft_arguments_sort(signature, args, nargs, names, in))
        return NULL;
    if (!take(&pad, in, act != NULL) || !may_wait(&pad)) {
        pyweft_array_drop(&pad.array);
        return NULL;
    }
    PYWEFT_WITHOUT_GIL(error, act_on(&pad, act));
    pyweft_array_drop(&pad.array);
    return pyweft_error_result(signature->call, error);
}

PYWEFT_FUNCTION(pad_put) {
    static const struct pyweft_signature signature = {
        "pad_put", 5, 5, {"pads", "rank", "n", "peer", "channel", "timeout_ms", "stream"}};
    (void)self;
    return meet(&signature, args, nargs, names, shmemx_pad_put_on_stream);
}

PYWEFT_FUNCTION(pad_wait) {
    static const struct pyweft_signature signature = {
        "pad_wait", 5, 5, {"pads", "rank", "n", "peer", "channel", "timeout_ms", "stream"}};
    (void)self;
    return meet(&signature, args, nargs, names, shmemx_pad_wait_on_stream);
}

PYWEFT_FUNCTION(pad_barrier) {
    static const struct pyweft_signature signature = {
        "pad_barrier", 4, 4, {"pads", "rank", "n", "channel", "timeout_ms", "stream"}};
    (void)self;
    return meet(&signature, args, nargs, names, NULL);
}

#define PADS                                                                                     \
    "\n\npads holds the addresses of the n ranks' pads: an array of uint64, or the address of\n" \
    "one; with a stream in GPU memory, without in host memory. pads[r] has\n"                    \
    "32-bit words, initially 0; word n * channel + source is that of (channel, source).\n"       \
    "This thread raises TimeoutError after timeout_ms (0: never); a kernel that waits\n"         \
    "longer traps."

PyMethodDef pyweft_pad_methods[] = {
    PYWEFT_METHOD(pad_put,
                  "pad_put(pads, rank, n, peer, channel, *, timeout_ms=0, stream=None)\n--\n\n"
                  "Waits until the peer's word for this rank is 0, and sets it to 1." PADS),
    PYWEFT_METHOD(pad_wait,
                  "pad_wait(pads, rank, n, peer, channel, *, timeout_ms=0, stream=None)\n--\n\n"
                  "Waits until this rank's word for the peer is 1, and sets it to 0." PADS),
    PYWEFT_METHOD(pad_barrier,
                  "pad_barrier(pads, rank, n, channel, *, timeout_ms=0, stream=None)\n--\n\n"
                  "pad_put to every other rank, then pad_wait for every other rank: no rank\n"
                  "continues before all have arrived." PADS),
    {NULL, NULL, 0, NULL},
};
