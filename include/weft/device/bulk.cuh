/* SPDX-License-Identifier: BSD-3-Clause */
/* Bulk copies between a block's shared memory and any memory that the GPU reaches: sm_90 and later.
 * One thread begins a copy of a tile, and the hardware makes it (cp.async.bulk), so that it costs
 * neither registers nor other threads. A program for older GPUs, too, takes weft_put_w() and its
 * kin there (#if WEFT_DEVICE_ARCH >= 900): a call that is compiled for sm_80 is an error of ptxas,
 * "bulk_copies_need_sm_90".
 *
 *   weft_mbarrier_init(bar, 1);           one thread, once; then weft_block_sync
 *
 *   weft_wait_ge(&t, sig, k);             one thread: a peer has stored what is to be loaded,
 *   weft_fence_async();                   and loads see it
 *   weft_mbarrier_expect(bar, bytes);
 *   weft_bulk_load(tile, from, bytes, bar);
 *   weft_mbarrier_wait(&t, bar, k & 1);   all threads that read the tile; parity 0 comes first
 *
 *   tile[i] = ...;                        all threads
 *   weft_fence_async_shared();            all threads that have written
 *   weft_block_sync();
 *   weft_bulk_put(weft_at(&t, dest, m), tile, bytes);    one thread,
 *   weft_bulk_commit();                                  and the same one
 *   weft_bulk_wait();                                    waits
 *   weft_signal(&t, sig, k, m);
 *
 * Bulk copies have a view of memory of their own, the asynchronous proxy: hence the two fences. All
 * addresses and sizes are multiples of 16; the rest of other arrays goes by weft_copy_t() and its
 * kin. */
#ifndef WEFT_DEVICE_BULK_CUH
#define WEFT_DEVICE_BULK_CUH

#include "weft/device/spin.cuh"
#include "weft/device/check.cuh"

#if defined(__CUDACC__) || defined(__NVPTX__) /* else whoever pretends a GPU has them */

#if WEFT_DEVICE_ARCH >= 900
#define WEFT_SM_90
#else
#define WEFT_SM_90 "bulk_copies_need_sm_90; // "
#endif

/* Shared memory's own addresses have 32 bits. */
WEFT_DEVICE uint32_t weft_shared_address(const void *shared) {
    uint32_t address;
    __asm__("{ .reg .u64 a; cvta.to.shared.u64 a, %1; cvt.u32.u64 %0, a; }"
            : "=r"(address)
            : "l"(shared));
    return address;
}

/* --- Between threads and bulk copies -------------------------------------------------------------
 */

/* Bulk copies behind it see the global memory that this thread sees: what it has stored, and what
 * others have that it knows of by a wait, or by a sync with the thread that waited. */
WEFT_DEVICE void weft_fence_async(void) {
    __asm__ volatile(WEFT_SM_90 "fence.proxy.async.global;" ::: "memory");
}

/* The same of the block's shared memory: by each thread that has written there, before the sync
 * behind which one of them begins the copy. */
WEFT_DEVICE void weft_fence_async_shared(void) {
    __asm__ volatile(WEFT_SM_90 "fence.proxy.async.shared::cta;" ::: "memory");
}

/* --- mbarriers: words of shared memory that count what is loaded ---------------------------------
 */

/* One thread makes `mbarrier` one of phases that `count` calls of weft_mbarrier_expect end,
 * together with the bytes that these expect. The others may use it behind a sync. */
WEFT_DEVICE void weft_mbarrier_init(uint64_t *mbarrier, uint32_t count) {
    __asm__ volatile(WEFT_SM_90 "mbarrier.init.shared::cta.b64 [%0], %1;"
                     :
                     : "r"(weft_shared_address(mbarrier)), "r"(count)
                     : "memory");
    weft_fence_async_shared();
}

/* Arrives: this phase does not end before so many bytes, fewer than 1 MiB, have been loaded. */
WEFT_DEVICE void weft_mbarrier_expect(uint64_t *mbarrier, uint32_t bytes) {
    __asm__ volatile(WEFT_SM_90 "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                     :
                     : "r"(weft_shared_address(mbarrier)), "r"(bytes)
                     : "memory");
}

/* 1 if the phase of that parity is over: the first one's is 0, the second one's 1, and so on in
 * turns. What it has loaded is seen then. It may take a microsecond until it is 0. */
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

/* One thread, when all have done with it: the word may be used for something else. */
WEFT_DEVICE void weft_mbarrier_inval(uint64_t *mbarrier) {
    __asm__ volatile(WEFT_SM_90 "mbarrier.inval.shared::cta.b64 [%0];"
                     :
                     : "r"(weft_shared_address(mbarrier))
                     : "memory");
}

/* --- Copies --------------------------------------------------------------------------------------
 */

/* Loads into shared memory, and counts the bytes at `mbarrier` when they are there. Threads must
 * have done with what was there before: a sync lies between. */
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

/* Begins to copy shared memory to `to`, an address such as weft_at() gives, not a dest of one's own
 * heap with a member. The thread that begins copies commits them and waits for them. */
WEFT_DEVICE void weft_bulk_put(void *to, const void *shared, uint32_t bytes) {
    WEFT_CHECK_BULK(shared);
    WEFT_CHECK_BULK(to);
    WEFT_CHECK_BULK_BYTES(bytes);
    __asm__ volatile(WEFT_SM_90 "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                     :
                     : "l"(to), "r"(weft_shared_address(shared)), "r"(bytes)
                     : "memory");
}

/* The same, but adds to the elements there: each sum is atomic, the order of several is not
 * determined, and so neither are the last bits of sums of floats. */
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

/* Makes a group of what this thread has begun by weft_bulk_put and weft_bulk_add since the last
 * one. Its waits wait for groups, and for nothing else. */
WEFT_DEVICE void weft_bulk_commit(void) {
    __asm__ volatile(WEFT_SM_90 "cp.async.bulk.commit_group;" ::: "memory");
}

/* Until the copies have read shared memory, which may then be written, or given up by the block's
 * end. They may still have to write: no signal after it speaks for them. */
WEFT_DEVICE void weft_bulk_wait_read(void) {
    __asm__ volatile(WEFT_SM_90 "cp.async.bulk.wait_group.read 0;" ::: "memory");
}

/* Until they have written, too: a signal of this thread, or of one that has synced with it, then
 * speaks for them. */
WEFT_DEVICE void weft_bulk_wait(void) {
    __asm__ volatile(WEFT_SM_90 "cp.async.bulk.wait_group 0;" ::: "memory");
}

/* The same of all groups but the newest one: for two tiles in turns, of which one is on its way. */
WEFT_DEVICE void weft_bulk_wait_read_but_one(void) {
    __asm__ volatile(WEFT_SM_90 "cp.async.bulk.wait_group.read 1;" ::: "memory");
}
WEFT_DEVICE void weft_bulk_wait_but_one(void) {
    __asm__ volatile(WEFT_SM_90 "cp.async.bulk.wait_group 1;" ::: "memory");
}

#undef WEFT_SM_90

#endif

#if defined(__CUDACC__) || defined(__NVPTX__) || defined(WEFT_HOST_THREADS)

/* Waits until the phase of that parity is over; 0 if the job is, and then nothing is loaded. */
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
