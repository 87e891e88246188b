/* SPDX-License-Identifier: BSD-3-Clause */
/* What the types of the extension have in common: their place in the module, weak references, and
 * `with` blocks, whose object is the one itself. */
#ifndef PYWEFT_TYPE_H
#define PYWEFT_TYPE_H

#include "module.h"

/* Py_tp_members of a struct that has its weak references at `weak`. */
#define PYWEFT_WEAK_MEMBERS(STRUCT)                                                 \
    static PyMemberDef members[] = {                                                \
        {"__weaklistoffset__", T_PYSSIZET, offsetof(STRUCT, weak), READONLY, NULL}, \
        {NULL, 0, 0, 0, NULL},                                                      \
    }

/* The method __enter__. */
#define PYWEFT_TYPE_ENTER \
    { "__enter__", pyweft_type_enter, METH_NOARGS, NULL }
PyObject *pyweft_type_enter(PyObject *self, PyObject *unused);

/* Py_tp_dealloc of an object that holds nothing but its weak references. */
void pyweft_type_dealloc(PyObject *self);

/* Makes the type that the spec names "weft.Name", and puts it into the module; NULL with an
 * exception. */
PyTypeObject *pyweft_type_define(PyObject *module, PyType_Spec *spec);

#endif
