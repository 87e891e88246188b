/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics on one element of a symmetric array. Signed and unsigned integers of one width share the
 * code, and so do types that are only fetched, set or swapped: only the bits count. */
#include "argument.h"
#include "array.h"
#include "context.h"
#include "error.h"
#include "session.h"
#include "word.h"

enum verb { FETCH, SET, SWAP, COMPARE_SWAP, INC, ADD, AND, OR, XOR };

struct atomic {
    const char *call;
    enum verb verb;
    bool fetches;
    struct pyweft_target target;
    struct pyweft_array dest, fetch; /* fetch: of a non-blocking call */
    void *at, *into;
    uint64_t cond, value, before;
};

/* --- The calls of C -------------------------------------------------------------------------- */

/* clang-format off */
#define WITH_VALUE(N, T, NAME)                                                                     \
    if (a->into)                                                                                   \
        shmem_ctx_##N##_atomic_fetch_##NAME##_nbi(ctx, (T *)a->into, at, (T)a->value, pe);         \
    else if (a->fetches)                                                                           \
        a->before = shmem_ctx_##N##_atomic_fetch_##NAME(ctx, at, (T)a->value, pe);                 \
    else                                                                                           \
        shmem_ctx_##N##_atomic_##NAME(ctx, at, (T)a->value, pe);                                   \
    break;
#define CHANGE(N, T)                                                                               \
    static int change_##N(struct atomic *a) {                                                      \
        shmem_ctx_t ctx = a->target.ctx;                                                           \
        T *at = a->at, cond = (T)a->cond, value = (T)a->value;                                     \
        int pe = a->target.pe;                                                                     \
        switch (a->verb) {                                                                         \
        case FETCH:                                                                                \
            if (a->into)                                                                           \
                shmem_ctx_##N##_atomic_fetch_nbi(ctx, (T *)a->into, at, pe);                       \
            else                                                                                   \
                a->before = shmem_ctx_##N##_atomic_fetch(ctx, at, pe);                             \
            break;                                                                                 \
        case SET:                                                                                  \
            shmem_ctx_##N##_atomic_set(ctx, at, value, pe);                                        \
            break;                                                                                 \
        case SWAP:                                                                                 \
            if (a->into)                                                                           \
                shmem_ctx_##N##_atomic_swap_nbi(ctx, (T *)a->into, at, value, pe);                 \
            else                                                                                   \
                a->before = shmem_ctx_##N##_atomic_swap(ctx, at, value, pe);                       \
            break;                                                                                 \
        case COMPARE_SWAP:                                                                         \
            if (a->into)                                                                           \
                shmem_ctx_##N##_atomic_compare_swap_nbi(ctx, (T *)a->into, at, cond, value, pe);   \
            else                                                                                   \
                a->before = shmem_ctx_##N##_atomic_compare_swap(ctx, at, cond, value, pe);         \
            break;                                                                                 \
        case INC:                                                                                  \
            a->value = 1;                                                                          \
            __attribute__((fallthrough));                                                          \
        case ADD: WITH_VALUE(N, T, add)                                                            \
        case AND: WITH_VALUE(N, T, and)                                                            \
        case OR:  WITH_VALUE(N, T, or)                                                             \
        case XOR: WITH_VALUE(N, T, xor)                                                            \
        }                                                                                          \
        return 0;                                                                                  \
    }
CHANGE(uint32, uint32_t)
CHANGE(uint64, uint64_t)
#undef CHANGE
#undef WITH_VALUE
/* clang-format on */

static int change(struct atomic *a) {
    return a->dest.dtype->bytes == 4 ? change_uint32(a) : change_uint64(a);
}

static int change_unlocked(struct atomic *a) {
    int error;
    if (a->dest.device < 0)
        PYWEFT_WITH_GIL(error, change(a));
    else
        PYWEFT_WITHOUT_GIL(error, change(a));
    return error;
}

/* --- Arguments ------------------------------------------------------------------------------- */

