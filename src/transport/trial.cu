/* SPDX-License-Identifier: BSD-3-Clause */
/* Two GPUs add to one word: the owner of its memory, and another one over a link. Over a link
 * without atomics an addition is a load and a store, and loses the owner's additions in between.
 *
 * Both GPUs may be shared with other processes and run alternately. So the other GPU continues
 * until it has found often enough that the owner has added since its own last addition. */
#include "base/gpu.cuh"
#include "transport/gpu_kernel.h"
#include "transport/gpu_word.h"

enum { WEFT_TRIAL_MEETINGS = 256 };
#define WEFT_TRIAL_NS_MAX 3000000000u

/* Returns false if the trial has to end without a result. Never rests, because additions have to
 * collide. */
WEFT_DEVICE bool trial_turn(struct weft_spin *spin, struct weft_gpu_abort abort) {
    spin->rest_ns = abort.rest_ns = 0;
    return weft_spin(spin, abort) && weft_spin_ns(spin) < WEFT_TRIAL_NS_MAX;
}

WEFT_DEVICE void trial_add_at_home(struct weft_gpu_trial *trial, struct weft_gpu_abort abort) {
    struct weft_spin spin = {};
    uint32_t made = 0;
    weft_st_relaxed_sys(&trial->begun, 1u);
    while (weft_ld_relaxed_sys(&trial->stop) == 0 && trial_turn(&spin, abort)) {
        weft_atom_add_sys(&trial->word, 1u);
        made++;
    }
    weft_red_add_sys(&trial->made, made);
}

WEFT_DEVICE void trial_add_from_afar(struct weft_gpu_trial *trial, struct weft_gpu_abort abort) {
    struct weft_spin spin = {};
    uint32_t added = 0, meetings = 0, last = 0;
    while (weft_ld_relaxed_sys(&trial->begun) == 0)
        if (!trial_turn(&spin, abort))
            return;
    while (meetings < WEFT_TRIAL_MEETINGS && trial_turn(&spin, abort)) {
        uint32_t before = weft_atom_add_sys(&trial->word, 1u);
        meetings += before != last + 1;
        last = before;
        added++;
    }
    if (meetings == WEFT_TRIAL_MEETINGS)
        weft_st_relaxed_sys(&trial->added, added);
    weft_st_release_sys(&trial->stop, 1u);
}

extern "C" __global__ void weftk_try_atomics(struct weft_gpu_abort abort,
                                             struct weft_gpu_trial *trial, int owner) {
    weft_dependency_wait();
    if (owner)
        trial_add_at_home(trial, abort);
    else if (weft_thread_index() == 0)
        trial_add_from_afar(trial, abort);
}
