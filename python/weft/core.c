/* SPDX-License-Identifier: BSD-3-Clause */
/* The module weft._core: collects the types and functions of all files. */
#include "module.h"

static PyMethodDef *const tables[] = {
    pyweft_session_methods,     pyweft_buffer_methods, pyweft_team_methods,
    pyweft_rma_methods,         pyweft_single_methods, pyweft_strided_methods,
    pyweft_atomic_methods,      pyweft_signal_methods, pyweft_wait_methods,
    pyweft_lock_methods,        pyweft_order_methods,  pyweft_collective_methods,
    pyweft_collect_methods,     pyweft_scan_methods,   pyweft_exchange_methods,
    pyweft_row_methods,         pyweft_norm_methods,   pyweft_matmul_methods,
    pyweft_block_methods,       pyweft_pad_methods,    pyweft_slice_methods,
    pyweft_device_team_methods, pyweft_info_methods};

/* A process has one job, and so one module, with its state in static variables. */
static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "weft._core",
    .m_doc = "Weft's calls, on buffers of any kind; import weft instead.",
    .m_size = -1,
};

static bool fill(PyObject *module) {
    if (!pyweft_buffer_define(module) || !pyweft_team_define(module) ||
        !pyweft_block_define(module) || !pyweft_share_define(module) ||
        !pyweft_ctx_define(module) || !pyweft_device_team_define(module) ||
        !pyweft_moe_define(module))
        return false;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (PyModule_AddFunctions(module, tables[i]) < 0)
            return false;
    return true;
}

PyMODINIT_FUNC PyInit__core(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module && !fill(module))
        Py_CLEAR(module);
    return module;
}
