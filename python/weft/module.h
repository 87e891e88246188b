/* SPDX-License-Identifier: BSD-3-Clause */
/* What every file of the extension begins with: CPython's limited API, so that one binary serves
 * every Python from 3.11 on, and how a function of the module looks. The limited API of 3.10 has no
 * buffer protocol: a binary for 3.10 is built without it, of the same sources.
 *
 * Functions that fail set an exception and return NULL or false. All are called with the GIL unless
 * their contract says otherwise. */
#ifndef WEFT_PYTHON_MODULE_H
#define WEFT_PYTHON_MODULE_H

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
#define WEFT_EXPORT __attribute__((visibility("default")))

/* Arguments as CPython hands them over (METH_FASTCALL | METH_KEYWORDS). */
#define WEFT_FUNCTION(NAME) \
    static PyObject *NAME(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)

#define WEFT_METHOD_AS(TEXT, NAME, DOC) \
    { TEXT, (PyCFunction)(void (*)(void))NAME, METH_FASTCALL | METH_KEYWORDS, DOC }
#define WEFT_METHOD(NAME, DOC) WEFT_METHOD_AS(#NAME, NAME, DOC)

/* What the files add to the module; called once, in this order. */
bool weft_buffer_define(PyObject *module);
bool weft_team_define(PyObject *module);
bool weft_block_define(PyObject *module);
bool weft_share_define(PyObject *module);
bool weft_ctx_define(PyObject *module);
bool weft_device_team_define(PyObject *module);

extern PyMethodDef weft_session_methods[], weft_buffer_methods[], weft_team_methods[],
    weft_rma_methods[], weft_single_methods[], weft_strided_methods[], weft_atomic_methods[],
    weft_signal_methods[], weft_wait_methods[], weft_lock_methods[], weft_order_methods[],
    weft_collective_methods[], weft_collect_methods[], weft_scan_methods[], weft_exchange_methods[],
    weft_matmul_methods[], weft_block_methods[], weft_pad_methods[], weft_slice_methods[],
    weft_device_team_methods[], weft_info_methods[];

#endif
