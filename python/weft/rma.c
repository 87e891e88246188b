/* SPDX-License-Identifier: BSD-3-Clause */
/* Put, get, signals, and waiting for them. Everything that the library would end the job for is
 * looked at before. */
#include <sched.h>
#include <string.h>
#include "argument.h"
#include "array.h"
#include "await.h"
#include "error.h"
#include "rma.h"
#include "session.h"

/* --- Arguments ------------------------------------------------------------------------------- */

struct transfer {
    const char *call;
    weft_stream stream;
    int pe;
    struct weft_array dest, source;
};

/* Bytes go with any type: one side of uint8 says so. */
static bool check_types(const struct transfer *transfer) {
    const struct weft_array *dest = &transfer->dest, *source = &transfer->source;
    if (dest->bytes != source->bytes) {
        PyErr_Format(PyExc_ValueError,
                     "%s: argument dest has %zu elements of %s, %zu bytes, and source %zu of %s, "
                     "%zu bytes: pass as many",
                     transfer->call, dest->nelems, dest->dtype->name, dest->bytes, source->nelems,
                     source->dtype->name, source->bytes);
        return false;
    }
    if (strcmp(dest->dtype->name, "uint8") == 0 || strcmp(source->dtype->name, "uint8") == 0)
        return true;
    return weft_array_check_dtype(transfer->call, "dest", dest, "source", source);
}

static bool take(struct transfer *transfer, PyObject *dest, PyObject *source, PyObject *pe) {
    const char *call = transfer->call;
    return weft_argument_pe(call, pe, &transfer->pe) &&
           weft_array_take(&transfer->dest, call, "dest", dest, WEFT_ARRAY_WRITTEN,
                           transfer->stream) &&
           weft_array_take(&transfer->source, call, "source", source, WEFT_ARRAY_READ,
                           transfer->stream) &&
           check_types(transfer);
}

static void drop(struct transfer *transfer) {
    weft_array_drop(&transfer->dest);
    weft_array_drop(&transfer->source);
}

static bool is_short(const struct transfer *transfer) {
    return transfer->stream == WEFT_STREAM_HOST && transfer->dest.bytes <= WEFT_SHORT_BYTES &&
           transfer->dest.device < 0 && transfer->source.device < 0;
}

/* A signal word: one aligned uint64 of symmetric memory. */
static bool take_word(struct weft_array *word, const char *call, PyObject *object, int pe,
                      weft_stream stream) {
    if (!weft_array_take(word, call, "signal", object, WEFT_ARRAY_WRITTEN, stream))
        return false;
    if (strcmp(word->dtype->name, "uint64") != 0 || word->nelems != 1 ||
        (uintptr_t)word->data % sizeof(uint64_t) != 0) {
        PyErr_Format(PyExc_ValueError,
                     "%s: argument signal has %zu elements of %s: pass one element of uint64, such "
                     "as weft.zeros(1, 'uint64') or a view(1, offset=8 * i) of more",
                     call, word->nelems, word->dtype->name);
        return false;
    }
    return weft_array_check_symmetric(call, "signal", word, pe);
}

static bool take_op(const char *call, PyObject *object, int *op) {
    static const char *const ops[] = {"set", "add", NULL};
    int choice = 0;
    if (!weft_argument_choice(call, "op", object, ops, &choice))
        return false;
    *op = choice ? SHMEM_SIGNAL_ADD : SHMEM_SIGNAL_SET;
    return true;
}

/* --- put, get -------------------------------------------------------------------------------- */

void weft_put_whole(const struct weft_array *array, void *dest, const void *source, size_t bytes,
                    int pe) {
    shmem_putmem(dest, source, bytes, pe);
    if (array->device >= 0)
        shmem_quiet();
}

