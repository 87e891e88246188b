/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments of operators. */
#include "operator.h"
#include "argument.h"
#include "error.h"
#include "team.h"

bool weft_operator_open(struct weft_operator *on, PyObject *team, PyObject *stream) {
    on->op = WEFT_SUM;
    return weft_team_take(on->call, team, &on->team, &on->size) &&
           weft_argument_stream(on->call, stream, &on->stream);
}

bool weft_operator_take_op(struct weft_operator *on, PyObject *object) {
    static const char *const ops[] = {"sum", "avg", "max", "min", "prod", NULL};
    int choice = 0;
    if (!weft_argument_choice(on->call, "op", object, ops, &choice))
        return false;
    on->op = (weft_op)(WEFT_SUM + choice);
    return true;
}

PyObject *weft_operator_close(const struct weft_operator *on, int error) {
    if (PyErr_Occurred())
        return NULL;
    return weft_error_result(on->call, error);
}
