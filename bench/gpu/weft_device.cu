// SPDX-License-Identifier: BSD-3-Clause
// Weft's calls inside kernels, by <weft/device.cuh> as a user has it, in the rows of device.cuh;
// and rows that the others have not: packets, and puts by bulk copies.
#include <shmem.h>
#include <shmemx.h>
#include <weft.h>
#include <weft/device.cuh>

struct calls {
    weft_device_team team;

    __device__ void put_signal_t(void *dest, const void *source, size_t size, uint64_t *signal,
                                 uint64_t value, int pe) const {
        weft_put_signal_t(&team, dest, source, size, signal, value, WEFT_SIGNAL_SET, pe);
    }
    __device__ void put_signal_b(void *dest, const void *source, size_t size, uint64_t *signal,
                                 uint64_t value, int pe) const {
        weft_put_signal_b(&team, dest, source, size, signal, value, WEFT_SIGNAL_SET, pe);
    }
    __device__ void word_signal(uint64_t *dest, const uint64_t *source, uint64_t *signal,
                                uint64_t value, int pe) const {
        weft_p64_signal(&team, dest, *source, signal, value, WEFT_SIGNAL_SET, pe);
    }
    __device__ void wait_t(uint64_t *signal, uint64_t value) const {
        weft_wait_ge(&team, signal, value);
    }
    __device__ void wait_b(uint64_t *signal, uint64_t value) const {
        weft_wait_ge_b(&team, signal, value);
    }
    __device__ void put_b(void *dest, const void *source, size_t size, int pe) const {
        weft_put_b(&team, dest, source, size, pe);
    }
    __device__ void get_b(void *dest, const void *source, size_t size, int pe) const {
        weft_get_b(&team, dest, source, size, pe);
    }
    __device__ void p(uint64_t *dest, uint64_t value, int pe) const {
        weft_p64(&team, dest, value, pe);
    }
    __device__ uint64_t fetch_add(uint64_t *word, uint64_t value, int pe) const {
        return weft_atomic_fetch_add64(&team, word, value, pe);
    }
    __device__ void add(uint64_t *word, uint64_t value, int pe) const {
        weft_atomic_add64(&team, word, value, pe);
    }
    __device__ void barrier_b() const { weft_barrier_b(&team, 0); }
    __device__ void sync_b() const { weft_sync_b(&team, 0); }
    __device__ void barrier_grid() const { weft_barrier_grid(&team); }
};

#include "device.cuh"

enum {
    UNITS = 1024,      // packets of an epoch, at most
    STAGES = 2,        // tiles of a warp's in shared memory
    MOST_PIPELINES = 6 // warps of a block, of which each moves tiles by itself
};

static weft_device_team pair; // PEs 0 and 1

static void require(int result, const char *call) {
    if (result < 0)
        give_up(call, weft_last_error());
}

static void meet() {
    CUDA(cudaStreamSynchronize(stream));
    shmem_barrier_all();
}

static void launched(const void *kernel, int blocks, int threads, void **arguments) {
    CUDA(cudaLaunchCooperativeKernel(kernel, (unsigned)blocks, (unsigned)threads, arguments, 0,
                                     stream));
}

// --- Packets ------------------------------------------------------------------------------------

// PE 1 sends back what it has received, so that PE 0 can tell. False where the job is over.
__device__ static bool play(const weft_device_team &t, uint32_t unit, uint64_t epoch, uint64_t data,
                            uint64_t *wrong) {
    uint64_t back = data;
    if (t.me == 1 && !weft_ll_recv(&t, 0, unit, 0, epoch, &back))
        return false;
    weft_ll_send(&t, 0, unit, back, epoch, 1 - t.me);
    if (t.me == 0 && !weft_ll_recv(&t, 0, unit, 1, epoch, &back))
        return false;
    *wrong += back != data;
    return true;
}

// Of one epoch: as many packets as a slot has units.
__global__ static void packets(const __grid_constant__ weft_device_team t, uint64_t seed,
                               int rounds, uint64_t *wrong, uint64_t *ns) {
    uint64_t epoch = weft_ll_epoch_begin(&t, 0), start = 0, bad = 0;
    for (int i = 0; threadIdx.x == 0 && i < rounds; i++) {
        if (i == WARM)
            start = device_ns();
        if (!play(t, (uint32_t)i, epoch, word_at(seed, (size_t)i), &bad))
            break;
    }
    if (threadIdx.x == 0)
        *ns = device_ns() - start, *wrong += bad;
    weft_ll_epoch_end(&t, 0, epoch);
}

// Each round is an epoch.
__global__ static void epochs(const __grid_constant__ weft_device_team t, uint64_t seed, int rounds,
                              uint64_t *wrong, uint64_t *ns) {
    uint64_t epoch = weft_ll_epoch_begin(&t, 0), start = 0, bad = 0;
    for (int i = 0; i < rounds; i++, epoch = weft_ll_epoch_next(epoch)) {
        if (i == WARM)
            start = device_ns();
        if (threadIdx.x == 0 && !play(t, 0, epoch, word_at(seed, (size_t)i), &bad))
            return;
        weft_ll_epoch_end(&t, 0, epoch);
    }
    if (threadIdx.x == 0)
        *ns = device_ns() - start, *wrong += bad;
}

