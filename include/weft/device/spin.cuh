/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits, and the end of the job. A kernel that waits looks at its word as often as it can for 20
 * us, and then with rests that others can use. Every millisecond one thread of a warp looks at the
 * abort word, which lies in the host's memory: when all threads did, every 20 us, the looks of
 * 16,384 threads took 500 us, which a peer then waited for, and so looked, too. */
#ifndef WEFT_DEVICE_SPIN_CUH
#define WEFT_DEVICE_SPIN_CUH

#include "weft/device/ptx.cuh"
#include "weft/device/team.cuh"

/* One wait; zero at the start. */
struct weft_spin {
    uint32_t turns;
    uint32_t rest_ns; /* between two turns; 0 at the start, unless the wait is to rest at once */
    uint64_t began, looked; /* ns; 0 while the wait is short */
};

enum {
    WEFT_SPIN_LOOKS = 4,  /* of a turn */
    WEFT_SPIN_TURNS = 16, /* between two looks at the clock */
    WEFT_SPIN_LONG_NS = 20000,
    WEFT_SPIN_REST_NS = 100,
    WEFT_SPIN_LOOK_NS = 1000000,
};

WEFT_DEVICE struct weft_gpu_abort weft_abort_of(const weft_device_team *t) {
    struct weft_gpu_abort abort = {t->abort, t->gave_up, t->rest_ns};
    return abort;
}

/* A wait looks at its word by weft_poll_<order>, and weft_polled_<order> behind it makes its last
 * look what the order says. With a fence that acquires alone looks are relaxed, as each that
 * acquires empties the cache, and the loads behind the wait have to wait for that: up to 0.08 us of
 * a put-with-signal. Elsewhere each look acquires. */
#ifdef WEFT_FENCE_ACQUIRE
#define WEFT_POLL_ACQUIRE relaxed
WEFT_DEVICE void weft_polled_acquire(void) {
    weft_fence_acquire_sys();
}
#else
#define WEFT_POLL_ACQUIRE acquire
WEFT_DEVICE void weft_polled_acquire(void) {}
#endif
WEFT_DEVICE void weft_polled_relaxed(void) {}

#define WEFT_POLL_BY(order, instruction, bits)                                           \
    WEFT_DEVICE uint##bits##_t weft_poll_##order##_u##bits(const uint##bits##_t *word) { \
        return weft_ld_##instruction##_sys_u##bits(word);                                \
    }
#define WEFT_POLL(order, instruction)    \
    WEFT_POLL_BY(order, instruction, 32) \
    WEFT_POLL_BY(order, instruction, 64)
WEFT_POLL(acquire, WEFT_POLL_ACQUIRE)
WEFT_POLL(relaxed, relaxed)
#undef WEFT_POLL
#undef WEFT_POLL_BY
#undef WEFT_POLL_ACQUIRE

/* 1 if the word compares: the wait is over. */
#define WEFT_COMPARES(suffix, T)                                       \
    WEFT_DEVICE int weft_compares_##suffix(int cmp, T word, T value) { \
        return cmp == WEFT_CMP_EQ   ? word == value                    \
               : cmp == WEFT_CMP_NE ? word != value                    \
               : cmp == WEFT_CMP_GT ? word > value                     \
               : cmp == WEFT_CMP_GE ? word >= value                    \
               : cmp == WEFT_CMP_LT ? word < value                     \
                                    : word <= value;                   \
    }
WEFT_COMPARES(u32, uint32_t)
WEFT_COMPARES(u64, uint64_t)
WEFT_COMPARES(i64, int64_t)
#undef WEFT_COMPARES

/* A turn's looks at a word, one right behind the other: 1 as soon as one compares. What a wait does
 * besides comes between turns, and not between two looks. */
#define WEFT_LOOKS(order, bits)                                                       \
    WEFT_DEVICE int weft_looks_##order##_u##bits(const uint##bits##_t *word, int cmp, \
                                                 uint##bits##_t value) {              \
        WEFT_UNROLL                                                                   \
        for (int k = 0; k < WEFT_SPIN_LOOKS; k++)                                     \
            if (weft_compares_u##bits(cmp, weft_poll_##order##_u##bits(word), value)) \
                return 1;                                                             \
        return 0;                                                                     \
    }
WEFT_LOOKS(acquire, 32)
WEFT_LOOKS(acquire, 64)
WEFT_LOOKS(relaxed, 32)
WEFT_LOOKS(relaxed, 64)
#undef WEFT_LOOKS

/* 1 if the job is over. Then the kernel is to return without what it waited for. */
WEFT_DEVICE int weft_spin_over(struct weft_gpu_abort abort) {
    if (!abort.word || weft_warp_ld_relaxed_sys_u32(abort.word) == 0)
        return 0;
    weft_st_relaxed_sys_u32(abort.gave_up, 1);
    return 1;
}

/* A turn of a wait that has not ended; 0 when the kernel is to give up. */
WEFT_DEVICE int weft_spin(struct weft_spin *spin, struct weft_gpu_abort abort) {
    if (spin->rest_ns | abort.rest_ns)
        weft_nanosleep(abort.rest_ns ? abort.rest_ns : spin->rest_ns);
    if (++spin->turns % WEFT_SPIN_TURNS != 0)
        return 1;
    weft_spin_yield();
    uint64_t now = weft_globaltimer();
    if (spin->began == 0)
        spin->began = spin->looked = now;
    if (now - spin->began >= WEFT_SPIN_LONG_NS)
        spin->rest_ns = WEFT_SPIN_REST_NS;
    if (now - spin->looked < WEFT_SPIN_LOOK_NS)
        return 1;
    spin->looked = now;
    return !weft_spin_over(abort);
}

/* The duration of the wait, but for its first turns, as of the last look at the abort word. */
WEFT_DEVICE uint64_t weft_spin_ns(const struct weft_spin *spin) {
    return spin->looked - spin->began;
}

/* --- The end of the job --------------------------------------------------------------------------
 */

/* 1 if the job is over: what peers owe will not come, and the kernel is to return. A load from the
 * host's memory, of 1 to 2 us: waits look by themselves. */
WEFT_DEVICE int weft_job_over(const weft_device_team *t) {
    return weft_spin_over(weft_abort_of(t));
}

/* Tells the host, which then ends the job of all PEs. */
WEFT_DEVICE void weft_device_tell_fault(const weft_device_team *t, uint32_t fault,
                                        uint32_t detail) {
    if (!t->gave_up)
        return;
    weft_st_relaxed_sys_u32(&t->gave_up[WEFT_DEVICE_FAULT_DETAIL], detail);
    weft_st_release_sys_u32(&t->gave_up[WEFT_DEVICE_FAULT], fault);
}

/* Whose words lie where the handle's do. It is loaded beside other words. */
WEFT_DEVICE uint32_t weft_device_generation(const weft_device_team *t) {
    return weft_ld_relaxed_sys_u32(&weft_device_head_of(t, t->me)->generation);
}

/* 0 where the handle has been freed, as in a graph that outlives it. Ends the job then. */
WEFT_DEVICE int weft_device_check_generation(const weft_device_team *t, uint32_t found) {
    if (found == t->generation)
        return 1;
    weft_device_tell_fault(t, WEFT_DEVICE_FAULT_STALE, t->generation);
    return 0;
}

/* Ends the job with a status, as shmem_global_exit(). It returns, since the host does that, within
 * some milliseconds: the kernel is to return as well. */
WEFT_DEVICE void weft_abort(const weft_device_team *t, int status) {
    weft_device_tell_fault(t, WEFT_DEVICE_FAULT_ABORT, (uint32_t)status);
}

#endif
