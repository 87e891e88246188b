/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets of slices, and 32-bit signals. Numbers may be Python's, or arrays of one element:
 * the GPU reads those in its memory, when the stream gets there. */
#include <string.h>
#include "argument.h"
#include "array.h"
#include "await.h"
#include "error.h"
#include "rma.h"
#include "session.h"
#include "word.h"

/* --- Numbers --------------------------------------------------------------------------------- */

/* A number, and the array that holds it during the call. */
struct slice_number {
    shmemx_number_t value;
    struct pyweft_array array;
};

static bool read_index(struct slice_number *number, const char *call, const char *name,
                       PyObject *object) {
    int overflow = 0;
    PyObject *index = PyNumber_Index(object);
    number->value.value = index ? PyLong_AsLongLongAndOverflow(index, &overflow) : 0;
    Py_XDECREF(index);
    if (!index)
        PyErr_Clear();
    if (!index || overflow)
        PyErr_Format(PyExc_ValueError,
                     "%s: argument %s is %R: pass an integer of 64 bits, or an array of one", call,
                     name, object);
    return index && !overflow;
}

/* Reads an element in host memory now; for GPU memory stores its address. */
static bool read_element(struct slice_number *number, const char *call, const char *name,
                         weft_stream stream) {
    const struct pyweft_array *array = &number->array;
    bool wide = strcmp(array->dtype->name, "int64") == 0;
    if (array->nelems != 1 || !(wide || strcmp(array->dtype->name, "int32") == 0)) {
        PyErr_Format(PyExc_ValueError,
                     "%s: argument %s has %zu elements of %s: pass an integer, or one element of "
                     "int32 or int64",
                     call, name, array->nelems, array->dtype->name);
        return false;
    }
    if (array->device < 0) {
        int32_t narrow;
        memcpy(wide ? (void *)&number->value.value : (void *)&narrow, array->data,
               array->dtype->bytes);
        if (!wide)
            number->value.value = narrow;
        return true;
    }
    number->value.at = array->data;
    number->value.bytes = array->dtype->bytes;
    if (stream == WEFT_STREAM_HOST)
        PyErr_Format(PyExc_ValueError,
                     "%s: argument %s is in GPU memory: pass a stream, in whose order it is read",
                     call, name);
    return stream != WEFT_STREAM_HOST;
}

/* A number that is not given is 0. An object that is neither an int nor an array may still be a
 * number. */
static bool take_number(struct slice_number *number, const char *call, const char *name,
                        PyObject *object, weft_stream stream) {
    if (!object || PyLong_Check(object))
        return !object || read_index(number, call, name, object);
    if (pyweft_array_take(&number->array, call, name, object, PYWEFT_ARRAY_READ, stream))
        return read_element(number, call, name, stream);
    if (!PyErr_ExceptionMatches(PyExc_TypeError))
        return false;
    PyErr_Clear();
    return read_index(number, call, name, object);
}

/* --- Slices ---------------------------------------------------------------------------------- */

/* The elements of an array from index `begin` on. */
struct slice {
    const char *name;
    struct pyweft_array array;
    struct slice_number begin;
};

static shmemx_slice_t public_slice(const struct slice *slice) {
    return (shmemx_slice_t){slice->array.data, slice->array.nelems, slice->begin.value};
}

/* For calls by this thread, which have no numbers in GPU memory. */
static char *first_of(const struct slice *slice) {
    return slice->array.data + (size_t)slice->begin.value.value * slice->array.dtype->bytes;
}

static bool take_slice(struct slice *slice, const char *call, const char *name, PyObject *object,
                       const char *begin_name, PyObject *begin, enum pyweft_array_use use,
                       weft_stream stream) {
    slice->name = name;
    return pyweft_array_take(&slice->array, call, name, object, use, stream) &&
           take_number(&slice->begin, call, begin_name, begin, stream);
}

static void drop_slice(struct slice *slice) {
    pyweft_array_drop(&slice->array);
    pyweft_array_drop(&slice->begin.array);
}

/* Checks the numbers that are known now; for streams the GPU checks again. */
static bool check_slice(const char *call, const struct slice *slice,
                        const struct slice_number *nelems) {
    int64_t begin = slice->begin.value.value, count = nelems->value.value;
    uint64_t room = slice->array.nelems;
    if (begin >= 0 && count >= 0 && (uint64_t)begin <= room && (uint64_t)count <= room - begin)
        return true;
    PyErr_Format(PyExc_ValueError,
                 "%s: argument %s has %zu elements: there are no %lld from element %lld on", call,
                 slice->name, slice->array.nelems, (long long)count, (long long)begin);
    return false;
}

/* --- Copies ---------------------------------------------------------------------------------- */

