/* SPDX-License-Identifier: BSD-3-Clause */
/* The one-liners of weft/device/bulk.cuh for kernels that the pretended driver runs. */
#ifndef TESTS_GPU_DRIVER_BULK_H
#define TESTS_GPU_DRIVER_BULK_H

#include "module.h"

static inline void weft_fence_async(void) {
    kernel_fence_async(false);
}
static inline void weft_fence_async_shared(void) {
    kernel_fence_async(true);
}

static inline void weft_mbarrier_init(uint64_t *mbarrier, uint32_t count) {
    kernel_mbarrier_init(mbarrier, count);
    kernel_fence_async(true);
}
static inline void weft_mbarrier_expect(uint64_t *mbarrier, uint32_t bytes) {
    kernel_mbarrier_expect(mbarrier, bytes);
}
static inline int weft_mbarrier_test(uint64_t *mbarrier, uint32_t parity) {
    return kernel_mbarrier_test(mbarrier, parity);
}
static inline void weft_mbarrier_inval(uint64_t *mbarrier) {
    *mbarrier = 0;
}

static inline void weft_bulk_load(void *shared, const void *from, uint32_t bytes,
                                  uint64_t *mbarrier) {
    kernel_bulk_load(shared, from, bytes, mbarrier);
}
static inline void weft_bulk_put(void *to, const void *shared, uint32_t bytes) {
    kernel_bulk_store(KERNEL_BULK_PUT, to, shared, bytes);
}
static inline void weft_bulk_add_f32(void *to, const void *shared, uint32_t bytes) {
    kernel_bulk_store(KERNEL_BULK_ADD_F32, to, shared, bytes);
}
static inline void weft_bulk_add_f16(void *to, const void *shared, uint32_t bytes) {
    kernel_bulk_store(KERNEL_BULK_ADD_F16, to, shared, bytes);
}
static inline void weft_bulk_add_bf16(void *to, const void *shared, uint32_t bytes) {
    kernel_bulk_store(KERNEL_BULK_ADD_BF16, to, shared, bytes);
}
static inline void weft_bulk_add_u32(void *to, const void *shared, uint32_t bytes) {
    kernel_bulk_store(KERNEL_BULK_ADD_U32, to, shared, bytes);
}
static inline void weft_bulk_add_u64(void *to, const void *shared, uint32_t bytes) {
    kernel_bulk_store(KERNEL_BULK_ADD_U64, to, shared, bytes);
}
static inline void weft_bulk_commit(void) {
    kernel_bulk_commit();
}
static inline void weft_bulk_wait_read(void) {
    kernel_bulk_wait(true, 0);
}
static inline void weft_bulk_wait(void) {
    kernel_bulk_wait(false, 0);
}
static inline void weft_bulk_wait_read_but_one(void) {
    kernel_bulk_wait(true, 1);
}
static inline void weft_bulk_wait_but_one(void) {
    kernel_bulk_wait(false, 1);
}

#endif
