/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments of operators. */
#include "operator.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "argument.h"
#include "error.h"
#include "session.h"
#include "team.h"

bool pyweft_operator_open(struct pyweft_operator *on, PyObject *team, PyObject *stream) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    on->op = WEFT_SUM;
    bool found = pyweft_team_take(on->call, team, &on->team, &on->size) &&
                 pyweft_argument_stream(on->call, stream, &on->stream);
    if (type)
        PyErr_Restore(type, value, traceback);
    return found;
}

bool pyweft_operator_take_op(struct pyweft_operator *on, PyObject *object) {
    static const char *const ops[] = {"sum", "avg", "max", "min", "prod", NULL};
    int choice = 0;
    if (!pyweft_argument_choice(on->call, "op", object, ops, &choice))
        return false;
    on->op = (weft_op)(WEFT_SUM + choice);
    return true;
}

/* Returns the PE whose arguments the library has refused in one of the ways that this extension
 * uses to signal wrong arguments, or -1. */
static int find_refusing(const char *text) {
    static const char *const reasons[] = {"dtype is -1, which is not a type", "a is NULL",
                                          "a_shard is NULL", "shape is NULL"};
    int pe = -1, begin = 0;
    if (sscanf(text, "%*[a-z_]: PE %d: %n", &pe, &begin) < 1 || begin == 0)
        return -1;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (strcmp(text + begin, reasons[i]) == 0)
            return pe;
    return -1;
}

PyObject *pyweft_operator_close(const struct pyweft_operator *on, int error) {
    if (PyErr_Occurred())
        return NULL;
    int refusing = error == -EINVAL ? find_refusing(pyweft_error_text(error)) : -1;
    if (refusing >= 0 && refusing != pyweft_session.pe)
        return PyErr_Format(
            PyExc_ValueError,
            "%s: PE %d cannot take part: its arguments are wrong; see the error of that PE",
            on->call, refusing);
    return pyweft_error_result(on->call, error);
}
