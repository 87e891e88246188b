/* SPDX-License-Identifier: BSD-3-Clause */
/* The module weft._core: its types, and its functions, which the files bring in tables. */
#include "module.h"

static PyMethodDef *const tables[] = {
    weft_session_methods, weft_buffer_methods,  weft_team_methods,     weft_rma_methods,
    weft_single_methods,  weft_strided_methods, weft_atomic_methods,   weft_signal_methods,
    weft_wait_methods,    weft_lock_methods,    weft_order_methods,    weft_collective_methods,
    weft_collect_methods, weft_scan_methods,    weft_exchange_methods, weft_matmul_methods,
    weft_block_methods,   weft_pad_methods,     weft_slice_methods,    weft_device_team_methods,
    weft_info_methods};

/* One job a process, so one module: what it knows lies in static variables. */
static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "weft._core",
    .m_doc = "Weft's calls, on buffers of any kind; import weft instead.",
    .m_size = -1,
};

static bool fill(PyObject *module) {
    if (!weft_buffer_define(module) || !weft_team_define(module) || !weft_block_define(module) ||
        !weft_share_define(module) || !weft_ctx_define(module) || !weft_device_team_define(module))
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
