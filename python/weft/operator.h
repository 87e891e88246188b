/* SPDX-License-Identifier: BSD-3-Clause */
/* The common part of all operators. A member whose arguments are wrong calls the library
 * nevertheless, with arguments that the library refuses. So the call fails on every member, and no
 * member waits for one that has raised an exception. */
#ifndef PYWEFT_OPERATOR_H
#define PYWEFT_OPERATOR_H

#include "argument.h"
#include "array.h"

struct pyweft_operator {
    const char *call;
    shmem_team_t team;
    int size; /* of the team */
    weft_stream stream;
    weft_op op;
};

/* Reads team and stream, which decide which other members the call has. Once it has succeeded, the
 * caller must call the library even if other arguments are wrong. Keeps an exception that is set
 * already, when arguments could not be sorted; without a team the call was for all PEs. */
bool pyweft_operator_open(struct pyweft_operator *on, PyObject *team, PyObject *stream);

/* Accepts "sum", "avg", "max", "min" and "prod". */
bool pyweft_operator_take_op(struct pyweft_operator *on, PyObject *object);

/* The dtype that a member with wrong arguments passes, and that the library refuses. */
enum { PYWEFT_OPERATOR_REFUSES = -1 };

/* Returns None, or NULL with an exception: the one that is set already on this member, otherwise
 * the one for `error`. */
PyObject *pyweft_operator_close(const struct pyweft_operator *on, int error);

#endif