static int move(const struct transfer *transfer, bool put) {
    void *dest = transfer->dest.data;
    const void *source = transfer->source.data;
    size_t bytes = transfer->dest.bytes;
    if (transfer->stream != WEFT_STREAM_HOST)
        return (put ? shmemx_putmem_on_stream : shmemx_getmem_on_stream)(
            dest, source, bytes, transfer->pe, (shmemx_stream_t)transfer->stream);
    if (put)
        weft_put_whole(&transfer->dest, dest, source, bytes, transfer->pe);
    else
        shmem_getmem(dest, source, bytes, transfer->pe);
    return 0;
}

static int move_unlocked(const struct transfer *transfer, bool put) {
    int error;
    if (is_short(transfer))
        return move(transfer, put);
    WEFT_UNLOCKED(error, move(transfer, put));
    return error;
}

static PyObject *copy(const struct weft_signature *signature, PyObject *const *args,
                      Py_ssize_t nargs, PyObject *names, bool put) {
    struct transfer transfer = {.call = signature->call};
    PyObject *in[4], *result = NULL;
    if (!weft_session_check(signature->call) ||
        !weft_arguments_sort(signature, args, nargs, names, in) ||
        !weft_argument_stream(signature->call, in[3], &transfer.stream))
        return NULL;
    if (take(&transfer, in[0], in[1], in[2]) &&
        weft_array_check_symmetric(signature->call, put ? "dest" : "source",
                                   put ? &transfer.dest : &transfer.source, transfer.pe))
        result = weft_error_result(signature->call, move_unlocked(&transfer, put));
    drop(&transfer);
    return result;
}

WEFT_FUNCTION(put) {
    static const struct weft_signature signature = {
        "put", 3, 3, {"dest", "source", "pe", "stream"}};
    (void)self;
    return copy(&signature, args, nargs, names, true);
}

WEFT_FUNCTION(get) {
    static const struct weft_signature signature = {
        "get", 3, 3, {"dest", "source", "pe", "stream"}};
    (void)self;
    return copy(&signature, args, nargs, names, false);
}

/* --- Signals --------------------------------------------------------------------------------- */

struct announcement {
    uint64_t *word, value;
    int op;
};

static int announce(const struct transfer *transfer, const struct announcement *signal) {
    if (transfer->stream != WEFT_STREAM_HOST)
        return shmemx_putmem_signal_on_stream(
            transfer->dest.data, transfer->source.data, transfer->dest.bytes, signal->word,
            signal->value, signal->op, transfer->pe, (shmemx_stream_t)transfer->stream);
    shmem_putmem_signal(transfer->dest.data, transfer->source.data, transfer->dest.bytes,
                        signal->word, signal->value, signal->op, transfer->pe);
    return 0;
}

static int announce_unlocked(const struct transfer *transfer, const struct announcement *signal,
                             const struct weft_array *word) {
    int error;
    if (is_short(transfer) && word->device < 0)
        return announce(transfer, signal);
    WEFT_UNLOCKED(error, announce(transfer, signal));
    return error;
}

WEFT_FUNCTION(put_signal) {
    static const struct weft_signature signature = {
        "put_signal", 5, 5, {"dest", "source", "signal", "value", "pe", "op", "stream"}};
    struct transfer transfer = {.call = signature.call};
    struct announcement signal = {0};
    struct weft_array word = {0};
    PyObject *in[7], *result = NULL;
    (void)self;
    if (!weft_session_check(signature.call) ||
        !weft_arguments_sort(&signature, args, nargs, names, in) ||
        !weft_argument_stream(signature.call, in[6], &transfer.stream))
        return NULL;
    if (take(&transfer, in[0], in[1], in[4]) &&
        weft_array_check_symmetric(signature.call, "dest", &transfer.dest, transfer.pe) &&
        take_word(&word, signature.call, in[2], transfer.pe, transfer.stream) &&
        weft_argument_uint64(signature.call, "value", in[3], &signal.value) &&
        take_op(signature.call, in[5], &signal.op)) {
        signal.word = (uint64_t *)word.data;
        result = weft_error_result(signature.call, announce_unlocked(&transfer, &signal, &word));
    }
    drop(&transfer);
    weft_array_drop(&word);
    return result;
}

