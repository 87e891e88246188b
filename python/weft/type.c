/* SPDX-License-Identifier: BSD-3-Clause */
#include "type.h"
#include <string.h>

PyObject *pyweft_type_enter(PyObject *self, PyObject *unused) {
    (void)unused;
    return Py_NewRef(self);
}

void pyweft_type_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_ClearWeakRefs(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyTypeObject *pyweft_type_define(PyObject *module, PyType_Spec *spec) {
    PyObject *type = PyType_FromSpec(spec);
    if (type && PyModule_AddObjectRef(module, strchr(spec->name, '.') + 1, type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}
