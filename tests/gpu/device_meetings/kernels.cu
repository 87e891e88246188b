/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of the test of meetings: rounds of stores, a meeting and reads of the others' stores,
 * with each kind of meeting; and calls with packets, with different data in each. */
#define WEFT_KERNEL_THREADS
#include "base/gpu.cuh"
#include "weft/device.cuh"
#include "gpu/device_meetings/task.h"
#include "gpu/found.cuh"

/* --- Barriers -------------------------------------------------------------------------------- */

/* Returns a thread's place for the word that a member's thread has stored in a round. */
WEFT_DEVICE uint64_t *place_of(const weft_device_team *t, const meetings_rounds &task,
                               uint32_t round, uint32_t block, int member, uint32_t thread) {
    uint32_t row = ((round & 1) * 8 + block) * (uint32_t)t->n + (uint32_t)member;
    return &task.words[row * weft_block_threads() + thread];
}

/* Reads the words that a thread of the same warp, or one of each block of the grid, has stored at
 * each member. After the meeting they must be this round's: a cache may keep the result of an
 * earlier read, and must not return it again. */
WEFT_DEVICE void look(const weft_device_team *t, const meetings_rounds &task, uint32_t round,
                      bool met) {
    uint32_t id = weft_block_thread(), other = id / 32 * 32 + (id + 1) % 32;
    for (int m = 0; m < t->n; m++) {
        bool grid = task.kind >= MEET_GRID;
        uint32_t block = grid ? 0 : weft_block_index(), end = grid ? task.blocks[m % 8] : block + 1;
        for (; block < end; block++) {
            uint64_t seen = weft_ld_weak(place_of(t, task, round, block, m, other));
            if (met ? seen != (uint64_t)round * 1000 + other : seen == UINT64_MAX)
                found_wrong(task.found, (uint64_t)task.kind, round, (uint64_t)m, seen);
        }
    }
}

/* By one thread of the block, or by its first warp; for all. */
WEFT_DEVICE int meet_by_one(const weft_device_team *t, uint32_t channel) {
    weft_block_sync();
    int met = weft_block_thread() != 0 || weft_barrier_t(t, channel);
    return !weft_block_sync_any(!met);
}

WEFT_DEVICE int meet_by_warp(const weft_device_team *t, uint32_t channel) {
    weft_block_sync();
    int met = weft_block_thread() >= 32 || weft_barrier_w(t, channel);
    return !weft_block_sync_any(!met);
}

WEFT_DEVICE int meet_mixed(const weft_device_team *t, uint32_t channel, uint32_t round) {
    uint32_t scope = ((uint32_t)t->me + round) % 3;
    return scope == 0   ? meet_by_one(t, channel)
           : scope == 1 ? meet_by_warp(t, channel)
                        : weft_barrier_b(t, channel);
}

/* One thread meets for all, and reads between the halves. */
WEFT_DEVICE int meet_by_halves_of_one(const weft_device_team *t, const meetings_rounds &task,
                                      uint32_t round) {
    uint32_t channel = weft_block_index();
    bool first = weft_block_thread() == 0;
    weft_block_sync();
    if (first)
        weft_arrive_t(t, channel);
    weft_block_sync();
    look(t, task, round, false);
    return !weft_block_sync_any(first && !weft_depart_t(t, channel));
}

/* One in two blocks is late, because its first thread's stores are late, too. */
WEFT_DEVICE bool dawdle(uint32_t round) {
    bool late = weft_block_thread() == 0 && mix(round * 64 + weft_block_index()) % 2 == 0;
    for (int turn = 0; late && turn < 20; turn++)
        weft_spin_yield();
    return true;
}

WEFT_DEVICE int meet(const weft_device_team *t, const meetings_rounds &task, uint32_t round) {
    uint32_t block = weft_block_index(), warp = block * 2 + weft_block_thread() / 32;
    switch (task.kind) {
    case MEET_HALVES_B:
        weft_arrive_b(t, block);
        look(t, task, round, false);
        return weft_depart_b(t, block);
    case MEET_BARRIER_W:
        return weft_barrier_w(t, warp);
    case MEET_HALVES_W:
        weft_arrive_w(t, warp);
        look(t, task, round, false);
        return weft_depart_w(t, warp);
    case MEET_BARRIER_T:
        return meet_by_one(t, block);
    case MEET_HALVES_T:
        return meet_by_halves_of_one(t, task, round);
    case MEET_MIXED:
        return meet_mixed(t, block, round);
    case MEET_GRID:
        return weft_barrier_grid(t);
    case MEET_GRID_AGAIN:
        return weft_barrier_grid(t) && dawdle(round) && weft_barrier_grid(t) && dawdle(round + 1) &&
               weft_barrier_grid(t);
    default:
        return weft_barrier_b(t, block);
    }
}

/* One meeting per round: stores of two rounds later do not disturb readers. */
extern "C" __global__ void meetings_barriers(const __grid_constant__ weft_device_team t,
                                             const __grid_constant__ meetings_rounds task) {
    uint32_t id = weft_block_thread();
    for (uint32_t round = task.first + 1; round <= task.first + task.count; round++) {
        uint64_t mine = (uint64_t)round * 1000 + id;
        for (int m = 0; m < t.n; m++)
            weft_put_t(&t, place_of(&t, task, round, weft_block_index(), t.me, id), &mine,
                       sizeof mine, m);
        look(&t, task, round, false);
        if (!meet(&t, task, round))
            return;
        look(&t, task, round, true);
        if (id == 0)
            weft_atom_add_sys(&task.found->checked, (uint64_t)t.n);
    }
}

