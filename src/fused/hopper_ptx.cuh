/* SPDX-License-Identifier: BSD-3-Clause */
/* Single PTX instructions of sm_90a that weft/device does not have, one in each function: clusters,
 * boxes of matrices in bulk, registers of warpgroups, and products of matrices in shared memory.
 * If a host emulates a GPU, the file that WEFT_HOPPER_HOST names defines them.
 *
 * Blocks of a cluster have their mbarriers and tiles at the same addresses of their own shared
 * memory. */
#ifndef WEFT_FUSED_HOPPER_PTX_CUH
#define WEFT_FUSED_HOPPER_PTX_CUH

#include "base/cuda.h"
#include "coll/fold.cuh"

#ifdef __CUDACC__

/* --- Blocks and clusters ---------------------------------------------------------------------- */

/* Returns the shared memory for which the launch has asked, from the first multiple of 1024 on. */
WEFT_DEVICE char *weft_shared_dynamic(void) {
    extern __shared__ char dynamic[];
    uint32_t address = (weft_shared_address(dynamic) + 1023) & ~1023u;
    __asm__ volatile("" : "+r"(address)); /* or each use would calculate it again */
    return (char *)__cvta_shared_to_generic(address);
}

/* Returns the block's number in its cluster. */
WEFT_DEVICE uint32_t weft_cluster_rank(void) {
    uint32_t rank;
    __asm__("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* Waits for all threads of the cluster, and orders their memory. */
WEFT_DEVICE void weft_cluster_sync(void) {
    __asm__ volatile("barrier.cluster.arrive.release.aligned;\n\t"
                     "barrier.cluster.wait.acquire.aligned;" ::
                         : "memory");
}

/* Waits for `threads` threads of the block at barrier `id` of 16; weft_block_sync uses barrier 0.
 */
WEFT_DEVICE void weft_named_sync(uint32_t id, uint32_t threads) {
    __asm__ volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* Arrives at a barrier where other threads wait by weft_named_sync, and does not wait. */
WEFT_DEVICE void weft_named_arrive(uint32_t id, uint32_t threads) {
    __asm__ volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* Set the registers of each thread of the warpgroup. */
template <int COUNT> WEFT_DEVICE void weft_registers_release(void) {
    __asm__ volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT> WEFT_DEVICE void weft_registers_take(void) {
    __asm__ volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

/* --- Words in shared memory that blocks of the cluster write, without an order ------------------
 */

WEFT_DEVICE uint64_t weft_shared_load(const uint64_t *word) {
    uint64_t value;
    __asm__ volatile("ld.relaxed.cluster.shared::cta.u64 %0, [%1];"
                     : "=l"(value)
                     : "r"(weft_shared_address(word))
                     : "memory");
    return value;
}

/* Stores to the word of a block of the cluster. */
WEFT_DEVICE void weft_shared_store_at(uint64_t *word, uint32_t rank, uint64_t value) {
    __asm__ volatile(
        "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;"
        " st.relaxed.cluster.shared::cluster.u64 [there], %2; }" ::"r"(weft_shared_address(word)),
        "r"(rank), "l"(value)
        : "memory");
}

/* --- mbarriers of a cluster ------------------------------------------------------------------- */

/* Lets the other blocks of the cluster see initialised mbarriers after a sync. */
WEFT_DEVICE void weft_mbarrier_fence_init(void) {
    __asm__ volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Arrives at the mbarrier of a block of the cluster. */
WEFT_DEVICE void weft_mbarrier_arrive_at(uint64_t *mbarrier, uint32_t rank) {
    __asm__ volatile(
        "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;"
        " mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(weft_shared_address(mbarrier)),
        "r"(rank)
        : "memory");
}

/* --- Boxes of matrices, which begin at row y and column x ------------------------------------- */

/* Loads a box; its bytes count at the mbarrier, also those outside of the matrix, which are 0. */
WEFT_DEVICE void weft_box_load(void *shared, const struct weft_cu_tensor_map *map, uint32_t x,
                               uint32_t y, uint64_t *mbarrier) {
    __asm__ volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];" ::"r"(weft_shared_address(shared)),
                     "l"(map), "r"(x), "r"(y), "r"(weft_shared_address(mbarrier))
                     : "memory");
}

/* Loads a box for both blocks of the cluster, and counts at the mbarriers of both. */
WEFT_DEVICE void weft_box_load_both(void *shared, const struct weft_cu_tensor_map *map, uint32_t x,
                                    uint32_t y, uint64_t *mbarrier) {
    __asm__ volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(weft_shared_address(shared)),
        "l"(map), "r"(x), "r"(y), "r"(weft_shared_address(mbarrier)), "h"((uint16_t)3)
        : "memory");
}

/* Stores the part of a box that is inside the matrix. The thread commits and waits as for
 * weft_bulk_put. */
WEFT_DEVICE void weft_box_store(const struct weft_cu_tensor_map *map, const void *shared,
                                uint32_t x, uint32_t y) {
    __asm__ volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
        "r"(x), "r"(y), "r"(weft_shared_address(shared))
        : "memory");
}

/* As weft_box_store, but adds to the elements of the matrix. */
WEFT_DEVICE void weft_box_add(const struct weft_cu_tensor_map *map, const void *shared, uint32_t x,
                              uint32_t y) {
    __asm__ volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"
                     " [%0, {%1, %2}], [%3];" ::"l"(map),
                     "r"(x), "r"(y), "r"(weft_shared_address(shared))
                     : "memory");
}

/* --- Products: called by all threads of a warpgroup ------------------------------------------- */

/* Describes a matrix in shared memory with rows of 128 bytes, swizzled, in groups of 8 rows;
 * `boxes` is the distance of its boxes in units of 16 bytes, if it has several. The address is a
 * multiple of 1024. */
WEFT_DEVICE uint64_t weft_wgmma_describe(const void *shared, uint64_t boxes) {
    return (uint64_t)((weft_shared_address(shared) & 0x3ffff) >> 4) | boxes << 16 |
           (uint64_t)64 << 32 | (uint64_t)1 << 62;
}

/* Returns the description of a matrix whose rows go along K. Adding 1 to it moves its start by 16
 * bytes along each row. */
WEFT_DEVICE uint64_t weft_wgmma_matrix(const void *shared) {
    return weft_wgmma_describe(shared, 1);
}

/* Returns the description of a matrix whose columns go along K, in consecutive boxes of 64 rows,
 * each with the next 64 columns of 2 bytes. Adding 128 to it moves its start down by 16 rows. */
WEFT_DEVICE uint64_t weft_wgmma_boxes(const void *shared) {
    return weft_wgmma_describe(shared, 512);
}

/* Orders earlier accesses to the sums before the products. */
WEFT_DEVICE void weft_wgmma_fence(void) {
    __asm__ volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* Forms a group of the products since the last commit. */
WEFT_DEVICE void weft_wgmma_commit(void) {
    __asm__ volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until all groups except the NEWEST newest are complete. */
template <int NEWEST> WEFT_DEVICE void weft_wgmma_wait(void) {
    __asm__ volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(NEWEST) : "memory");
}

/* Keeps the compiler from reading the sums before this place. */
template <int COUNT> WEFT_DEVICE void weft_wgmma_take(float (&sums)[COUNT]) {
    WEFT_UNROLL
    for (int i = 0; i < COUNT; i++)
        __asm__ volatile("" : "+f"(sums[i])::"memory");
}

/* --- Sums to memory --------------------------------------------------------------------------- */

/* Return two rounded numbers, the first in the low half. */
WEFT_DEVICE uint32_t weft_pack(struct weft_bf16, float first, float second) {
    uint32_t both;
    __asm__("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}
WEFT_DEVICE uint32_t weft_pack(struct weft_f16, float first, float second) {
    uint32_t both;
    __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}

/* Store 2 or 4 matrices of 8 x 8 elements of 2 bytes to shared memory, by all lanes of a warp. Lane
 * i passes the address of row i % 8 of matrix i / 8, and 2 elements of each matrix: those of row
 * i / 4 from column i % 4 * 2 on. */
WEFT_DEVICE void weft_stmatrix_2(void *row, uint32_t a, uint32_t b) {
    __asm__ volatile(
        "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(weft_shared_address(row)),
        "r"(a), "r"(b)
        : "memory");
}
WEFT_DEVICE void weft_stmatrix_4(void *row, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    __asm__ volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                         weft_shared_address(row)),
                     "r"(a), "r"(b), "r"(c), "r"(d)
                     : "memory");
}

#elif defined(WEFT_HOPPER_HOST)
#include WEFT_HOPPER_HOST
#endif

#endif
