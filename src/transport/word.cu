/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics, signals and waits, each on one word by one thread. A store releases: a reader of the
 * word sees the stream's earlier work. A load acquires: the stream's later work sees everything
 * that came before the store that it read. */
#include "base/gpu.cuh"
#include "transport/gpu_kernel.h"
#include "transport/gpu_word.h"

/* Returns the word's old value; unspecified for WEFT_AMO_SET. */
template <class Word>
WEFT_DEVICE Word word_amo(enum weft_amo_op op, Word *word, Word value, Word cond) {
    switch (op) {
    case WEFT_AMO_FETCH:
        return weft_ld_acquire_sys(word);
    case WEFT_AMO_SET:
        weft_st_release_sys(word, value);
        return 0; /* not value: gcc 12 then has it and the results of AND, OR and XOR in one
                     register, and makes word & word of the first */
    case WEFT_AMO_SWAP:
        return weft_atom_exch_sys(word, value);
    case WEFT_AMO_COMPARE_SWAP:
        return weft_atom_cas_sys(word, cond, value);
    case WEFT_AMO_ADD:
        return weft_atom_add_sys(word, value);
    case WEFT_AMO_AND:
        return weft_atom_and_sys(word, value);
    case WEFT_AMO_OR:
        return weft_atom_or_sys(word, value);
    default:
        return weft_atom_xor_sys(word, value);
    }
}

extern "C" __global__ void weftk_amo(struct weft_gpu_abort, struct weft_amo amo) {
    weft_dependency_wait();
    if (weft_thread_index() != 0)
        return;
    if (amo.bytes == 4) {
        uint32_t before =
            word_amo(amo.op, (uint32_t *)amo.dest, (uint32_t)amo.value, (uint32_t)amo.cond);
        if (amo.fetch)
            *(uint32_t *)amo.fetch = before;
    } else {
        uint64_t before = word_amo(amo.op, (uint64_t *)amo.dest, amo.value, amo.cond);
        if (amo.fetch)
            *(uint64_t *)amo.fetch = before;
    }
}

extern "C" __global__ void weftk_signal(struct weft_gpu_abort, uint64_t *word, uint64_t value,
                                        int add) {
    weft_dependency_wait();
    if (weft_thread_index() != 0)
        return;
    if (add)
        weft_red_add_sys(word, value);
    else
        weft_st_release_sys(word, value);
}

extern "C" __global__ void weftk_wait(struct weft_gpu_abort abort, const uint64_t *word, int cmp,
                                      uint64_t value, uint32_t rest_ns) {
    weft_dependency_wait();
    struct weft_spin spin = {};
    spin.rest_ns = rest_ns;
    if (weft_thread_index() == 0)
        while (!weft_compares(cmp, weft_ld_acquire_sys(word), value) && weft_spin(&spin, abort)) {
        }
}
