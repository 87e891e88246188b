/* SPDX-License-Identifier: BSD-3-Clause */
/* How members agree before a collective of C that cannot refuse: one reduction of what each passes,
 * and of its negative, to the minima. Who has wrong arguments refuses that reduction. */
#include <errno.h>
#include <string.h>
#include "memory.h"
#include "session.h"
#include "vectors.h"

enum { PLACES = 5, ALL = PLACES + WEFT_NUMBERS_MAX };

bool weft_vectors_check_symmetric(const struct weft_vectors *vectors, size_t dest_bytes,
                                  size_t source_bytes, bool in_place) {
    const struct weft_array *dest = &vectors->dest, *source = &vectors->source;
    const char *call = vectors->on.call;
    bool same = in_place && dest->data == source->data;
    if (!weft_array_check_symmetric(call, "dest", dest, weft_session.pe) ||
        !weft_array_check_symmetric(call, "source", source, weft_session.pe))
        return false;
    if (same || dest->data + dest_bytes <= source->data ||
        source->data + source_bytes <= dest->data)
        return true;
    PyErr_Format(PyExc_ValueError, "%s: arguments dest and source overlap: pass arrays %s", call,
                 in_place ? "that are apart, or one and the same" : "that are apart");
    return false;
}

/* The type, and which objects the arrays lie in. What C made is in no books, and not compared. */
static void describe(const struct weft_vectors *vectors, double *numbers) {
    numbers[0] = (double)vectors->dest.dtype->operand;
    numbers[1] = numbers[2] = numbers[3] = numbers[4] = -1;
    weft_memory_place(vectors->dest.data, &numbers[1], &numbers[2]);
    weft_memory_place(vectors->source.data, &numbers[3], &numbers[4]);
}

static bool are_same(const char *call, const double *minima, int count) {
    static const char *const what[ALL] = {
        "pass arrays of another type",
        "pass another dest",
        "pass another dest",
        "pass another source",
        "pass another source",
        "pass another size",
        "make another call, or pass another op,",
    };
    for (int i = 0; i < count; i++)
        if (minima[i] != -minima[count + i]) {
            PyErr_Format(
                PyExc_ValueError,
                "%s: the members' arguments differ: some %s than others, and all have to do the "
                "same",
                call, what[i]);
            return false;
        }
    return true;
}

static int reduce(const struct weft_operator *on, double *numbers, int count, bool right) {
    int error;
    WEFT_UNLOCKED(error, weft_all_reduce(on->team, numbers, numbers, (size_t)count,
                                         right ? WEFT_F64 : (weft_dtype)WEFT_OPERATOR_REFUSES,
                                         WEFT_MIN, WEFT_STREAM_HOST));
    return error;
}

bool weft_vectors_agree(const struct weft_vectors *vectors, bool right, const double *numbers,
                        int count) {
    double both[2 * ALL] = {0}, mine[ALL] = {0};
    int all = PLACES + count;
    if (right) {
        describe(vectors, mine);
        memcpy(mine + PLACES, numbers, (size_t)count * sizeof *numbers);
    }
    for (int i = 0; i < all; i++) {
        both[i] = mine[i];
        both[all + i] = -mine[i];
    }
    int error = reduce(&vectors->on, both, 2 * all, right);
    if (error) {
        Py_XDECREF(weft_operator_close(&vectors->on, error));
        return false;
    }
    return right && are_same(vectors->on.call, both, all);
}

PyObject *weft_vectors_finish(struct weft_vectors *vectors, bool agreed, weft_vectors_plain *call) {
    int error = 0;
    if (agreed)
        WEFT_UNLOCKED(error, call(vectors));
    return weft_vectors_close(vectors, error);
}
