/* SPDX-License-Identifier: BSD-3-Clause */
/* The instructions of fused/hopper_ptx.cuh and fused/hopper_mma.cuh for kernels that the pretended
 * driver runs. */
#ifndef TESTS_GPU_DRIVER_HOPPER_HOST_H
#define TESTS_GPU_DRIVER_HOPPER_HOST_H

#include "module.h"
#include <type_traits>

/* --- Blocks and clusters ---------------------------------------------------------------------- */

static inline char *weft_shared_dynamic(void) {
    return (char *)kernel_shared_dynamic();
}
static inline uint32_t weft_cluster_rank(void) {
    return kernel_cluster_rank();
}
static inline void weft_cluster_sync(void) {
    kernel_cluster_sync();
}
static inline void weft_named_sync(uint32_t id, uint32_t threads) {
    kernel_named_sync(id, threads);
}
static inline void weft_named_arrive(uint32_t id, uint32_t threads) {
    kernel_named_arrive(id, threads);
}
template <int COUNT> static inline void weft_registers_release(void) {}
template <int COUNT> static inline void weft_registers_take(void) {}

static inline uint64_t weft_shared_load(const uint64_t *word) {
    return weft_host_load(word, __ATOMIC_RELAXED);
}
static inline void weft_shared_store_at(uint64_t *word, uint32_t rank, uint64_t value) {
    weft_host_store((uint64_t *)kernel_cluster_address(word, rank), value, __ATOMIC_RELAXED);
}

/* --- mbarriers of a cluster, boxes of matrices ------------------------------------------------ */

static inline void weft_mbarrier_fence_init(void) {}
static inline void weft_mbarrier_arrive_at(uint64_t *mbarrier, uint32_t rank) {
    kernel_mbarrier_arrive_at(mbarrier, rank);
}
static inline void weft_box_load(void *shared, const struct weft_cu_tensor_map *map, uint32_t x,
                                 uint32_t y, uint64_t *mbarrier) {
    kernel_box_load(shared, map, x, y, mbarrier, false);
}
static inline void weft_box_load_both(void *shared, const struct weft_cu_tensor_map *map,
                                      uint32_t x, uint32_t y, uint64_t *mbarrier) {
    kernel_box_load(shared, map, x, y, mbarrier, true);
}
static inline void weft_box_store(const struct weft_cu_tensor_map *map, const void *shared,
                                  uint32_t x, uint32_t y) {
    kernel_box_store(map, shared, x, y, false);
}
static inline void weft_box_add(const struct weft_cu_tensor_map *map, const void *shared,
                                uint32_t x, uint32_t y) {
    kernel_box_store(map, shared, x, y, true);
}

template <class ELEMENT>
static constexpr bool is_f16 = std::is_same<ELEMENT, struct weft_f16>::value;

/* --- Products and their sums ------------------------------------------------------------------ */

static inline uint64_t weft_wgmma_matrix(const void *shared) {
    return (uintptr_t)shared / 16;
}
static inline uint64_t weft_wgmma_boxes(const void *shared) {
    return (uintptr_t)shared / 16;
}
static inline void weft_wgmma_fence(void) {
    kernel_warpgroup_meet();
}
static inline void weft_wgmma_commit(void) {
    kernel_product_commit();
}
template <int NEWEST> static inline void weft_wgmma_wait(void) {
    kernel_product_wait(NEWEST);
}
template <int COUNT> static inline void weft_wgmma_take(float (&)[COUNT]) {}
template <class ELEMENT, int COUNT>
static inline void weft_wgmma_add(ELEMENT, float (&sums)[COUNT], uint64_t a, uint64_t b, int keep) {
    kernel_product(sums, COUNT, a, b, keep != 0, is_f16<ELEMENT>, false);
}
template <class ELEMENT, int COUNT>
static inline void weft_wgmma_add_row_major(ELEMENT, float (&sums)[COUNT], uint64_t a, uint64_t b,
                                            int keep) {
    kernel_product(sums, COUNT, a, b, keep != 0, is_f16<ELEMENT>, true);
}
template <class ELEMENT> static inline uint32_t weft_pack(ELEMENT, float first, float second) {
    return kernel_pack(first, second, is_f16<ELEMENT>);
}
static inline void weft_stmatrix_2(void *row, uint32_t a, uint32_t b) {
    const uint32_t elements[] = {a, b};
    kernel_matrix_store(row, elements, 2);
}
static inline void weft_stmatrix_4(void *row, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    const uint32_t elements[] = {a, b, c, d};
    kernel_matrix_store(row, elements, 4);
}

#endif
