/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals: 64-bit words that announce data, sent alone or after a put. */
#include "argument.h"
#include "error.h"
#include "rma.h"
#include "session.h"
#include "word.h"

struct announcement {
    uint64_t *word, value;
    int op;
};

static bool take_op(const char *call, PyObject *object, int *op) {
    static const char *const ops[] = {"set", "add", NULL};
    int choice = 0;
    if (!pyweft_argument_choice(call, "op", object, ops, &choice))
        return false;
    *op = choice ? SHMEM_SIGNAL_ADD : SHMEM_SIGNAL_SET;
    return true;
}

/* --- put_signal ------------------------------------------------------------------------------ */

static int announce(const struct pyweft_transfer *transfer, const struct announcement *signal,
                    bool nbi) {
    const struct pyweft_array *dest = &transfer->dest, *source = &transfer->source;
    if (transfer->stream != WEFT_STREAM_HOST)
        return shmemx_putmem_signal_on_stream(dest->data, source->data, dest->bytes, signal->word,
                                              signal->value, signal->op, transfer->target.pe,
                                              (shmemx_stream_t)transfer->stream);
    (nbi ? shmem_ctx_putmem_signal_nbi
         : shmem_ctx_putmem_signal)(transfer->target.ctx, dest->data, source->data, dest->bytes,
                                    signal->word, signal->value, signal->op, transfer->target.pe);
    return 0;
}

static int announce_unlocked(const struct pyweft_transfer *transfer,
                             const struct announcement *signal, const struct pyweft_array *word,
                             bool nbi) {
    int error;
    if (pyweft_transfer_is_short(transfer) && word->device < 0)
        PYWEFT_WITH_GIL_BRIEF(error, announce(transfer, signal, nbi));
    else
        PYWEFT_WITHOUT_GIL(error, announce(transfer, signal, nbi));
    return error;
}

/* in[]: dest, source, signal, value, pe, op, ctx. */
static PyObject *put_signal_of(struct pyweft_transfer *transfer, PyObject *const *in, bool nbi) {
    struct announcement signal = {0};
    struct pyweft_array word = {0};
    PyObject *result = NULL;
    const char *call = transfer->call;
    if (pyweft_transfer_take(transfer, in[0], in[1], in[4], in[6]) &&
        pyweft_array_check_symmetric(call, "dest", &transfer->dest, transfer->target.world_pe) &&
        pyweft_signal_take(&word, call, in[2], transfer->target.world_pe, transfer->stream) &&
        pyweft_argument_uint64(call, "value", in[3], &signal.value) &&
        take_op(call, in[5], &signal.op)) {
        signal.word = (uint64_t *)word.data;
        int error = announce_unlocked(transfer, &signal, &word, nbi);
        if (error || !nbi || pyweft_transfer_hold(transfer))
            result = pyweft_error_result(call, error);
    }
    pyweft_transfer_drop(transfer);
    pyweft_array_drop(&word);
    return result;
}

PYWEFT_FUNCTION(put_signal) {
    static const struct pyweft_signature signature = {
        "put_signal", 5, 5, {"dest", "source", "signal", "value", "pe", "op", "ctx", "stream"}};
    struct pyweft_transfer transfer = {.call = signature.call};
    PyObject *in[8];
    (void)self;
    if (!pyweft_arguments_in_job(&signature, args, nargs, names, in) ||
        !pyweft_argument_stream(signature.call, in[7], &transfer.stream))
        return NULL;
    return put_signal_of(&transfer, in, false);
}

PYWEFT_FUNCTION(put_signal_nbi) {
    static const struct pyweft_signature signature = {
        "put_signal_nbi", 5, 5, {"dest", "source", "signal", "value", "pe", "op", "ctx"}};
    struct pyweft_transfer transfer = {.call = signature.call, .stream = WEFT_STREAM_HOST};
    PyObject *in[7];
    (void)self;
    if (!pyweft_arguments_in_job(&signature, args, nargs, names, in))
        return NULL;
    return put_signal_of(&transfer, in, true);
}

/* --- signal, signal_fetch -------------------------------------------------------------------- */

static int send_signal(const struct announcement *signal, const struct pyweft_target *target,
                       weft_stream stream) {
    if (stream != WEFT_STREAM_HOST)
        return shmemx_signal_op_on_stream(signal->word, signal->value, signal->op, target->pe,
                                          (shmemx_stream_t)stream);
    if (signal->op == SHMEM_SIGNAL_SET)
        shmem_ctx_signal_set(target->ctx, signal->word, signal->value, target->pe);
    else
        shmem_ctx_signal_add(target->ctx, signal->word, signal->value, target->pe);
    return 0;
}

