/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of the test of bulk copies: tiles that are put, announced, loaded by the member that
 * has them now, changed and put back; pipelines of two tiles; and sums. */
#define WEFT_KERNEL_THREADS
#include "base/gpu.cuh"
#include "weft/device.cuh"
#include "gpu/device_bulk/task.h"
#include "gpu/found.cuh"

/* Older GPUs have no bulk copies: the host does not launch these kernels there. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

enum { WORDS = BULK_TILE / 8 };

WEFT_DEVICE uint64_t word_of(const bulk_rounds &task, uint32_t round, int from, int to,
                             uint32_t i) {
    return mix64(task.seed, round, (uint32_t)(from * 64 + to), weft_block_index() * WORDS + i);
}

WEFT_DEVICE char *tile_of(const weft_device_team *t, const bulk_rounds &task, int member) {
    return task.landing + ((size_t)weft_block_index() * (size_t)t->n + (size_t)member) * BULK_TILE;
}

WEFT_DEVICE void tell_tile(const weft_device_team *t, const bulk_rounds &task, uint32_t round,
                           int d) {
    uint64_t *sig = &task.sig[weft_block_index() * (uint32_t)t->n + (uint32_t)t->me];
    weft_signal(t, sig, round, (t->me + d) % t->n);
}

/* Puts tiles to all members, through two tiles of shared memory used alternately: one is filled
 * while the other is sent. Each is announced when it has been written; in every second round all of
 * them are announced at the end. */
WEFT_DEVICE void put_tiles(const weft_device_team *t, const bulk_rounds &task, uint32_t round) {
    WEFT_SHARED(struct weft_quad, quads, WORDS); /* two tiles, aligned to 16 bytes */
    uint64_t *tiles = (uint64_t *)quads;
    uint32_t id = weft_block_thread();
    for (int d = 0; d < t->n; d++) {
        int m = (t->me + d) % t->n;
        uint64_t *tile = tiles + d % 2 * WORDS;
        if (id == 0)
            weft_bulk_wait_read_but_one();
        weft_block_sync();
        for (uint32_t i = id; i < WORDS; i += weft_block_threads())
            tile[i] = word_of(task, round, t->me, m, i);
        weft_fence_async_shared();
        weft_block_sync();
        if (id == 0) {
            weft_bulk_put(weft_at(t, tile_of(t, task, t->me), m), tile, BULK_TILE);
            weft_bulk_commit();
        }
        if (id == 0 && round % 2 == 0 && d > 0) {
            weft_bulk_wait_but_one();
            tell_tile(t, task, round, d - 1);
        }
    }
    if (id != 0)
        return;
    weft_bulk_wait();
    for (int d = round % 2 == 0 ? t->n - 1 : 0; d < t->n; d++)
        tell_tile(t, task, round, d);
}

/* Each member's tile: 0 if the job is over. */
WEFT_DEVICE int load_tiles(const weft_device_team *t, const bulk_rounds &task, uint32_t round,
                           uint64_t *mbarrier, uint32_t *phase) {
    WEFT_SHARED(struct weft_quad, quads, WORDS / 2);
    uint64_t *tile = (uint64_t *)quads;
    uint32_t id = weft_block_thread();
    for (int m = 0; m < t->n; m++, ++*phase) {
        const uint64_t *sig = &task.sig[weft_block_index() * (uint32_t)t->n + (uint32_t)m];
        if (id == 0 && weft_wait_ge(t, sig, round)) {
            weft_fence_async();
            weft_mbarrier_expect(mbarrier, BULK_TILE);
            weft_bulk_load(tile, tile_of(t, task, m), BULK_TILE / 2, mbarrier);
            weft_bulk_load(tile + WORDS / 2, tile_of(t, task, m) + BULK_TILE / 2, BULK_TILE / 2,
                           mbarrier);
        }
        if (!weft_mbarrier_wait(t, mbarrier, *phase & 1))
            return 0;
        if (!weft_mbarrier_test(mbarrier, *phase & 1))
            found_wrong(task.found, round, (uint64_t)m, *phase, 0);
        for (uint32_t i = id; i < WORDS; i += weft_block_threads())
            if (tile[i] != word_of(task, round, m, t->me, i))
                found_wrong(task.found, round, (uint64_t)m, i, tile[i]);
        weft_block_sync();
    }
    return 1;
}

/* Uses no fence except that of the mbarrier's initialisation. */
WEFT_DEVICE int load_first(const weft_device_team *t, const bulk_rounds &task, uint64_t *mbarrier,
                           uint32_t *phase) {
    WEFT_SHARED(struct weft_quad, tile, 1);
    if (weft_block_thread() == 0) {
        weft_mbarrier_expect(mbarrier, sizeof *tile);
        weft_bulk_load(tile, tile_of(t, task, t->me), sizeof *tile, mbarrier);
    }
    return weft_mbarrier_wait(t, mbarrier, (*phase)++ & 1);
}

#endif

extern "C" __global__ void bulk_exchange(const __grid_constant__ weft_device_team t,
                                         const __grid_constant__ bulk_rounds task) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    WEFT_SHARED(uint64_t, mbarrier, 1);
    uint32_t block = weft_block_index() * (uint32_t)t.n, phase = 0;
    if (weft_block_thread() == 0)
        weft_mbarrier_init(mbarrier, 1);
    weft_block_sync();
    if (!load_first(&t, task, mbarrier, &phase))
        return;
    for (uint32_t round = task.first + 1; round <= task.first + task.count; round++) {
        put_tiles(&t, task, round);
        if (!load_tiles(&t, task, round, mbarrier, &phase))
            return;
        for (int m = (int)weft_block_thread(); m < t.n; m += (int)weft_block_threads())
            weft_signal(&t, &task.acks[block + (uint32_t)t.me], round, m);
        for (int m = 0; m < t.n; m++)
            if (!weft_wait_ge_b(&t, &task.acks[block + (uint32_t)m], round))
                return;
        if (weft_block_thread() == 0)
            weft_atom_add_sys(&task.found->checked, (uint64_t)t.n);
    }
    weft_block_sync();
    if (weft_block_thread() == 0)
        weft_mbarrier_inval(mbarrier);
#else
    (void)t, (void)task;
#endif
}

/* `own` added to every member's `sum`, as elements of a type. */
extern "C" __global__ void bulk_sum(const __grid_constant__ weft_device_team t, char *sum,
                                    const char *own, int type) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    WEFT_SHARED(struct weft_quad, quads, WORDS / 2);
    uint64_t *tile = (uint64_t *)quads;
    for (uint32_t i = weft_block_thread(); i < WORDS; i += weft_block_threads())
        tile[i] = ((const uint64_t *)own)[i];
    weft_fence_async_shared();
    weft_block_sync();
    if (weft_block_thread() != 0)
        return;
    for (int m = 0; m < t.n; m++) {
        void *to = weft_at(&t, sum, m);
        if (type == BULK_F32)
            weft_bulk_add_f32(to, tile, BULK_TILE);
        else if (type == BULK_F16)
            weft_bulk_add_f16(to, tile, BULK_TILE);
        else if (type == BULK_BF16)
            weft_bulk_add_bf16(to, tile, BULK_TILE);
        else if (type == BULK_U32)
            weft_bulk_add_u32(to, tile, BULK_TILE);
        else
            weft_bulk_add_u64(to, tile, BULK_TILE);
    }
    weft_bulk_commit();
    weft_bulk_wait();
#else
    (void)t, (void)sum, (void)own, (void)type;
#endif
}