struct slice_copy {
    const char *call;
    weft_stream stream;
    int pe;
    struct slice dest, source;
    struct slice_number nelems;
};

/* The first six arguments are the same for put and get. */
static bool take_copy(struct slice_copy *copy, PyObject **in, bool put) {
    const char *call = copy->call;
    return pyweft_argument_pe(call, in[3], &copy->pe) &&
           take_slice(&copy->dest, call, "dest", in[0], "dest_begin", in[4], PYWEFT_ARRAY_WRITTEN,
                      copy->stream) &&
           take_slice(&copy->source, call, "source", in[1], "source_begin", in[5],
                      PYWEFT_ARRAY_READ, copy->stream) &&
           take_number(&copy->nelems, call, "nelems", in[2], copy->stream) &&
           pyweft_array_check_dtype(call, "dest", &copy->dest.array, "source",
                                    &copy->source.array) &&
           check_slice(call, &copy->dest, &copy->nelems) &&
           check_slice(call, &copy->source, &copy->nelems) &&
           pyweft_array_check_symmetric(call, put ? "dest" : "source",
                                        put ? &copy->dest.array : &copy->source.array, copy->pe);
}

static void drop_copy(struct slice_copy *copy) {
    drop_slice(&copy->dest);
    drop_slice(&copy->source);
    pyweft_array_drop(&copy->nelems.array);
}

static size_t bytes_of(const struct slice_copy *copy) {
    return (size_t)copy->nelems.value.value * copy->dest.array.dtype->bytes;
}

static int move(const struct slice_copy *copy, bool put) {
    if (copy->stream == WEFT_STREAM_HOST) {
        if (put)
            pyweft_put_whole(&copy->dest.array, first_of(&copy->dest), first_of(&copy->source),
                             bytes_of(copy), SHMEM_CTX_DEFAULT, copy->pe);
        else
            shmem_getmem(first_of(&copy->dest), first_of(&copy->source), bytes_of(copy), copy->pe);
        return 0;
    }
    shmemx_slice_t dest = public_slice(&copy->dest), source = public_slice(&copy->source);
    return (put ? shmemx_put_slice_on_stream : shmemx_get_slice_on_stream)(
        &dest, &source, copy->nelems.value, copy->dest.array.dtype->bytes, copy->pe,
        (shmemx_stream_t)copy->stream);
}

static bool is_short(const struct slice_copy *copy) {
    return copy->stream == WEFT_STREAM_HOST && bytes_of(copy) <= PYWEFT_SHORT_BYTES &&
           copy->dest.array.device < 0 && copy->source.array.device < 0;
}

static int move_unlocked(const struct slice_copy *copy, bool put) {
    int error;
    if (is_short(copy))
        return move(copy, put);
    PYWEFT_WITHOUT_GIL(error, move(copy, put));
    return error;
}

static PyObject *copy_slice(const struct pyweft_signature *signature, PyObject *const *args,
                            Py_ssize_t nargs, PyObject *names, bool put) {
    struct slice_copy copy = {.call = signature->call};
    PyObject *in[7], *result = NULL;
    if (!pyweft_arguments_in_job(signature, args, nargs, names, in) ||
        !pyweft_argument_stream(signature->call, in[6], &copy.stream))
        return NULL;
    if (take_copy(&copy, in, put))
        result = pyweft_error_result(signature->call, move_unlocked(&copy, put));
    drop_copy(&copy);
    return result;
}

PYWEFT_FUNCTION(put_slice) {
    static const struct pyweft_signature signature = {
        "put_slice",
        4,
        6,
        {"dest", "source", "nelems", "pe", "dest_begin", "source_begin", "stream"}};
    (void)self;
    return copy_slice(&signature, args, nargs, names, true);
}

PYWEFT_FUNCTION(get_slice) {
    static const struct pyweft_signature signature = {
        "get_slice",
        4,
        6,
        {"dest", "source", "nelems", "pe", "dest_begin", "source_begin", "stream"}};
    (void)self;
    return copy_slice(&signature, args, nargs, names, false);
}

/* --- Signals --------------------------------------------------------------------------------- */

struct slice_word {
    struct slice words;
    struct slice_number value;
    int op;
};

static bool take_words(struct slice *words, const char *call, PyObject *object, PyObject *index,
                       int pe, weft_stream stream) {
    static const struct slice_number one = {.value = {.value = 1}};
    if (!take_slice(words, call, "signals", object, "index", index, PYWEFT_ARRAY_WRITTEN, stream))
        return false;
    if (strcmp(words->array.dtype->name, "int32") != 0 ||
        (uintptr_t)words->array.data % sizeof(int32_t) != 0) {
        PyErr_Format(PyExc_ValueError,
                     "%s: argument signals is of %s: pass aligned elements of int32, such as "
                     "weft.zeros(n, 'int32')",
                     call, words->array.dtype->name);
        return false;
    }
    return check_slice(call, words, &one) &&
           pyweft_array_check_symmetric(call, "signals", &words->array, pe);
}

