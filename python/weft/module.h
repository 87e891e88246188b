/* SPDX-License-Identifier: BSD-3-Clause */
/* What every file of the extension begins with: CPython's limited API, so that one binary serves
 * every Python from 3.11 on, and how a function of the module looks. The limited API of 3.10 has no
 * buffer protocol: a binary for 3.10 is built without it, of the same sources.
 *
 * Functions that fail set an exception and return NULL or false. All are called with the GIL unless
 * their contract says otherwise. */
#ifndef PYWEFT_MODULE_H
#define PYWEFT_MODULE_H

#include <patchlevel.h>
#if PY_VERSION_HEX >= 0x030B0000
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shmemx.h>
#include <weft.h>

/* What C++ calls of the extension: weft.torch hands it on. */
#define PYWEFT_EXPORT __attribute__((visibility("default")))

/* Arguments as CPython hands them over (METH_FASTCALL | METH_KEYWORDS). */
#define PYWEFT_FUNCTION(NAME) \
    static PyObject *NAME(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)

#define PYWEFT_METHOD_AS(TEXT, NAME, DOC) \
    { TEXT, (PyCFunction)(void (*)(void))NAME, METH_FASTCALL | METH_KEYWORDS, DOC }
#define PYWEFT_METHOD(NAME, DOC) PYWEFT_METHOD_AS(#NAME, NAME, DOC)

/* What the files add to the module; called once, in this order. */
bool pyweft_buffer_define(PyObject *module);
bool pyweft_team_define(PyObject *module);
bool pyweft_block_define(PyObject *module);
bool pyweft_share_define(PyObject *module);
bool pyweft_ctx_define(PyObject *module);
bool pyweft_device_team_define(PyObject *module);

extern PyMethodDef pyweft_session_methods[], pyweft_buffer_methods[], pyweft_team_methods[],
    pyweft_rma_methods[], pyweft_single_methods[], pyweft_strided_methods[],
    pyweft_atomic_methods[], pyweft_signal_methods[], pyweft_wait_methods[], pyweft_lock_methods[],
    pyweft_order_methods[], pyweft_collective_methods[], pyweft_collect_methods[],
    pyweft_scan_methods[], pyweft_exchange_methods[], pyweft_matmul_methods[],
    pyweft_block_methods[], pyweft_pad_methods[], pyweft_slice_methods[],
    pyweft_device_team_methods[], pyweft_info_methods[];

#endif
