/* SPDX-License-Identifier: BSD-3-Clause */
/* Bulk copies between a block's shared memory and any memory that the GPU can access, on sm_90 and
 * later. One thread starts the copy of a tile and the hardware does it (cp.async.bulk), so that it
 * needs neither registers nor other threads. A program that also supports older GPUs uses
 * weft_put_w() and similar calls there (#if WEFT_DEVICE_ARCH >= 900). If a bulk call is compiled
 * for sm_80, ptxas reports the error "bulk_copies_need_sm_90".
 *
 *   weft_mbarrier_init(bar, 1);           one thread, once; then weft_block_sync
 *
 *   weft_wait_ge(&t, sig, k + 1);         one thread: a peer has stored the data to load,
 *   weft_fence_async();                   and bulk loads see it
 *   weft_mbarrier_expect(bar, bytes);
 *   weft_bulk_load(tile, from, bytes, bar);
 *   weft_mbarrier_wait(&t, bar, k & 1);   all threads that read the tile; k is 0, 1, ...
 *
 *   tile[i] = ...;                        all threads
 *   weft_fence_async_shared();            all threads that have written
 *   weft_block_sync();
 *   weft_bulk_put(weft_at(&t, dest, m), tile, bytes);    one thread
 *   weft_bulk_commit();                                  the same thread
 *   weft_bulk_wait();                                    the same thread
 *   weft_signal(&t, sig, k + 1, m);
 *
 * Bulk copies access memory through a proxy of their own, the asynchronous proxy; this is why the
 * two fences are needed. All addresses and sizes are multiples of 16. For other sizes, copy the
 * remainder by weft_copy_t() and similar calls. */
#ifndef WEFT_DEVICE_BULK_CUH
#define WEFT_DEVICE_BULK_CUH

#include "weft/device/spin.cuh"
#include "weft/device/check.cuh"

#if defined(__CUDACC__) || defined(__NVPTX__) /* otherwise the emulated GPU defines them */

#if WEFT_DEVICE_ARCH >= 900
#define WEFT_SM_90
#else
#define WEFT_SM_90 "bulk_copies_need_sm_90; // "
#endif

/* Returns the 32-bit address in the shared state space, in a way that lets the compiler calculate
 * with such addresses: in 64 bits a loop of products took 60 cycles more for each step (H200). */
WEFT_DEVICE uint32_t weft_shared_address(const void *shared) {
#if defined(__clang__) && !defined(__NVCC__)
    return (uint32_t)(uintptr_t)(const __attribute__((address_space(3))) void *)shared;
#else
    return (uint32_t)__cvta_generic_to_shared(shared);
#endif
}

/* --- Between threads and bulk copies ---------------------------------------------------------- */

/* Bulk copies after it see the global memory that this thread sees: its own stores, and stores of
 * others that it knows of by a wait, or by a sync with the thread that waited. */
WEFT_DEVICE void weft_fence_async(void) {
    __asm__ volatile(WEFT_SM_90 "fence.proxy.async.global;" ::: "memory");
}

/* As weft_fence_async, for the block's shared memory. Each thread that has written there calls it
 * before the sync before one of them starts the copy. */
WEFT_DEVICE void weft_fence_async_shared(void) {
    __asm__ volatile(WEFT_SM_90 "fence.proxy.async.shared::cta;" ::: "memory");
}

/* --- mbarriers: words of shared memory that count what is loaded ------------------------------ */

/* Initialises an mbarrier: `count` calls of weft_mbarrier_expect, together with the bytes that they
 * expect, end a phase. One thread calls it; the others may use the mbarrier after a sync. */
WEFT_DEVICE void weft_mbarrier_init(uint64_t *mbarrier, uint32_t count) {
    __asm__ volatile(WEFT_SM_90 "mbarrier.init.shared::cta.b64 [%0], %1;"
                     :
                     : "r"(weft_shared_address(mbarrier)), "r"(count)
                     : "memory");
    weft_fence_async_shared();
}

/* Arrives: this phase does not end before `bytes` more bytes (less than 1 MiB) have been loaded. */
WEFT_DEVICE void weft_mbarrier_expect(uint64_t *mbarrier, uint32_t bytes) {
    __asm__ volatile(WEFT_SM_90 "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                     :
                     : "r"(weft_shared_address(mbarrier)), "r"(bytes)
                     : "memory");
}

/* Returns 1 if the phase of that parity is over: 0 for the first phase, 1 for the second, and so on
 * alternately. The loaded data is then visible. The call may take a microsecond before it returns
 * 0. */
WEFT_DEVICE int weft_mbarrier_test(uint64_t *mbarrier, uint32_t parity) {
    uint32_t over;
    __asm__ volatile(WEFT_SM_90 "{ .reg .pred p;"
                                " mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
                                " selp.u32 %0, 1, 0, p; }"
                     : "=r"(over)
                     : "r"(weft_shared_address(mbarrier)), "r"(parity)
                     : "memory");
    return (int)over;
}

/* Ends the use of the word as an mbarrier. One thread calls it after all threads have finished with
 * it. */