/* --- Syncs, which order nothing -------------------------------------------------------------- */

/* Each member counts its rounds by atomics on its own word; no member is behind, or more than one
 * ahead. */
extern "C" __global__ void meetings_syncs(const __grid_constant__ weft_device_team t,
                                          const __grid_constant__ meetings_rounds task) {
    uint32_t id = weft_block_thread(), block = weft_block_index();
    for (uint32_t round = task.first + 1; round <= task.first + task.count; round++) {
        uint32_t scope = (round + (uint32_t)t.me) % 3;
        int met = 1;
        if (id == 0)
            weft_atomic_fetch_add64(&t, &task.words[block], 1, t.me);
        weft_fence();
        weft_block_sync();
        if (scope == 0)
            met = weft_sync_b(&t, block);
        else if (scope == 1 && id < 32)
            met = weft_sync_w(&t, block);
        else if (scope == 2 && id == 0)
            met = weft_sync_t(&t, block);
        if (weft_block_sync_any(!met))
            return;
        weft_fence();
        for (int m = (int)id; m < t.n; m += (int)weft_block_threads()) {
            uint64_t other = weft_atomic_fetch_add64(&t, &task.words[block], 0, m);
            if (other < round || other > round + 1)
                found_wrong(task.found, 100, round, (uint64_t)m, other);
        }
        weft_block_sync();
        if (id == 0)
            weft_atom_add_sys(&task.found->checked, (uint64_t)t.n);
    }
}

/* --- Packets --------------------------------------------------------------------------------- */

/* Returns one unit while flags wrap around, in all calls after that; otherwise a random number,
 * mostly few between many, so that a member that does not wait for all threads of its block gets
 * far ahead. */
WEFT_DEVICE uint32_t units_of(const weft_device_team *t, uint64_t epoch) {
    uint32_t low = (uint32_t)epoch, all = t->slot_bytes / 16;
    return low >= 0xfffffff0u ? 1 : low < 8 ? all : mix(low) % 3 != 0 ? 1 : 1 + mix(~low) % all;
}

WEFT_DEVICE uint64_t data_of(const meetings_packets &task, uint64_t epoch, int from, int to,
                             uint32_t unit) {
    uint32_t way = (uint32_t)(from * 64 + (task.bcast ? 0 : to));
    return mix64(task.seed ^ (uint32_t)(epoch >> 32) * 17, (uint32_t)epoch, way,
                 unit * 1024 + weft_block_index());
}

WEFT_DEVICE void send_all(const weft_device_team *t, const meetings_packets &task, uint64_t epoch) {
    uint32_t channel = weft_block_index();
    for (uint32_t u = weft_block_thread(); u < units_of(t, epoch); u += weft_block_threads())
        if (task.bcast)
            weft_ll_bcast(t, channel, u, data_of(task, epoch, t->me, 0, u), epoch);
        else
            for (int d = 1; d < t->n; d++) {
                int m = (t->me + d) % t->n;
                weft_ll_send(t, channel, u, data_of(task, epoch, t->me, m, u), epoch, m);
            }
}

/* Uses other threads than those that send the same units. Returns false if the job is over. */
WEFT_DEVICE bool receive_all(const weft_device_team *t, const meetings_packets &task,
                             uint64_t epoch) {
    uint32_t channel = weft_block_index(), units = units_of(t, epoch);
    for (uint32_t u = weft_block_threads() - 1 - weft_block_thread(); u < units;
         u += weft_block_threads())
        for (int d = 1; d < t->n; d++) {
            int m = (t->me + d) % t->n;
            uint64_t data = 0;
            if (!weft_ll_recv(t, channel, u, m, epoch, &data))
                return false;
            if (data != data_of(task, epoch, m, t->me, u))
                found_wrong(task.found, epoch, (uint64_t)m, u, data);
        }
    return true;
}

extern "C" __global__ void meetings_packets(const __grid_constant__ weft_device_team t,
                                            const __grid_constant__ struct meetings_packets task) {
    uint32_t channel = weft_block_index();
    uint64_t epoch = weft_ll_epoch_begin(&t, channel);
    bool over = false;
    for (uint32_t call = 0; call < task.count; call++) {
        send_all(&t, task, epoch);
        over = over || !receive_all(&t, task, epoch);
        if (call % 64 == 63 && weft_block_sync_any(over))
            return;
        weft_ll_epoch_end(&t, channel, epoch);
        epoch = call % 2 == 0 ? weft_ll_epoch_next(epoch) : weft_ll_epoch_begin(&t, channel);
        if (weft_block_thread() == 0)
            weft_atom_add_sys(&task.found->checked, (uint64_t)t.n);
    }
}

/* Between calls of all members. */
extern "C" __global__ void meetings_set_epoch(const __grid_constant__ weft_device_team t,
                                              uint64_t epoch) {
    if (weft_block_thread() == 0)
        weft_st_relaxed_sys(&weft_device_channel_of(&t, weft_block_index(), t.me)->packets, epoch);
}
