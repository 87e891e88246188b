/* SPDX-License-Identifier: BSD-3-Clause */
#include "bulk_add.h"
#include "number.h"

static uint16_t sum_f16(uint16_t a, uint16_t b) {
    return to_f16(of_f16(a) + of_f16(b));
}
static uint16_t sum_bf16(uint16_t a, uint16_t b) {
    return to_bf16(of_bf16(a) + of_bf16(b));
}
static uint32_t sum_f32(uint32_t a, uint32_t b) {
    return bits_of(float_of(a) + float_of(b));
}

#define ADD(name, T, sum)                                                             \
    static void add_##name(T *to, T value) {                                          \
        T before = __atomic_load_n(to, __ATOMIC_RELAXED);                             \
        while (!__atomic_compare_exchange_n(to, &before, sum, true, __ATOMIC_RELAXED, \
                                            __ATOMIC_RELAXED))                        \
            continue;                                                                 \
    }
ADD(f16, uint16_t, sum_f16(before, value))
ADD(bf16, uint16_t, sum_bf16(before, value))
ADD(f32, uint32_t, sum_f32(before, value))
ADD(u32, uint32_t, before + value)
ADD(u64, uint64_t, before + value)
#undef ADD

#define EACH(name, T)                                  \
    for (unsigned i = 0; i < bytes / sizeof(T); i++)   \
        add_##name((T *)to + i, ((const T *)from)[i]); \
    break
void bulk_add(enum kernel_bulk kind, void *to, const void *from, unsigned bytes) {
    switch (kind) {
    case KERNEL_BULK_ADD_F32:
        EACH(f32, uint32_t);
    case KERNEL_BULK_ADD_F16:
        EACH(f16, uint16_t);
    case KERNEL_BULK_ADD_BF16:
        EACH(bf16, uint16_t);
    case KERNEL_BULK_ADD_U32:
        EACH(u32, uint32_t);
    case KERNEL_BULK_ADD_U64:
        EACH(u64, uint64_t);
    case KERNEL_BULK_PUT:
        break;
    }
}
#undef EACH
