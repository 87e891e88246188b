/* SPDX-License-Identifier: BSD-3-Clause */
/* The common part of the extension's types: registration in the module, weak references, and `with`
 * blocks. */
#ifndef PYWEFT_TYPE_H
#define PYWEFT_TYPE_H

#include "module.h"

/* The Py_tp_members slot of a struct with the field `weak`. */
#define PYWEFT_WEAK_MEMBERS(STRUCT)                                                 \
    static PyMemberDef members[] = {                                                \
        {"__weaklistoffset__", T_PYSSIZET, offsetof(STRUCT, weak), READONLY, NULL}, \
        {NULL, 0, 0, 0, NULL},                                                      \
    }

/* The function get_NAME, an attribute's getter, which returns the expression of `object`. */
#define PYWEFT_GETTER(NAME, STRUCT, EXPRESSION)                 \
    static PyObject *get_##NAME(PyObject *self, void *unused) { \
        STRUCT *object = (STRUCT *)self;                        \
        (void)unused;                                           \
        return EXPRESSION;                                      \
    }

/* The method __enter__, which returns the object itself. */
#define PYWEFT_TYPE_ENTER \
    { "__enter__", pyweft_type_enter, METH_NOARGS, NULL }
PyObject *pyweft_type_enter(PyObject *self, PyObject *unused);

/* The Py_tp_dealloc slot of an object that holds nothing but its weak references. */
void pyweft_type_dealloc(PyObject *self);

/* Makes the type that the spec names "weft.Name", and adds it to the module. Returns NULL with an
 * exception. */
PyTypeObject *pyweft_type_define(PyObject *module, PyType_Spec *spec);

#endif
