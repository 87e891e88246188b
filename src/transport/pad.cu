/* SPDX-License-Identifier: BSD-3-Clause */
/* PyTorch's signal pads, used as its kernels and Helion's use them: put changes the peer's word for
 * this rank from 0 to 1, wait changes this rank's word for the peer from 1 to 0. All words are 0
 * again at the end, so that graphs can replay. */
#include <stdio.h>
#include "base/gpu.cuh"
#include "base/pad.h"
#include "transport/gpu_kernel.h"

enum { TURN_NS = 100000000 };

/* Waits for this PE's turn to trap. If processes trap on one GPU within milliseconds, as happens
 * when their common peer dies, the driver does not report the trap to one of them, which then waits
 * for ever (580.159 on an H200, also without Weft). So the PEs of a GPU trap by its clock, each in
 * the first half of its own turn. */
WEFT_DEVICE void pad_await_turn(const uint32_t *words) {
    uint64_t turn = weft_ld_relaxed_sys(&words[WEFT_GPU_TRAP_TURN]);
    uint64_t turns = weft_ld_relaxed_sys(&words[WEFT_GPU_TRAP_TURNS]);
    while (turns > 1 && weft_globaltimer() / (TURN_NS / 2) % (2 * turns) != 2 * turn)
        weft_spin_yield();
}

/* Ends the wait by a trap, from which PyTorch's users recognise a timeout. The host learns the
 * reason. */
WEFT_DEVICE void pad_trap(const struct weft_pad *pad, int peer, const char *what, uint64_t ms,
                          struct weft_gpu_abort abort) {
    printf("weft: rank %d: %s rank %d on channel %d of its signal pad for %llu ms\n", pad->me, what,
           peer, pad->channel, (unsigned long long)ms);
    if (abort.gave_up) {
        weft_st_relaxed_sys(&abort.gave_up[WEFT_GPU_TIMED_OUT], 1u);
        weft_fence_sys();
        pad_await_turn(abort.gave_up);
    }
    weft_trap();
}

/* Does one turn of a wait. Returns false if the job is over and the wait has no limit. */
WEFT_DEVICE bool pad_turn(const struct weft_pad *pad, int peer, const char *what,
                          struct weft_spin *spin, struct weft_gpu_abort abort) {
    bool goes_on = weft_spin(spin, abort);
    if (pad->timeout_ms == 0)
        return goes_on;
    uint64_t ms = weft_spin_ns(spin) / 1000000;
    if (goes_on && ms < pad->timeout_ms)
        return true;
    pad_trap(pad, peer, what, ms, abort);
    return false;
}

WEFT_DEVICE void pad_put(const struct weft_pad *pad, int peer, struct weft_gpu_abort abort) {
    struct weft_spin spin = {};
    uint32_t *word = &pad->pads[peer][pad->n * pad->channel + pad->me];
    while (weft_atom_cas_release_sys(word, 0u, 1u) != 0)
        if (!pad_turn(pad, peer, "has not been heard by", &spin, abort))
            return;
}

/* Waits for the peer's signal in `own`, this rank's pad, and clears it. */
WEFT_DEVICE void pad_wait(const struct weft_pad *pad, uint32_t *own, int peer,
                          struct weft_gpu_abort abort) {
    struct weft_spin spin = {};
    uint32_t *word = &own[pad->n * pad->channel + peer];
    while (weft_atom_cas_acquire_sys(word, 1u, 0u) != 1)
        if (!pad_turn(pad, peer, "has heard nothing from", &spin, abort))
            return;
}

extern "C" __global__ void weftk_pad_put(struct weft_gpu_abort abort, struct weft_pad pad,
                                         int peer) {
    weft_dependency_wait();
    if (weft_thread_index() == 0)
        pad_put(&pad, peer, abort);
}

extern "C" __global__ void weftk_pad_wait(struct weft_gpu_abort abort, struct weft_pad pad,
                                          int peer) {
    weft_dependency_wait();
    if (weft_thread_index() == 0)
        pad_wait(&pad, pad.pads[pad.me], peer, abort);
}

extern "C" __global__ void weftk_pad_barrier(struct weft_gpu_abort abort, struct weft_pad pad) {
    weft_dependency_wait();
    int id = (int)weft_thread_index(), count = (int)weft_thread_count();
    uint32_t *own = pad.pads[pad.me]; /* loaded together with the address of the first peer's pad */
    for (int i = id; i < pad.n; i += count)
        if (i != pad.me)
            pad_put(&pad, i, abort);
    for (int i = id; i < pad.n; i += count)
        if (i != pad.me)
            pad_wait(&pad, own, i, abort);
}
