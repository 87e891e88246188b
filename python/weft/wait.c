/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits for this PE's words, which others change, and tests of them: one word, or all, any or some
 * of several. Waits poll without the GIL, so they can be interrupted. */
#include "argument.h"
#include "await.h"
#include "error.h"
#include "session.h"
#include "word.h"

/* --- One signal ------------------------------------------------------------------------------ */

struct signal_condition {
    uint64_t *word, value;
    int cmp;
};

static bool holds(void *of) {
    const struct signal_condition *condition = of;
    return shmem_uint64_test(condition->word, condition->cmp, condition->value);
}

static PyObject *wait_by_thread(uint64_t *word, int cmp, uint64_t value) {
    struct signal_condition condition = {word, value, cmp};
    return pyweft_await("wait", holds, &condition)
               ? PyLong_FromUnsignedLongLong(shmem_signal_fetch(word))
               : NULL;
}

static PyObject *wait_by_stream(uint64_t *word, int cmp, uint64_t value, weft_stream stream) {
    int error;
    PYWEFT_WITHOUT_GIL(
        error, shmemx_signal_wait_until_on_stream(word, cmp, value, (shmemx_stream_t)stream));
    return pyweft_error_result("wait", error);
}

PYWEFT_FUNCTION(wait) {
    static const struct pyweft_signature signature = {
        "wait", 2, 3, {"signal", "value", "cmp", "stream"}};
    struct pyweft_array word = {0};
    weft_stream stream;
    uint64_t value;
    int cmp;
    PyObject *in[4], *result = NULL;
    (void)self;
    if (!pyweft_arguments_in_job(&signature, args, nargs, names, in) ||
        !pyweft_argument_stream(signature.call, in[3], &stream))
        return NULL;
    if (pyweft_signal_take(&word, signature.call, in[0], pyweft_session.pe, stream) &&
        pyweft_argument_uint64(signature.call, "value", in[1], &value) &&
        pyweft_argument_cmp(signature.call, in[2], &cmp))
        result = stream == WEFT_STREAM_HOST
                     ? wait_by_thread((uint64_t *)word.data, cmp, value)
                     : wait_by_stream((uint64_t *)word.data, cmp, value, stream);
    pyweft_array_drop(&word);
    return result;
}

/* --- Words of any type ----------------------------------------------------------------------- */

/* The words of a call, the values to compare with (one, or one for each word), and a status that
 * excludes words. */
struct word_set {
    const char *call;
    struct pyweft_array words;
    size_t first, nelems; /* of the array's elements */
    uint64_t *values, value;
    int *status, cmp;
    size_t met, found; /* of a wait: how many words have been met so far, and the result */
    size_t *indices;
};

static bool test_word(const struct word_set *set, size_t i) {
    const struct pyweft_dtype_row *dtype = set->words.dtype;
    char *at = set->words.data + (set->first + i) * dtype->bytes;
    uint64_t value = set->values ? set->values[i] : set->value;
    switch (dtype->operand) {
    case WEFT_I32:
        return shmem_int32_test((int32_t *)at, set->cmp, (int32_t)value);
    case WEFT_U32:
        return shmem_uint32_test((uint32_t *)at, set->cmp, (uint32_t)value);
    case WEFT_I64:
        return shmem_int64_test((int64_t *)at, set->cmp, (int64_t)value);
    default:
        return shmem_uint64_test((uint64_t *)at, set->cmp, value);
    }
}

static bool counts(const struct word_set *set, size_t i) {
    return !set->status || set->status[i] == 0;
}

static bool is_empty(const struct word_set *set) {
    for (size_t i = 0; i < set->nelems; i++)
        if (counts(set, i))
            return false;
    return true;
}

/* In order: a word that was met once counts as met, as the specification says. */
static bool all_met(void *of) {
    struct word_set *set = of;
    while (set->met < set->nelems && (!counts(set, set->met) || test_word(set, set->met)))
        set->met++;
    return set->met == set->nelems;
}

/* Begins one word further each time, so that every word gets its turn. */
static bool any_met(void *of) {
    static atomic_size_t turn;
    struct word_set *set = of;
    size_t begin = atomic_fetch_add(&turn, 1);
    for (size_t i = 0; i < set->nelems; i++) {
        set->found = (begin + i) % set->nelems;
        if (counts(set, set->found) && test_word(set, set->found))
            return true;
    }
    return false;
}

static bool some_met(void *of) {
    struct word_set *set = of;
    set->found = 0;
    for (size_t i = 0; i < set->nelems; i++)
        if (counts(set, i) && test_word(set, i))
            set->indices[set->found++] = i;
    return set->found > 0;
}

/* --- Arguments of sets ----------------------------------------------------------------------- */