static int send_signal(const struct announcement *signal, int pe, weft_stream stream) {
    if (stream != WEFT_STREAM_HOST)
        return shmemx_signal_op_on_stream(signal->word, signal->value, signal->op, pe,
                                          (shmemx_stream_t)stream);
    if (signal->op == SHMEM_SIGNAL_SET)
        shmem_signal_set(signal->word, signal->value, pe);
    else
        shmem_signal_add(signal->word, signal->value, pe);
    return 0;
}

static int send_signal_unlocked(const struct announcement *signal, int pe, weft_stream stream,
                                const struct weft_array *word) {
    int error;
    if (stream == WEFT_STREAM_HOST && word->device < 0)
        return send_signal(signal, pe, stream);
    WEFT_UNLOCKED(error, send_signal(signal, pe, stream));
    return error;
}

WEFT_FUNCTION(signal) {
    static const struct weft_signature signature = {
        "signal", 3, 3, {"signal", "value", "pe", "op", "stream"}};
    struct announcement signal = {0};
    struct weft_array word = {0};
    weft_stream stream;
    int pe;
    PyObject *in[5], *result = NULL;
    (void)self;
    if (!weft_session_check(signature.call) ||
        !weft_arguments_sort(&signature, args, nargs, names, in) ||
        !weft_argument_stream(signature.call, in[4], &stream))
        return NULL;
    if (weft_argument_pe(signature.call, in[2], &pe) &&
        take_word(&word, signature.call, in[0], pe, stream) &&
        weft_argument_uint64(signature.call, "value", in[1], &signal.value) &&
        take_op(signature.call, in[3], &signal.op)) {
        signal.word = (uint64_t *)word.data;
        result =
            weft_error_result(signature.call, send_signal_unlocked(&signal, pe, stream, &word));
    }
    weft_array_drop(&word);
    return result;
}

/* --- wait ------------------------------------------------------------------------------------ */

struct condition {
    uint64_t *word, value;
    int cmp;
};

static bool holds(const void *of) {
    const struct condition *condition = of;
    return shmem_uint64_test(condition->word, condition->cmp, condition->value);
}

static PyObject *wait_by_thread(uint64_t *word, int cmp, uint64_t value) {
    const struct condition condition = {word, value, cmp};
    return weft_await("wait", holds, &condition)
               ? PyLong_FromUnsignedLongLong(shmem_signal_fetch(word))
               : NULL;
}

static PyObject *wait_by_stream(uint64_t *word, int cmp, uint64_t value, weft_stream stream) {
    int error;
    WEFT_UNLOCKED(error,
                  shmemx_signal_wait_until_on_stream(word, cmp, value, (shmemx_stream_t)stream));
    return weft_error_result("wait", error);
}

WEFT_FUNCTION(wait) {
    static const struct weft_signature signature = {
        "wait", 2, 3, {"signal", "value", "cmp", "stream"}};
    static const char *const comparisons[] = {"==", "!=", ">", ">=", "<", "<=", NULL};
    struct weft_array word = {0};
    weft_stream stream;
    uint64_t value;
    int cmp = 0;
    PyObject *in[4], *result = NULL;
    (void)self;
    if (!weft_session_check(signature.call) ||
        !weft_arguments_sort(&signature, args, nargs, names, in) ||
        !weft_argument_stream(signature.call, in[3], &stream))
        return NULL;
    if (take_word(&word, signature.call, in[0], weft_session.pe, stream) &&
        weft_argument_uint64(signature.call, "value", in[1], &value) &&
        weft_argument_choice(signature.call, "cmp", in[2], comparisons, &cmp))
        result = stream == WEFT_STREAM_HOST
                     ? wait_by_thread((uint64_t *)word.data, SHMEM_CMP_EQ + cmp, value)
                     : wait_by_stream((uint64_t *)word.data, SHMEM_CMP_EQ + cmp, value, stream);
    weft_array_drop(&word);
    return result;
}