static bool take_value(struct slice_number *number, const char *call, const char *name,
                       PyObject *object, weft_stream stream) {
    if (!take_number(number, call, name, object, stream))
        return false;
    if (number->value.value == (int32_t)number->value.value)
        return true;
    PyErr_Format(PyExc_ValueError, "%s: argument %s is %lld: a signal has 32 bits", call, name,
                 (long long)number->value.value);
    return false;
}

static bool take_signal(struct slice_word *signal, const char *call, PyObject *words,
                        PyObject *index, PyObject *value, PyObject *op, int pe,
                        weft_stream stream) {
    static const char *const ops[] = {"set", "add", NULL};
    int choice = 0;
    if (!take_words(&signal->words, call, words, index, pe, stream) ||
        !take_value(&signal->value, call, "value", value, stream) ||
        !pyweft_argument_choice(call, "op", op, ops, &choice))
        return false;
    signal->op = choice ? SHMEM_SIGNAL_ADD : SHMEM_SIGNAL_SET;
    return true;
}

static void drop_signal(struct slice_word *signal) {
    drop_slice(&signal->words);
    pyweft_array_drop(&signal->value.array);
}

/* Ordered after this thread's earlier puts. */
static int give(const struct slice_word *signal, int pe, weft_stream stream) {
    if (stream != WEFT_STREAM_HOST) {
        shmemx_slice_t words = public_slice(&signal->words);
        return shmemx_int32_signal_op_on_stream(&words, signal->value.value, signal->op, pe,
                                                (shmemx_stream_t)stream);
    }
    int32_t *word = (int32_t *)first_of(&signal->words), value = (int32_t)signal->value.value.value;
    shmem_fence();
    if (signal->op == SHMEM_SIGNAL_SET)
        shmem_int32_atomic_set(word, value, pe);
    else
        shmem_int32_atomic_add(word, value, pe);
    return 0;
}

static int give_unlocked(const struct slice_word *signal, int pe, weft_stream stream) {
    int error;
    if (stream == WEFT_STREAM_HOST && signal->words.array.device < 0)
        return give(signal, pe, stream);
    PYWEFT_WITHOUT_GIL(error, give(signal, pe, stream));
    return error;
}

PYWEFT_FUNCTION(signal32) {
    static const struct pyweft_signature signature = {
        "signal32", 3, 3, {"signals", "value", "pe", "op", "index", "stream"}};
    struct slice_word signal = {0};
    weft_stream stream;
    int pe;
    PyObject *in[6], *result = NULL;
    (void)self;
    if (!pyweft_arguments_in_job(&signature, args, nargs, names, in) ||
        !pyweft_argument_stream(signature.call, in[5], &stream))
        return NULL;
    if (pyweft_argument_pe(signature.call, in[2], &pe) &&
        take_signal(&signal, signature.call, in[0], in[4], in[1], in[3], pe, stream))
        result = pyweft_error_result(signature.call, give_unlocked(&signal, pe, stream));
    drop_signal(&signal);
    return result;
}

static int put_and_give(const struct slice_copy *copy, const struct slice_word *signal) {
    if (copy->stream == WEFT_STREAM_HOST) {
        move(copy, true);
        return give(signal, copy->pe, copy->stream);
    }
    shmemx_slice_t dest = public_slice(&copy->dest), source = public_slice(&copy->source);
    shmemx_slice_t words = public_slice(&signal->words);
    return shmemx_put_slice_signal_on_stream(
        &dest, &source, copy->nelems.value, copy->dest.array.dtype->bytes, &words,
        signal->value.value, signal->op, copy->pe, (shmemx_stream_t)copy->stream);
}

static int put_and_give_unlocked(const struct slice_copy *copy, const struct slice_word *signal) {
    int error;
    if (is_short(copy) && signal->words.array.device < 0)
        return put_and_give(copy, signal);
    PYWEFT_WITHOUT_GIL(error, put_and_give(copy, signal));
    return error;
}

PYWEFT_FUNCTION(put_slice_signal) {
    static const struct pyweft_signature signature = {"put_slice_signal",
                                                      8,
                                                      8,
                                                      {"dest", "source", "nelems", "pe",
                                                       "dest_begin", "source_begin", "signals",
                                                       "value", "op", "index", "stream"}};
    struct slice_copy copy = {.call = signature.call};
    struct slice_word signal = {0};
    PyObject *in[11], *result = NULL;
    (void)self;
    if (!pyweft_arguments_in_job(&signature, args, nargs, names, in) ||
        !pyweft_argument_stream(signature.call, in[10], &copy.stream))
        return NULL;
    if (take_copy(&copy, in, true) &&
        take_signal(&signal, signature.call, in[6], in[9], in[7], in[8], copy.pe, copy.stream))
        result = pyweft_error_result(signature.call, put_and_give_unlocked(&copy, &signal));
    drop_copy(&copy);
    drop_signal(&signal);
    return result;
}