/* Returns a new list with as many items as there are words, or NULL with an exception. */
static PyObject *list_of(const struct word_set *set, const char *name, PyObject *object) {
    PyObject *list = PySequence_List(object);
    if (!list) {
        PyErr_Clear();
        return PyErr_Format(PyExc_TypeError, "%s: argument %s is %R: pass %s", set->call, name,
                            object, "one item for each word");
    }
    if ((size_t)PyList_Size(list) == set->nelems)
        return list;
    PyErr_Format(PyExc_ValueError, "%s: argument %s has %zd items, and there are %zu words",
                 set->call, name, PyList_Size(list), set->nelems);
    Py_DECREF(list);
    return NULL;
}

static bool take_values(struct word_set *set, PyObject *object) {
    PyObject *number = PyLong_Check(object) ? Py_NewRef(object) : PyNumber_Index(object);
    if (number) {
        bool taken = pyweft_word_bits(set->call, "value", set->words.dtype, number, &set->value);
        Py_DECREF(number);
        return taken;
    }
    PyErr_Clear();
    PyObject *list = list_of(set, "value", object);
    set->values = list ? PyMem_Malloc((set->nelems + 1) * sizeof *set->values) : NULL;
    bool taken = set->values != NULL;
    for (size_t i = 0; taken && i < set->nelems; i++)
        taken = pyweft_word_bits(set->call, "value", set->words.dtype,
                                 PyList_GetItem(list, (Py_ssize_t)i), &set->values[i]);
    Py_XDECREF(list);
    return taken || (PyErr_Occurred() ? false : (PyErr_NoMemory(), false));
}

static bool take_status(struct word_set *set, PyObject *object) {
    if (!object || object == Py_None)
        return true;
    PyObject *list = list_of(set, "status", object);
    set->status = list ? PyMem_Malloc((set->nelems + 1) * sizeof *set->status) : NULL;
    bool taken = set->status != NULL;
    for (size_t i = 0; taken && i < set->nelems; i++) {
        set->status[i] = PyObject_IsTrue(PyList_GetItem(list, (Py_ssize_t)i));
        taken = set->status[i] >= 0;
    }
    Py_XDECREF(list);
    return taken || (PyErr_Occurred() ? false : (PyErr_NoMemory(), false));
}

static bool take_words(struct word_set *set, const char *name, PyObject *words) {
    if (!pyweft_words_take(&set->words, set->call, name, words, PYWEFT_WORD_WHOLE,
                           PYWEFT_ARRAY_READ) ||
        !pyweft_array_check_symmetric(set->call, name, &set->words, pyweft_session.pe))
        return false;
    set->nelems = set->words.nelems;
    return true;
}

/* in[]: ivars, value, cmp, status. */
static bool take_set(struct word_set *set, PyObject *const *in) {
    set->indices = NULL;
    if (!take_words(set, "ivars", in[0]) || !take_values(set, in[1]) ||
        !pyweft_argument_cmp(set->call, in[2], &set->cmp) || !take_status(set, in[3]))
        return false;
    set->indices = PyMem_Malloc((set->nelems + 1) * sizeof *set->indices);
    return set->indices || (PyErr_NoMemory(), false);
}

/* in[]: ivar, value, cmp, index. */
static bool take_one(struct word_set *set, PyObject *const *in) {
    if (!take_words(set, "ivar", in[0]) ||
        !pyweft_words_index(&set->words, set->call, "ivar", in[3], &set->first) ||
        !pyweft_word_bits(set->call, "value", set->words.dtype, in[1], &set->value))
        return false;
    set->nelems = 1;
    return pyweft_argument_cmp(set->call, in[2], &set->cmp);
}

static void drop_set(struct word_set *set) {
    pyweft_array_drop(&set->words);
    PyMem_Free(set->values);
    PyMem_Free(set->status);
    PyMem_Free(set->indices);
}

/* --- Waits and tests ------------------------------------------------------------------------- */

typedef bool look(void *set);

/* Tests once, or blocks until the condition is met. Returns false with an exception. */
static bool look_at(struct word_set *set, look *met, bool waits, bool *result) {
    int error = 0;
    *result = false;
    if (waits)
        return *result = pyweft_await(set->call, met, set);
    if (set->words.device < 0)
        PYWEFT_WITH_GIL(error, (*result = met(set), 0));
    else
        PYWEFT_WITHOUT_GIL(error, (*result = met(set), 0));
    if (error)
        pyweft_error_raise(set->call, error);
    return !error;
}