static bool take_dest(struct atomic *a, const char *name, PyObject *dest, PyObject *index) {
    bool moves = a->verb <= SWAP, reads = a->verb == FETCH;
    size_t at;
    if (!pyweft_words_take(&a->dest, a->call, name, dest,
                           moves ? PYWEFT_WORD_ANY : PYWEFT_WORD_WHOLE,
                           reads ? PYWEFT_ARRAY_READ : PYWEFT_ARRAY_WRITTEN) ||
        !pyweft_words_index(&a->dest, a->call, name, index, &at) ||
        !pyweft_array_check_symmetric(a->call, name, &a->dest, a->target.world_pe))
        return false;
    a->at = a->dest.data + at * a->dest.dtype->bytes;
    return true;
}

/* Takes the array that receives the old value of a non-blocking call. This thread writes it, so it
 * must be in host memory. */
static bool take_fetch(struct atomic *a, PyObject *fetch) {
    if (!pyweft_words_take(&a->fetch, a->call, "fetch", fetch, PYWEFT_WORD_ANY,
                           PYWEFT_ARRAY_WRITTEN) ||
        !pyweft_array_check_dtype(a->call, "fetch", &a->fetch, "dest", &a->dest) ||
        !pyweft_array_check_nelems(a->call, "fetch", &a->fetch, 1, "the old value"))
        return false;
    a->into = a->fetch.data;
    if (a->fetch.device < 0)
        return true;
    PyErr_Format(PyExc_ValueError,
                 "%s: argument fetch is in GPU memory: pass an array in host memory", a->call);
    return false;
}

static bool take_value(const struct atomic *a, const char *name, PyObject *object, uint64_t *bits) {
    return pyweft_word_bits(a->call, name, a->dest.dtype, object, bits);
}

/* in[]: fetch for a non-blocking call; dest; cond and value if the verb has them; pe, index,
 * ctx. */
static bool take(struct atomic *a, const struct pyweft_signature *signature, PyObject **in,
                 bool nbi) {
    PyObject **dest = in + nbi, **next = dest + 1;
    PyObject *cond = a->verb == COMPARE_SWAP ? *next++ : NULL;
    PyObject *value = a->verb != FETCH && a->verb != INC ? *next++ : NULL;
    return pyweft_target_take(a->call, next[2], next[0], WEFT_STREAM_HOST, &a->target) &&
           take_dest(a, signature->names[nbi], *dest, next[1]) &&
           (!cond || take_value(a, "cond", cond, &a->cond)) &&
           (!value || take_value(a, "value", value, &a->value)) && (!nbi || take_fetch(a, in[0]));
}

static PyObject *run(const struct pyweft_signature *signature, PyObject *const *args,
                     Py_ssize_t nargs, PyObject *names, struct atomic *a, bool nbi) {
    PyObject *in[7], *result = NULL;
    a->call = signature->call;
    if (!pyweft_session_check(a->call) || !pyweft_arguments_sort(signature, args, nargs, names, in))
        return NULL;
    if (take(a, signature, in, nbi)) {
        int error = change_unlocked(a);
        result = error || !a->fetches || nbi ? pyweft_error_result(a->call, error)
                                             : pyweft_word_number(a->dest.dtype, a->before);
    }
    pyweft_array_drop(&a->dest);
    pyweft_array_drop(&a->fetch);
    return result;
}

/* --- The calls of Python --------------------------------------------------------------------- */