/* --- wait32 ---------------------------------------------------------------------------------- */

struct int32_condition {
    int32_t *word, value;
    int cmp;
};

static bool holds(void *of) {
    const struct int32_condition *condition = of;
    return shmem_int32_test(condition->word, condition->cmp, condition->value);
}

static PyObject *wait_by_thread(int32_t *word, int cmp, int32_t value) {
    struct int32_condition condition = {word, value, cmp};
    return pyweft_await("wait32", holds, &condition) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *wait_by_stream(const struct slice *words, int cmp,
                                const struct slice_number *value, weft_stream stream) {
    shmemx_slice_t slice = public_slice(words);
    int error;
    PYWEFT_WITHOUT_GIL(error, shmemx_int32_signal_wait_until_on_stream(&slice, cmp, value->value,
                                                                       (shmemx_stream_t)stream));
    return pyweft_error_result("wait32", error);
}

PYWEFT_FUNCTION(wait32) {
    static const struct pyweft_signature signature = {
        "wait32", 2, 3, {"signals", "value", "cmp", "index", "stream"}};
    struct slice words = {0};
    struct slice_number value = {0};
    weft_stream stream;
    int cmp = 0;
    PyObject *in[5], *result = NULL;
    (void)self;
    if (!pyweft_arguments_in_job(&signature, args, nargs, names, in) ||
        !pyweft_argument_stream(signature.call, in[4], &stream))
        return NULL;
    if (take_words(&words, signature.call, in[0], in[3], pyweft_session.pe, stream) &&
        take_value(&value, signature.call, "value", in[1], stream) &&
        pyweft_argument_cmp(signature.call, in[2], &cmp))
        result = stream == WEFT_STREAM_HOST
                     ? wait_by_thread((int32_t *)first_of(&words), cmp, (int32_t)value.value.value)
                     : wait_by_stream(&words, cmp, &value, stream);
    drop_slice(&words);
    pyweft_array_drop(&value.array);
    return result;
}

#define NUMBERS                                                                                 \
    "\n\nNumbers are integers, or arrays of one int32 or int64. With a stream, the GPU reads\n" \
    "those in its memory when the stream gets there, again in each replay of a graph; a\n"      \
    "kernel that finds an invalid number reports it and traps. All others are read now."

PyMethodDef pyweft_slice_methods[] = {
    PYWEFT_METHOD(
        put_slice,
        "put_slice(dest, source, nelems, pe, dest_begin=0, source_begin=0, *, stream=None)\n--\n\n"
        "dest[dest_begin:][:nelems] on `pe` <- source[source_begin:][:nelems] here, in\n"
        "elements of the arrays' one type. dest is symmetric. Complete at `pe` after a signal\n"
        "or a barrier.\n\n"
        "ValueError: arrays of two types, not contiguous, dest not symmetric, elements out of\n"
        "range." NUMBERS),
    PYWEFT_METHOD(
        get_slice,
        "get_slice(dest, source, nelems, pe, dest_begin=0, source_begin=0, *, stream=None)\n--\n\n"
        "dest[dest_begin:][:nelems] here <- source[source_begin:][:nelems] on `pe`, in\n"
        "elements of the arrays' one type. source is symmetric. Errors as for put_slice." NUMBERS),
    PYWEFT_METHOD(
        put_slice_signal,
        "put_slice_signal(dest, source, nelems, pe, dest_begin, source_begin, signals, value, *, "
        "op='set', index=0, stream=None)\n--\n\n"
        "put_slice, followed by signal32: a PE that sees the signal sees the data." NUMBERS),
    PYWEFT_METHOD(
        signal32,
        "signal32(signals, value, pe, *, op='set', index=0, stream=None)\n--\n\n"
        "Sets signals[index] on `pe` to value, or adds value to it (op 'add'), atomically.\n"
        "signals is a symmetric array of int32; value may be negative." NUMBERS),
    PYWEFT_METHOD(
        wait32,
        "wait32(signals, value, cmp='==', *, index=0, stream=None)\n--\n\n"
        "Blocks until signals[index] of this PE compares with value: '==', '!=', '>', '>=',\n"
        "'<' or '<='. Everything that was put before the signal is visible then." NUMBERS),
    {NULL, NULL, 0, NULL},
};
