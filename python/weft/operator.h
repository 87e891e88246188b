/* SPDX-License-Identifier: BSD-3-Clause */
/* What all operators share. A member whose arguments are wrong calls the library all the same, with
 * arguments that it refuses: so the call fails on every member, and nobody waits for one who has
 * raised an exception. */
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

/* Finds whom the call is about; behind it there are others to tell of what is wrong. Keeps an
 * exception that is set, of arguments that could not be sorted: without a team that has its name
 * those were for the world. */
bool pyweft_operator_open(struct pyweft_operator *on, PyObject *team, PyObject *stream);

/* "sum", "avg", "max", "min", "prod". */
bool pyweft_operator_take_op(struct pyweft_operator *on, PyObject *object);

/* The type by which a member with wrong arguments refuses, and what the library makes of it. */
enum { PYWEFT_OPERATOR_REFUSES = -1 };

/* The result of a call: keeps the exception of this member, if it has one. */
PyObject *pyweft_operator_close(const struct pyweft_operator *on, int error);

#endif