/* COUNT arguments are required. NBI: the call is non-blocking and has an argument `fetch`. */
#define ATOMIC(NAME, VERB, FETCHES, NBI, COUNT, ...)                             \
    PYWEFT_FUNCTION(NAME) {                                                      \
        static const struct pyweft_signature signature = {                       \
            "atomic_" #NAME, COUNT, COUNT, {__VA_ARGS__, "pe", "index", "ctx"}}; \
        struct atomic atomic = {.verb = VERB, .fetches = FETCHES};               \
        (void)self;                                                              \
        return run(&signature, args, nargs, names, &atomic, NBI);                \
    }
#define WITH_VALUE(NAME, VERB)                                  \
    ATOMIC(NAME, VERB, false, false, 3, "dest", "value")        \
    ATOMIC(fetch_##NAME, VERB, true, false, 3, "dest", "value") \
    ATOMIC(fetch_##NAME##_nbi, VERB, true, true, 4, "fetch", "dest", "value")
ATOMIC(fetch, FETCH, true, false, 2, "source")
ATOMIC(fetch_nbi, FETCH, true, true, 3, "fetch", "source")
ATOMIC(set, SET, false, false, 3, "dest", "value")
ATOMIC(swap, SWAP, true, false, 3, "dest", "value")
ATOMIC(swap_nbi, SWAP, true, true, 4, "fetch", "dest", "value")
ATOMIC(compare_swap, COMPARE_SWAP, true, false, 4, "dest", "cond", "value")
ATOMIC(compare_swap_nbi, COMPARE_SWAP, true, true, 5, "fetch", "dest", "cond", "value")
ATOMIC(inc, INC, false, false, 2, "dest")
ATOMIC(fetch_inc, INC, true, false, 2, "dest")
ATOMIC(fetch_inc_nbi, INC, true, true, 3, "fetch", "dest")
WITH_VALUE(add, ADD)
WITH_VALUE(and, AND)
WITH_VALUE(or, OR)
WITH_VALUE(xor, XOR)
#undef WITH_VALUE
#undef ATOMIC

#define ERRORS                                                                          \
    "\n\nWith ctx, the call belongs to that context, and pe is a rank of its team.\n"   \
    "ValueError: no such PE or element, an array that is not symmetric or of another\n" \
    "type, a number out of the type's range. TypeError: no array, no number.\n"         \
    "RuntimeError: before init(), after finalize(), or a GPU or a peer failed."
#define MOVES "\n\nThe array is of int32, int64, uint32, uint64, float32 or float64." ERRORS
#define WHOLE "\n\nThe array is of int32, int64, uint32 or uint64; numbers wrap around." ERRORS
#define NBI(NAME)                                                                         \
    "\n\nNon-blocking: `fetch`, an array of one such element in host memory, holds the\n" \
    "old value after the context's next quiet().\n\n"                                     \
    "Errors as for " NAME "()."
#define ROW(NAME, PARAMETERS, DOC) \
    PYWEFT_METHOD_AS("atomic_" #NAME, NAME, "atomic_" #NAME "(" PARAMETERS ")\n--\n\n" DOC)
#define PLACE "pe, *, index=0, ctx=None"
#define WITH_VALUE(NAME, TEXT)                                                            \
    ROW(NAME, "dest, value, " PLACE, "dest[index] on PE pe " TEXT ", atomically." WHOLE), \
        ROW(fetch_##NAME, "dest, value, " PLACE,                                          \
            "dest[index] on PE pe " TEXT ", atomically; returns the old value." WHOLE),   \
        ROW(fetch_##NAME##_nbi, "fetch, dest, value, " PLACE,                             \
            "dest[index] on PE pe " TEXT ", atomically." NBI("atomic_fetch_" #NAME))

PyMethodDef pyweft_atomic_methods[] = {
    ROW(fetch, "source, " PLACE, "Reads source[index] on PE pe atomically." MOVES),
    ROW(fetch_nbi, "fetch, source, " PLACE,
        "Reads source[index] on PE pe atomically." NBI("atomic_fetch")),
    ROW(set, "dest, value, " PLACE, "Sets dest[index] on PE pe to value, atomically." MOVES),
    ROW(swap, "dest, value, " PLACE,
        "Sets dest[index] on PE pe to value, atomically; returns the old value." MOVES),
    ROW(swap_nbi, "fetch, dest, value, " PLACE,
        "Sets dest[index] on PE pe to value, atomically." NBI("atomic_swap")),
    ROW(compare_swap, "dest, cond, value, " PLACE,
        "Sets dest[index] on PE pe to value if it equals cond, atomically; returns the old "
        "value." WHOLE),
    ROW(compare_swap_nbi, "fetch, dest, cond, value, " PLACE,
        "Sets dest[index] on PE pe to value if it equals cond, atomically." NBI(
            "atomic_compare_swap")),
    ROW(inc, "dest, " PLACE, "Adds 1 to dest[index] on PE pe, atomically." WHOLE),
    ROW(fetch_inc, "dest, " PLACE,
        "Adds 1 to dest[index] on PE pe, atomically; returns the old value." WHOLE),
    ROW(fetch_inc_nbi, "fetch, dest, " PLACE,
        "Adds 1 to dest[index] on PE pe, atomically." NBI("atomic_fetch_inc")),
    WITH_VALUE(add, "has value added"),
    WITH_VALUE(and, "becomes itself & value"),
    WITH_VALUE(or, "becomes itself | value"),
    WITH_VALUE(xor, "becomes itself ^ value"),
    {NULL, NULL, 0, NULL},
};
