/* SPDX-License-Identifier: BSD-3-Clause */
/* Units of 16 bytes, as kernels move them: stored where they are aligned, loaded from any address
 * (weft_unit_of_words of weft/device/copy.cuh). */
#ifndef WEFT_COLL_UNIT_CUH
#define WEFT_COLL_UNIT_CUH

#include "base/gpu.cuh"

/* The first bytes of a unit, and zeros: nothing is read behind them. */
WEFT_DEVICE weft_bytes16 weft_unit_begin(const char *from, uint32_t bytes) {
    weft_bytes16 unit = {0, 0};
    WEFT_ROLLED
    for (uint32_t i = 0; i < bytes; i++) {
        uint64_t byte = weft_ld_weak((const weft_bytes1 *)from + i).value;
        (i < 8 ? unit.low : unit.high) |= byte << i % 8 * 8;
    }
    return unit;
}

/* n units, which lie `step` bytes apart, a multiple of 16, as far as `bytes` reach: of the last one
 * they may leave a part. */
template <int n>
WEFT_DEVICE void weft_units_load(weft_bytes16 *units, const char *from, uint32_t bytes,
                                 uint32_t step) {
    bool aligned = (uintptr_t)from % 16 == 0;
    WEFT_UNROLL
    for (uint32_t i = 0; i < n; i++)
        if (aligned && i * step + 16 <= bytes)
            units[i] = weft_ld_weak((const weft_bytes16 *)(from + i * step));
    WEFT_UNROLL
    for (uint32_t i = 0; i < n && !aligned; i++)
        if (i * step + 16 <= bytes)
            units[i] = weft_unit_of_words(from + i * step);
    WEFT_UNROLL
    for (uint32_t i = 0; i < n; i++)
        if (i * step < bytes && i * step + 16 > bytes)
            units[i] = weft_unit_begin(from + i * step, bytes - i * step);
}

#endif