#define ON_STREAM                                                                                \
    "With a stream, the call enqueues the work on it and returns; without, it is done by this\n" \
    "thread, and arrays on a GPU have to be ready."
#define ARRAYS_AND_STATE                                                                           \
    "\n\nValueError: no such PE; arrays of different sizes or types, not contiguous, read-only,\n" \
    "without memory, not symmetric where they have to be; a Buffer that was freed. TypeError:\n"   \
    "no array. BufferError: a tensor with the conjugate or negative bit, or one that requires\n"   \
    "grad and is written. RuntimeError: before init(), after finalize(), a GPU or a peer that\n"   \
    "failed."
#define WORD_AND_STATE                                                                             \
    "\n\nValueError: a word that is not one aligned uint64 of symmetric memory, a value that is\n" \
    "not from 0 to 2**64 - 1, no such PE, op or cmp. RuntimeError: before init(), after\n"         \
    "finalize(), a GPU or a peer that failed."

/* --- set_engine ------------------------------------------------------------------------------ */

WEFT_FUNCTION(set_engine) {
    static const struct weft_signature signature = {"set_engine", 1, 1, {"engine"}};
    static const char *const engines[] = {"auto", "sm", "copy", NULL};
    PyObject *in[1];
    int choice = 0;
    (void)self;
    if (!weft_session_check(signature.call) ||
        !weft_arguments_sort(&signature, args, nargs, names, in) ||
        !weft_argument_choice(signature.call, "engine", in[0], engines, &choice))
        return NULL;
    PyObject *before = PyUnicode_FromString(engines[shmemx_get_engine()]);
    int error = before ? shmemx_set_engine((shmemx_engine_t)choice) : 0;
    if (error)
        Py_CLEAR(before);
    return error ? weft_error_raise(signature.call, error) : before;
}

PyMethodDef weft_rma_methods[] = {
    WEFT_METHOD(put,
                "put(dest, source, pe, *, stream=None)\n--\n\n"
                "Copies source, an array of this PE's, into PE pe's copy of the symmetric dest.\n"
                "Both have as many bytes, of one type; uint8 goes with any. source may be used\n"
                "anew on return.\n\n" ON_STREAM ARRAYS_AND_STATE),
    WEFT_METHOD(get,
                "get(dest, source, pe, *, stream=None)\n--\n\n"
                "Copies PE pe's copy of the symmetric source into dest, an array of this PE's.\n"
                "Sizes and types as for put().\n\n" ON_STREAM ARRAYS_AND_STATE),
    WEFT_METHOD(put_signal,
                "put_signal(dest, source, signal, value, pe, *, op='set', stream=None)\n"
                "--\n\n"
                "put(), and signal() behind it: who sees the signal sees the data.\n"
                "Errors of both.\n\n" ON_STREAM),
    WEFT_METHOD(signal,
                "signal(signal, value, pe, *, op='set', stream=None)\n--\n\n"
                "Sets PE pe's copy of the symmetric word `signal`, one element of uint64, to\n"
                "value, or adds value to it (op 'add').\n\n" ON_STREAM WORD_AND_STATE),
    WEFT_METHOD(
        wait,
        "wait(signal, value, cmp='==', *, stream=None)\n--\n\n"
        "Waits until this PE's word `signal` compares with value: '==', '!=', '>',\n"
        "'>=', '<' or '<='. Returns the word. What was put before it was signalled\n"
        "is there then. With a stream, the stream waits, and the result is None." WORD_AND_STATE),
    WEFT_METHOD(
        set_engine,
        "set_engine(engine)\n--\n\n"
        "What copies memory of GPUs from now on, in this process: 'sm', its multiprocessors;\n"
        "'copy', a copy engine; 'auto', whichever is faster for the size. Returns what it was."),
    {NULL, NULL, 0, NULL},
};