static void launch_packets(int i) {
    packets<<<1, 32, 0, stream>>>(pair, (uint64_t)(i + 100), args.rounds, args.wrong, args.ns);
}

static void launch_epochs(int i) {
    epochs<<<1, 32, 0, stream>>>(pair, (uint64_t)(i + 200), args.rounds, args.wrong, args.ns);
}

static void packet_row(const char *text, enqueue *launch) {
    if (me < 2) {
        double us = 0.5 * round_us(launch);
        row(text, right_or_nan(text, us), "us");
    }
    meet();
}

static void packet_rows() {
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &team);
    if (me < 2)
        require(shmemx_device_team(team, 1, UNITS * 16, &pair), "shmemx_device_team");
    packet_row("kernel: packet of 8 B, one way", launch_packets);
    packet_row("kernel: packet of 8 B in an epoch of its own, one way", launch_epochs);
    if (me < 2)
        require(shmemx_device_team_free(&pair), "shmemx_device_team_free");
}

// --- Bulk copies --------------------------------------------------------------------------------

// One thread's tiles, from `first` on, so many apart: while one leaves the next comes.
struct pipeline {
    const weft_device_team *team;
    char *dest, *room; // room: STAGES tiles of shared memory
    const char *source;
    uint64_t *come; // mbarriers of the stages
    uint32_t tile_bytes;
    int blocks;
    size_t first, step, tiles;
};

__device__ static void load_tile(const struct pipeline &p, size_t k) {
    unsigned stage = k % STAGES;
    weft_mbarrier_expect(&p.come[stage], p.tile_bytes);
    weft_bulk_load(p.room + stage * p.tile_bytes, p.source + (p.first + k * p.step) * p.tile_bytes,
                   p.tile_bytes, &p.come[stage]);
}

__device__ static void put_tiles(const struct pipeline &p, int me, int n) {
    for (int stage = 0; stage < STAGES; stage++)
        weft_mbarrier_init(&p.come[stage], 1);
    if (p.tiles > 0)
        load_tile(p, 0);
    for (size_t k = 0; k < p.tiles; k++) {
        unsigned stage = k % STAGES;
        size_t tile = p.first + k * p.step;
        if (k + 1 < p.tiles) {
            weft_bulk_wait_read(); // the tile before this one has left its stage
            load_tile(p, k + 1);
        }
        if (!weft_mbarrier_wait(p.team, &p.come[stage], k / STAGES & 1))
            return;
        int peer = (int)((me + 1 + tile / p.blocks % (n - 1)) % n);
        weft_bulk_put(weft_at(p.team, p.dest + tile * p.tile_bytes, peer),
                      p.room + stage * p.tile_bytes, p.tile_bytes);
        weft_bulk_commit();
    }
    weft_bulk_wait();
}

// Tile by tile to the peers in turn; with n = 2 there is one.
__global__ static void put_bulk(const __grid_constant__ weft_device_team t, char *dest,
                                const char *source, size_t size, uint32_t tile_bytes, int blocks,
                                int pe, int n) {
    extern __shared__ __align__(128) char room[];
    __shared__ uint64_t come[MOST_PIPELINES][STAGES];
    unsigned warp = threadIdx.x / 32;
    int number = number_of_block(blocks);
    size_t tiles = size / tile_bytes, first = number + warp * (size_t)blocks;
    size_t step = (size_t)blocks * (blockDim.x / 32);
    if (threadIdx.x % 32 == 0 && number >= 0)
        put_tiles({&t, dest, room + warp * STAGES * tile_bytes, source, come[warp], tile_bytes,
                   blocks, first, step, first < tiles ? (tiles - first + step - 1) / step : 0},
                  pe, n);
}

static void launch_bulk(int) {
    uint32_t tile_bytes = (uint32_t)args.bytes, pipelines = SHARED_BYTES / STAGES / tile_bytes;
    launch_everywhere(put_bulk, pipelines * 32, args.calls.team, args.dest, args.source, PUT_BYTES,
                      tile_bytes, args.blocks, me, npes);
}

static void bulk_rows() {
    char text[64];
    const size_t tiles[] = {16 << 10, 32 << 10};
    for (int k = 0; k < LENGTH(tiles); k++) {
        args.bytes = tiles[k];
        snprintf(text, sizeof text, "put by bulk copies of %s", size_name(tiles[k]));
        bandwidth_rows(text, launch_bulk, 0, tiles[k]);
    }
}

static void *symmetric(size_t size) {
    void *p = shmemx_malloc(SHMEMX_SPACE_DEVICE, size);
    if (!p)
        give_up("shmemx_malloc", weft_last_error());
    return p;
}

int main() {
    begin();
    shmem_init();
    library = "Weft";
    args.dest = static_cast<char *>(symmetric(PUT_BYTES));
    args.source = static_cast<char *>(symmetric(PUT_BYTES));
    args.words = static_cast<uint64_t *>(symmetric(ADD_WORDS * sizeof *args.words));
    require(shmemx_device_team(SHMEM_TEAM_WORLD, 1, 0, &args.calls.team), "shmemx_device_team");
    allocate_own();
    rows_of_kernels();
    packet_rows();
    bulk_rows();
    require(shmemx_device_team_free(&args.calls.team), "shmemx_device_team_free");
    shmem_finalize();
    return any_wrong;
}
