/* SPDX-License-Identifier: BSD-3-Clause */
/* Before and after products of 8-bit factors, where cuBLASLt does not multiply or scale them. */
#include "fused/scale.h"
#include "coll/fold.cuh"

WEFT_DEVICE float f8_value(uint8_t byte, int type) {
    return type == WEFT_SCALE_F8E4M3 ? weft_float_of_f8e4m3(byte) : weft_float_of_f8e5m2(byte);
}

extern "C" __global__ void __launch_bounds__(512, 1)
    weftk_widen(struct weft_gpu_abort, struct weft_widen_task task) {
    weft_dependency_wait();
    size_t nelems = task.lines * task.nelems;
    for (size_t i = weft_thread_index(); i < nelems; i += weft_thread_count()) {
        size_t line = i / task.nelems, within = i % task.nelems;
        uint32_t bits =
            weft_bits_of_float(f8_value(task.source[line * task.ld + within], task.type));
        task.dest[i] = (uint16_t)(bits >> 16);
    }
}

WEFT_DEVICE float number_at(const void *from, size_t i, int type) {
    if (type == WEFT_SCALE_F32)
        return ((const float *)from)[i];
    return type == WEFT_SCALE_BF16 ? widen(((const weft_bf16 *)from)[i])
                                   : widen(((const weft_f16 *)from)[i]);
}

WEFT_DEVICE void number_store(void *to, size_t i, int type, float value) {
    if (type == WEFT_SCALE_F32)
        ((float *)to)[i] = value;
    else if (type == WEFT_SCALE_BF16)
        narrow(&((weft_bf16 *)to)[i], value);
    else
        narrow(&((weft_f16 *)to)[i], value);
}

extern "C" __global__ void __launch_bounds__(512, 1)
    weftk_scale(struct weft_gpu_abort, struct weft_scale_task task) {
    weft_dependency_wait();
    size_t nelems = task.nrows * task.ncols;
    for (size_t i = weft_thread_index(); i < nelems; i += weft_thread_count()) {
        size_t row = i / task.ncols, col = i % task.ncols;
        float value = times(times(task.source[i], task.rows[row * task.row_step]),
                            task.cols[col * task.col_step]);
        if (task.bias)
            value += number_at(task.bias, col, task.bias_type);
        number_store(task.dest, row * task.ld + col, task.type, value);
    }
}
