/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits, and the end of the job. A waiting kernel polls its word as often as it can for 20 us, and
 * then with pauses, so that others can use the processor. Every millisecond one thread of each warp
 * reads the abort word, which lies in host memory. When every thread read it every 20 us, the reads
 * of 16,384 threads took 500 us; a peer had to wait for that, and so read it as well. */
#ifndef WEFT_DEVICE_SPIN_CUH
#define WEFT_DEVICE_SPIN_CUH

#include "weft/device/ptx.cuh"
#include "weft/device/team.cuh"

/* The state of one wait; zero at the start. */
struct weft_spin {
    uint32_t turns;
    uint32_t rest_ns; /* pause between two turns; 0 at the start, unless the wait is to pause at
                       * once */
    uint64_t began, looked; /* ns; 0 while the wait is short */
};

enum {
    WEFT_SPIN_LOOKS = 4,  /* polls in a turn */
    WEFT_SPIN_TURNS = 16, /* turns between two reads of the clock */
    WEFT_SPIN_LONG_NS = 20000,
    WEFT_SPIN_REST_NS = 100,
    WEFT_SPIN_LOOK_NS = 1000000,
};

WEFT_DEVICE struct weft_gpu_abort weft_abort_of(const weft_device_team *t) {
    struct weft_gpu_abort abort = {t->abort, t->gave_up, t->rest_ns};
    return abort;
}

/* A wait polls its word with weft_poll_<order>, and weft_polled_<order> after it gives the last
 * poll its order. If the target has a fence that only acquires, polls are relaxed: each acquiring
 * load empties the cache, and the loads after the wait would have to wait for that, up to 0.08 us
 * of a put-with-signal. Otherwise each poll acquires. */
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

/* Returns 1 if `word cmp value` holds. */
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

/* Polls several times, for one turn of a wait, without a pause. Returns 1 as soon as the comparison
 * holds. A wait's other work is done between turns, not between two polls. */
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

/* Returns 1 if the job is over. The kernel must then return without the data that it waited for. */
WEFT_DEVICE int weft_spin_over(struct weft_gpu_abort abort) {
    if (!abort.word || weft_warp_ld_relaxed_sys_u32(abort.word) == 0)
        return 0;
    weft_st_relaxed_sys_u32(abort.gave_up, 1);
    return 1;
}

/* Does one turn of an unfinished wait: pauses, and checks the clock and the abort word if they are
 * due. Returns 0 if the kernel must give up. */
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

/* Returns the duration of the wait without its first turns, as of the last read of the abort word.
 */
WEFT_DEVICE uint64_t weft_spin_ns(const struct weft_spin *spin) {
    return spin->looked - spin->began;
}

/* --- The end of the job ----------------------------------------------------------------------- */

/* Returns 1 if the job is over: no data will arrive from peers, and the kernel must return. It
 * loads from host memory, which takes 1 to 2 us; waits do it by themselves. */
WEFT_DEVICE int weft_job_over(const weft_device_team *t) {
    return weft_spin_over(weft_abort_of(t));
}

/* Reports a fault to the host, which then ends the job of all PEs. */
WEFT_DEVICE void weft_device_tell_fault(const weft_device_team *t, uint32_t fault,
                                        uint32_t detail) {
    if (!t->gave_up)
        return;
    weft_st_relaxed_sys_u32(&t->gave_up[WEFT_DEVICE_FAULT_DETAIL], detail);
    weft_st_release_sys_u32(&t->gave_up[WEFT_DEVICE_FAULT], fault);
}

/* Returns the generation of the words at the handle's place. It is loaded together with other
 * words. */
WEFT_DEVICE uint32_t weft_device_generation(const weft_device_team *t) {
    return weft_ld_relaxed_sys_u32(&weft_device_head_of(t, t->me)->generation);
}

/* Returns 1 if the handle is valid. If it has been freed, as in a graph that outlives it, ends the
 * job and returns 0. */
WEFT_DEVICE int weft_device_check_generation(const weft_device_team *t, uint32_t found) {
    if (found == t->generation)
        return 1;
    weft_device_tell_fault(t, WEFT_DEVICE_FAULT_STALE, t->generation);
    return 0;
}

/* Ends the job with a status, as shmem_global_exit() does. It returns, since the host ends the job,
 * within some milliseconds; the kernel must then return as well. */
WEFT_DEVICE void weft_abort(const weft_device_team *t, int status) {
    weft_device_tell_fault(t, WEFT_DEVICE_FAULT_ABORT, (uint32_t)status);
}

#endif
