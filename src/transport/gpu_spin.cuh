/* SPDX-License-Identifier: BSD-3-Clause */
/* A kernel that waits looks at its word as often as it can for 20 us, and then with rests that
 * others can use. Every millisecond one thread of a warp looks at the abort word, which lies in the
 * host's memory: when all threads did, every 20 us, the looks of 16,384 threads took 500 us, which
 * a peer then waited for, and so looked, too. */
#ifndef WEFT_TRANSPORT_GPU_SPIN_CUH
#define WEFT_TRANSPORT_GPU_SPIN_CUH

#include <shmem.h>
#include "base/gpu.cuh"
#include "transport/gpu_kernel.h"

/* One wait; zero at the start. */
struct weft_spin {
    uint32_t turns;
    uint32_t rest_ns; /* between two turns; 0 at the start, unless the wait is to rest at once */
    uint64_t began, looked; /* ns; 0 while the wait is short */
};

enum {
    WEFT_SPIN_TURNS = 16, /* between two looks at the clock */
    WEFT_SPIN_LONG_NS = 20000,
    WEFT_SPIN_REST_NS = 100,
    WEFT_SPIN_LOOK_NS = 1000000,
};

/* True if the word compares (SHMEM_CMP_*): the wait is over. */
template <class Number> WEFT_DEVICE bool weft_spin_compares(int cmp, Number word, Number value) {
    switch (cmp) {
    case SHMEM_CMP_EQ:
        return word == value;
    case SHMEM_CMP_NE:
        return word != value;
    case SHMEM_CMP_GT:
        return word > value;
    case SHMEM_CMP_GE:
        return word >= value;
    case SHMEM_CMP_LT:
        return word < value;
    default:
        return word <= value;
    }
}

/* True if the job is over. Then the kernel is to return without what it waited for. */
WEFT_DEVICE bool weft_spin_over(struct weft_gpu_abort abort) {
    if (!abort.word || weft_warp_ld_relaxed_sys_u32(abort.word) == 0)
        return false;
    weft_st_relaxed_sys(abort.gave_up, 1u);
    return true;
}

/* A turn of a wait that has not ended; false when the kernel is to give up. */
WEFT_DEVICE bool weft_spin(struct weft_spin *spin, struct weft_gpu_abort abort) {
    if (spin->rest_ns | abort.rest_ns)
        weft_nanosleep(abort.rest_ns ? abort.rest_ns : spin->rest_ns);
    if (++spin->turns % WEFT_SPIN_TURNS != 0)
        return true;
    weft_spin_yield();
    uint64_t now = weft_globaltimer();
    if (spin->began == 0)
        spin->began = spin->looked = now;
    if (now - spin->began >= WEFT_SPIN_LONG_NS)
        spin->rest_ns = WEFT_SPIN_REST_NS;
    if (now - spin->looked < WEFT_SPIN_LOOK_NS)
        return true;
    spin->looked = now;
    return !weft_spin_over(abort);
}

/* The duration of the wait, but for its first turns. */
WEFT_DEVICE uint64_t weft_spin_ns(const struct weft_spin *spin) {
    return spin->looked - spin->began;
}

#endif
