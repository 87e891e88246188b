/* SPDX-License-Identifier: BSD-3-Clause */
/* For kernels of tests: numbers that both sides of a message can compute, and reports of errors. */
#ifndef TESTS_GPU_FOUND_CUH
#define TESTS_GPU_FOUND_CUH

#include "gpu/found.h"

WEFT_DEVICE uint32_t mix(uint32_t x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

WEFT_DEVICE uint32_t mix4(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return mix(mix(mix(mix(a) + b) + c) + d);
}

WEFT_DEVICE uint64_t mix64(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return (uint64_t)mix4(a, b, c, d) << 32 | mix4(d, c, b, a);
}

WEFT_DEVICE void found_wrong(struct device_found *found, uint64_t a, uint64_t b, uint64_t c,
                             uint64_t d) {
    weft_atom_add_sys_u64(&found->wrong, 1);
    if (weft_atom_exch_sys_u64(&found->claimed, 1) != 0)
        return;
    found->what[0] = a, found->what[1] = b, found->what[2] = c, found->what[3] = d;
}

#endif