static PyObject *indices_of(const struct word_set *set) {
    PyObject *list = PyList_New((Py_ssize_t)set->found);
    for (size_t i = 0; list && i < set->found; i++) {
        PyObject *index = PyLong_FromSize_t(set->indices[i]);
        if (!index || PyList_SetItem(list, (Py_ssize_t)i, index) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* all: whether it is met, or None for a wait; any: the index, or None; some: a list of indices. */
static PyObject *answer(const struct word_set *set, look *met, bool waits, bool is_met) {
    if (met == some_met)
        return indices_of(set);
    if (met == any_met)
        return is_met ? PyLong_FromSize_t(set->found) : Py_NewRef(Py_None);
    return waits ? Py_NewRef(Py_None) : PyBool_FromLong(is_met);
}

struct wait_kind {
    struct pyweft_signature signature;
    bool (*take)(struct word_set *set, PyObject *const *in);
    look *met;
    bool waits;
};

static PyObject *run(const struct wait_kind *kind, PyObject *const *args, Py_ssize_t nargs,
                     PyObject *names) {
    struct word_set set = {.call = kind->signature.call};
    PyObject *in[4], *result = NULL;
    if (!pyweft_arguments_in_job(&kind->signature, args, nargs, names, in))
        return NULL;
    if (kind->take(&set, in)) {
        bool is_met = kind->met == all_met;
        if (is_empty(&set) || look_at(&set, kind->met, kind->waits, &is_met))
            result = answer(&set, kind->met, kind->waits, is_met);
    }
    drop_set(&set);
    return result;
}

#define CALL(NAME, TAKE, WORDS, LAST, MET, WAITS)                            \
    PYWEFT_FUNCTION(NAME) {                                                  \
        static const struct wait_kind kind = {                               \
            {#NAME, 2, 3, {WORDS, "value", "cmp", LAST}}, TAKE, MET, WAITS}; \
        (void)self;                                                          \
        return run(&kind, args, nargs, names);                               \
    }
CALL(wait_until, take_one, "ivar", "index", all_met, true)
CALL(wait_until_all, take_set, "ivars", "status", all_met, true)
CALL(wait_until_any, take_set, "ivars", "status", any_met, true)
CALL(wait_until_some, take_set, "ivars", "status", some_met, true)
CALL(test, take_one, "ivar", "index", all_met, false)
CALL(test_all, take_set, "ivars", "status", all_met, false)
CALL(test_any, take_set, "ivars", "status", any_met, false)
CALL(test_some, take_set, "ivars", "status", some_met, false)
#undef CALL

#define STATE " RuntimeError: before init(), after finalize(), or a GPU or a peer failed."
#define WORDS                                                                                  \
    "\n\nValueError: words that are not int32, int64, uint32 or uint64, or not symmetric; a\n" \
    "value out of the type's range; no such index or cmp. TypeError: no array, no number.\n"
#define SET                                                                                   \
    "\n\nvalue is one number, or one for each word. Words with a true status are excluded.\n" \
    "When a word compares, everything that was put before it was changed is visible." WORDS

PyMethodDef pyweft_wait_methods[] = {
    PYWEFT_METHOD(
        wait,
        "wait(signal, value, cmp='==', *, stream=None)\n--\n\n"
        "Blocks until this PE's word `signal` compares with value: '==', '!=', '>', '>=', '<'\n"
        "or '<='. Returns the word. Everything that was put before the signal is visible\n"
        "then. With a stream, the stream waits, and the result is None.\n\n"
        "ValueError: a word that is not one aligned uint64 of symmetric memory, a value that\n"
        "is not from 0 to 2**64 - 1, no such cmp." STATE),
    PYWEFT_METHOD(
        wait_until,
        "wait_until(ivar, value, cmp='==', *, index=0)\n--\n\n"
        "Blocks until element `index` of this PE's ivar compares with value." WORDS STATE),
    PYWEFT_METHOD(wait_until_all,
                  "wait_until_all(ivars, value, cmp='==', *, status=None)\n--\n\n"
                  "Blocks until each word of this PE's ivars has compared with value." SET STATE),
    PYWEFT_METHOD(
        wait_until_any,
        "wait_until_any(ivars, value, cmp='==', *, status=None)\n--\n\n"
        "Blocks until one of the words compares with value, and returns its index. Returns\n"
        "None if there are no words." SET STATE),
    PYWEFT_METHOD(
        wait_until_some,
        "wait_until_some(ivars, value, cmp='==', *, status=None)\n--\n\n"
        "Blocks until one of the words compares with value, and returns the indices of all\n"
        "that do." SET STATE),
    PYWEFT_METHOD(
        test, "test(ivar, value, cmp='==', *, index=0)\n--\n\n"
              "Returns whether element `index` of this PE's ivar compares with value: '==', '!=',\n"
              "'>', '>=', '<' or '<='." WORDS STATE),
    PYWEFT_METHOD(test_all,
                  "test_all(ivars, value, cmp='==', *, status=None)\n--\n\n"
                  "Returns whether all words of this PE's ivars compare with value." SET STATE),
    PYWEFT_METHOD(test_any,
                  "test_any(ivars, value, cmp='==', *, status=None)\n--\n\n"
                  "Returns the index of a word that compares with value, or None." SET STATE),
    PYWEFT_METHOD(test_some, "test_some(ivars, value, cmp='==', *, status=None)\n--\n\n"
                             "Returns the indices of the words that compare with value." SET STATE),
    {NULL, NULL, 0, NULL},
};