static int send_signal_unlocked(const struct announcement *signal,
                                const struct pyweft_target *target, weft_stream stream,
                                const struct pyweft_array *word) {
    int error;
    if (stream == WEFT_STREAM_HOST && word->device < 0)
        PYWEFT_WITH_GIL_BRIEF(error, send_signal(signal, target, stream));
    else
        PYWEFT_WITHOUT_GIL(error, send_signal(signal, target, stream));
    return error;
}

PYWEFT_FUNCTION(signal) {
    static const struct pyweft_signature signature = {
        "signal", 3, 3, {"signal", "value", "pe", "op", "ctx", "stream"}};
    struct announcement signal = {0};
    struct pyweft_target target;
    struct pyweft_array word = {0};
    weft_stream stream;
    PyObject *in[6], *result = NULL;
    (void)self;
    if (!pyweft_arguments_in_job(&signature, args, nargs, names, in) ||
        !pyweft_argument_stream(signature.call, in[5], &stream))
        return NULL;
    if (pyweft_target_take(signature.call, in[4], in[2], stream, &target) &&
        pyweft_signal_take(&word, signature.call, in[0], target.world_pe, stream) &&
        pyweft_argument_uint64(signature.call, "value", in[1], &signal.value) &&
        take_op(signature.call, in[3], &signal.op)) {
        signal.word = (uint64_t *)word.data;
        result = pyweft_error_result(signature.call,
                                     send_signal_unlocked(&signal, &target, stream, &word));
    }
    pyweft_array_drop(&word);
    return result;
}

static int fetch(const struct pyweft_array *word, uint64_t *value) {
    *value = shmem_signal_fetch((uint64_t *)word->data);
    return 0;
}

static int fetch_unlocked(const struct pyweft_array *word, uint64_t *value) {
    int error;
    if (word->device < 0)
        PYWEFT_WITH_GIL(error, fetch(word, value));
    else
        PYWEFT_WITHOUT_GIL(error, fetch(word, value));
    return error;
}

PYWEFT_FUNCTION(signal_fetch) {
    static const struct pyweft_signature signature = {"signal_fetch", 1, 1, {"signal"}};
    struct pyweft_array word = {0};
    uint64_t value;
    PyObject *in[1], *result = NULL;
    (void)self;
    if (!pyweft_arguments_in_job(&signature, args, nargs, names, in))
        return NULL;
    if (pyweft_signal_take(&word, signature.call, in[0], pyweft_session.pe, WEFT_STREAM_HOST)) {
        int error = fetch_unlocked(&word, &value);
        result =
            error ? pyweft_error_raise(signature.call, error) : PyLong_FromUnsignedLongLong(value);
    }
    pyweft_array_drop(&word);
    return result;
}

#define WORD_AND_STATE                                                                          \
    "\n\nValueError: a word that is not one aligned uint64 of symmetric memory, a value that\n" \
    "is not from 0 to 2**64 - 1, no such PE or op. RuntimeError: before init(), after\n"        \
    "finalize(), or a GPU or a peer failed."

PyMethodDef pyweft_signal_methods[] = {
    PYWEFT_METHOD(
        put_signal,
        "put_signal(dest, source, signal, value, pe, *, op='set', ctx=None, stream=None)\n--\n\n"
        "put(), followed by signal(): a PE that sees the signal sees the data. Errors as for\n"
        "both.\n\n" PYWEFT_ON_STREAM),
    PYWEFT_METHOD(put_signal_nbi,
                  "put_signal_nbi(dest, source, signal, value, pe, *, op='set', ctx=None)\n--\n\n"
                  "put_signal(), non-blocking. " PYWEFT_UNTIL_QUIET "put_signal()."),
    PYWEFT_METHOD(
        signal,
        "signal(signal, value, pe, *, op='set', ctx=None, stream=None)\n--\n\n"
        "Sets PE pe's copy of the symmetric word `signal`, one element of uint64, to value,\n"
        "or adds value to it (op 'add').\n\n" PYWEFT_ON_STREAM WORD_AND_STATE),
    PYWEFT_METHOD(
        signal_fetch,
        "signal_fetch(signal)\n--\n\n"
        "Returns the current value of this PE's word `signal`. Everything that was put before\n"
        "the signal is visible." WORD_AND_STATE),
    {NULL, NULL, 0, NULL},
};
