/* SPDX-License-Identifier: BSD-3-Clause */
/* Included by every source of the extension: CPython's limited API, so that one binary serves every
 * Python from 3.11 on, and macros for the module's functions. The limited API of 3.10 lacks the
 * buffer protocol, so a binary for 3.10 is built from the same sources without the limited API.
 *
 * A function that fails sets an exception and returns NULL or false. Functions are called with the
 * GIL held unless their contract says otherwise.
 *
 * The sources from the bottom up; none needs one above it (tests/tree/python.t):
 *
 *   session, error, gpu            state of the job, the GIL, exceptions
 *   argument, dtype, element       values of arguments and elements
 *   memory, part, buffer           memory, parts of arrays, Buffer objects
 *   array, array_*, value, copy    arrays of all libraries
 *   context, team, operator        the objects that calls are made on
 *   rma, wait, collective, ...     one file for each family of calls
 *   core                           the module */
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

/* Visible to the C++ shim of weft.torch, which is a library of its own. */
#define PYWEFT_EXPORT __attribute__((visibility("default")))

/* The signature of a function with CPython's calling convention METH_FASTCALL | METH_KEYWORDS. */
#define PYWEFT_FUNCTION(NAME) \
    static PyObject *NAME(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)

#define PYWEFT_METHOD_AS(TEXT, NAME, DOC) \
    { TEXT, (PyCFunction)(void (*)(void))NAME, METH_FASTCALL | METH_KEYWORDS, DOC }
#define PYWEFT_METHOD(NAME, DOC) PYWEFT_METHOD_AS(#NAME, NAME, DOC)

/* Each adds its types to the module. Called once, in this order. */
bool pyweft_buffer_define(PyObject *module);
bool pyweft_team_define(PyObject *module);
bool pyweft_block_define(PyObject *module);
bool pyweft_share_define(PyObject *module);
bool pyweft_ctx_define(PyObject *module);
bool pyweft_device_team_define(PyObject *module);
bool pyweft_moe_define(PyObject *module);

extern PyMethodDef pyweft_session_methods[], pyweft_buffer_methods[], pyweft_team_methods[],
    pyweft_rma_methods[], pyweft_single_methods[], pyweft_strided_methods[],
    pyweft_atomic_methods[], pyweft_signal_methods[], pyweft_wait_methods[], pyweft_lock_methods[],
    pyweft_order_methods[], pyweft_collective_methods[], pyweft_collect_methods[],
    pyweft_scan_methods[], pyweft_exchange_methods[], pyweft_row_methods[], pyweft_norm_methods[],
    pyweft_matmul_methods[], pyweft_block_methods[], pyweft_pad_methods[], pyweft_slice_methods[],
    pyweft_device_team_methods[], pyweft_info_methods[];

#endif
