/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds of calls inside kernels. In each, block b of every member does the same with the blocks b
 * of the others: what it does, by which scope, how many bytes and how far from any alignment is
 * drawn from the round's number. A barrier stands before each round, so that arrays are free again;
 * within it only the round's own means order what is checked. */
#define WEFT_KERNEL_THREADS
#include "gpu/device_stress/bulk.cuh"
#include "gpu/device_stress/words.cuh"

WEFT_DEVICE int run(const struct stress_round *r, const struct bulk_tile *tile) {
    switch (r->kind) {
    case STRESS_GET:
        return run_get(r);
    case STRESS_SIGNAL:
        return run_signal(r);
    case STRESS_COPY:
        return run_copy(r);
    case STRESS_WORD:
        return run_words(r);
    case STRESS_ATOMIC:
        return run_atomics(r);
    case STRESS_PACKET:
        return run_packets(r);
    case STRESS_BULK_PUT:
        return run_bulk(r, tile);
    default:
        return run_put(r);
    }
}

/* Returns false if the job is over. */
WEFT_DEVICE bool run_round(const weft_device_team *t, const struct stress_plan *plan,
                           uint64_t number, struct bulk_tile *tile) {
    struct stress_round r = round_of(t, plan, number);
    fill(&r);
    int goes_on = r.kind == STRESS_GRID ? weft_barrier_grid(t) : meet(&r, r.key);
    goes_on = goes_on && !weft_block_sync_any((uint32_t)!run(&r, tile));
    tile->loads += r.kind == STRESS_BULK_PUT;
    if (weft_block_rank() == 0)
        weft_atom_add_sys_u64(goes_on ? &plan->seen->checked[r.kind] : &plan->seen->given_up, 1);
    return goes_on;
}

WEFT_DEVICE void run_rounds(const weft_device_team *t, const struct stress_plan *plan) {
    WEFT_SHARED(struct bulk_line, lines, STRESS_BULK / 128);
    WEFT_SHARED(uint64_t, mbarrier, 1);
    struct bulk_tile tile = {lines, mbarrier, 0};
    uint32_t i = 0;
    if (plan->bulk)
        begin_tile(&tile);
    while (i < plan->rounds && run_round(t, plan, plan->first + i, &tile))
        i++;
    if (plan->bulk)
        end_tile(&tile);
}

/* The handle by value, or its copy in GPU memory. */
extern "C" __global__ void __launch_bounds__(STRESS_THREADS)
    device_stress(const __grid_constant__ weft_device_team t, const weft_device_team *address,
                  const __grid_constant__ struct stress_plan plan) {
    run_rounds(address ? address : &t, &plan);
}