WEFT_DEVICE void weft_mbarrier_inval(uint64_t *mbarrier) {
    __asm__ volatile(WEFT_SM_90 "mbarrier.inval.shared::cta.b64 [%0];"
                     :
                     : "r"(weft_shared_address(mbarrier))
                     : "memory");
}

/* --- Copies ----------------------------------------------------------------------------------- */

/* Loads into shared memory; the bytes count at `mbarrier` when they have arrived. A sync must
 * separate it from the threads' earlier use of this shared memory. */
WEFT_DEVICE void weft_bulk_load(void *shared, const void *from, uint32_t bytes,
                                uint64_t *mbarrier) {
    WEFT_CHECK_BULK(shared);
    WEFT_CHECK_BULK(from);
    WEFT_CHECK_BULK_BYTES(bytes);
    __asm__ volatile(WEFT_SM_90 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                                "[%0], [%1], %2, [%3];"
                     :
                     : "r"(weft_shared_address(shared)), "l"(from), "r"(bytes),
                       "r"(weft_shared_address(mbarrier))
                     : "memory");
}

/* Starts a copy from shared memory to `to`, an address that weft_at() returns, for example; it
 * takes no member. The thread that starts copies commits them and waits for them. */
WEFT_DEVICE void weft_bulk_put(void *to, const void *shared, uint32_t bytes) {
    WEFT_CHECK_BULK(shared);
    WEFT_CHECK_BULK(to);
    WEFT_CHECK_BULK_BYTES(bytes);
    __asm__ volatile(WEFT_SM_90 "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                     :
                     : "l"(to), "r"(weft_shared_address(shared)), "r"(bytes)
                     : "memory");
}

/* As weft_bulk_put, but adds to the elements at `to`. Each addition is atomic; the order of several
 * additions is not determined, so the last bits of float sums are not, either. */
#define WEFT_BULK_ADD(name, operation)                                                    \
    WEFT_DEVICE void weft_bulk_add_##name(void *to, const void *shared, uint32_t bytes) { \
        WEFT_CHECK_BULK(shared);                                                          \
        WEFT_CHECK_BULK(to);                                                              \
        WEFT_CHECK_BULK_BYTES(bytes);                                                     \
        __asm__ volatile(WEFT_SM_90                                                       \
                         "cp.reduce.async.bulk.global.shared::cta.bulk_group." operation  \
                         " [%0], [%1], %2;"                                               \
                         :                                                                \
                         : "l"(to), "r"(weft_shared_address(shared)), "r"(bytes)          \
                         : "memory");                                                     \
    }
WEFT_BULK_ADD(f32, "add.f32")
WEFT_BULK_ADD(f16, "add.noftz.f16")
WEFT_BULK_ADD(bf16, "add.noftz.bf16")
WEFT_BULK_ADD(u32, "add.u32")
WEFT_BULK_ADD(u64, "add.u64")
#undef WEFT_BULK_ADD

/* Forms a group of the copies that this thread has started by weft_bulk_put and weft_bulk_add since
 * the last commit. The waits below wait for groups only. */
WEFT_DEVICE void weft_bulk_commit(void) {
    __asm__ volatile(WEFT_SM_90 "cp.async.bulk.commit_group;" ::: "memory");
}

/* Waits until the copies have read shared memory, which may then be overwritten, or freed by the
 * end of the block. They may not have been written yet, so a later signal does not cover them. */
WEFT_DEVICE void weft_bulk_wait_read(void) {
    __asm__ volatile(WEFT_SM_90 "cp.async.bulk.wait_group.read 0;" ::: "memory");
}

/* Waits until the copies have also been written: a later signal of this thread, or of one that has
 * synced with it, covers them. */
WEFT_DEVICE void weft_bulk_wait(void) {
    __asm__ volatile(WEFT_SM_90 "cp.async.bulk.wait_group 0;" ::: "memory");
}

/* As weft_bulk_wait_read and weft_bulk_wait, for all groups except the newest: for two tiles in
 * turn, while the copy of one is under way. */
WEFT_DEVICE void weft_bulk_wait_read_but_one(void) {
    __asm__ volatile(WEFT_SM_90 "cp.async.bulk.wait_group.read 1;" ::: "memory");
}
WEFT_DEVICE void weft_bulk_wait_but_one(void) {
    __asm__ volatile(WEFT_SM_90 "cp.async.bulk.wait_group 1;" ::: "memory");
}

#undef WEFT_SM_90

#endif

#if defined(__CUDACC__) || defined(__NVPTX__) || defined(WEFT_HOST_THREADS)

/* Waits until the phase of that parity is over. Returns 1, or 0 if the job is over; then not all
 * has been loaded. */
WEFT_DEVICE int weft_mbarrier_wait(const weft_device_team *t, uint64_t *mbarrier, uint32_t parity) {
    struct weft_spin spin = {0, 0, 0, 0};
    struct weft_gpu_abort abort = weft_abort_of(t);
    WEFT_CHECK_WAIT(wait);
    while (!weft_mbarrier_test(mbarrier, parity))
        if (!weft_spin(&spin, abort) ||
            !WEFT_CHECK_TURN(wait, t, __func__, "bytes to be loaded, phase of parity %u", parity))
            return 0;
    return 1;
}

#endif

#endif
