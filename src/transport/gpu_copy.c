/* SPDX-License-Identifier: BSD-3-Clause */
/* On the program's streams the table below chooses the engine, unless the user does; copies that
 * the host waits for use a copy engine. A copy by multiprocessors starts sooner; a copy engine
 * moves more and leaves the multiprocessors to others. Between two H200s, on a stream, a kernel
 * took 1.1 us for 16 bytes and 24.0 us for 8 MiB, a copy engine 1.9 and 24.4; for 256 MiB a kernel
 * reached 368 GB/s, and a copy engine 394. Copies within a GPU and memsets from 16 KiB on are
 * kernels of the driver, even when they are requested from a copy engine. */
#include "transport/gpu_copy.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "base/env.h"
#include "base/size.h"
#include "transport/gpu_kernel.h"

enum { THREADS = 512, WORD_BYTES = 16 };

static const struct row {
    const char *name;
    size_t sm_bytes_max; /* larger copies use a copy engine; 0: all do */
    unsigned blocks_max; /* blocks of THREADS with which multiprocessors reach full speed */
} table[WEFT_DIRECTIONS] = {
    [WEFT_WITHIN] = {"within the GPU", 0, 256}, /* done by a kernel of the driver */
    [WEFT_TO_PEER] = {"to a peer", 8 << 20, 64},
    [WEFT_FROM_PEER] = {"from a peer", 8 << 20, 64},
    /* A kernel of 8 blocks beside a product of 4096 x 4096 x 4096 took a whole round of tiles from
     * it: the product took 1.42 times as long, and with a copy engine 1.05 times (H200). */
    [WEFT_BESIDE] = {"beside products", 0, 64},
    [WEFT_TO_HOST] = {"to the host", 2 << 20, 16},
    [WEFT_FROM_HOST] = {"from the host", 64 << 10, 16},
    [WEFT_BY_AGENT] = {"staged", 0, 16}, /* a kernel would take turns with those of that GPU's PE */
};

/* --- Choice of the engine --------------------------------------------------------------------- */

static const char *const engines[] = {
    [WEFT_ENGINE_AUTO] = "auto",
    [WEFT_ENGINE_SM] = "sm",
    [WEFT_ENGINE_COPY] = "copy",
};
enum { ENGINES = sizeof engines / sizeof engines[0], NOT_READ_YET = -1 };

static _Atomic int engine_in_use = NOT_READ_YET;

static enum weft_copy_engine setting_read(void) {
    for (int i = 0; i < ENGINES; i++)
        if (strcmp(weft_env.engine, engines[i]) == 0)
            return (enum weft_copy_engine)i;
    weft_log("SHMEMX_ENGINE is '%s', and auto is used: set it to auto, sm or copy",
             weft_env.engine);
    return WEFT_ENGINE_AUTO;
}

void weft_engine_set(enum weft_copy_engine engine) {
    atomic_store_explicit(&engine_in_use, (int)engine, memory_order_relaxed);
}

enum weft_copy_engine weft_engine_get(void) {
    int engine = atomic_load_explicit(&engine_in_use, memory_order_relaxed);
    if (engine != NOT_READ_YET)
        return (enum weft_copy_engine)engine;
    enum weft_copy_engine setting = setting_read();
    if (atomic_compare_exchange_strong(&engine_in_use, &engine, (int)setting))
        return setting;
    return (enum weft_copy_engine)engine; /* another thread was faster */
}

const char *weft_engine_name(enum weft_copy_engine engine) {
    return engines[engine];
}

enum weft_copy_engine weft_engine_choose(enum weft_direction direction, size_t bytes) {
    enum weft_copy_engine engine = weft_engine_get();
    if (engine != WEFT_ENGINE_AUTO)
        return engine;
    return bytes <= table[direction].sm_bytes_max ? WEFT_ENGINE_SM : WEFT_ENGINE_COPY;
}

void weft_engine_describe(char *line, size_t bytes, enum weft_direction direction) {
    const struct row *row = &table[direction];
    struct weft_size_text size = weft_size(row->sm_bytes_max);
    if (weft_engine_get() == WEFT_ENGINE_AUTO && row->sm_bytes_max == 0)
        snprintf(line, bytes, "%-15s a copy engine", row->name);
    else if (weft_engine_get() == WEFT_ENGINE_AUTO)
        snprintf(line, bytes, "%-15s SM up to %s (%u blocks at most), then a copy engine",
                 row->name, size.text, row->blocks_max);
    else
        snprintf(line, bytes, "%-15s %s, as SHMEMX_ENGINE or the program says", row->name,
                 weft_engine_get() == WEFT_ENGINE_SM ? "SM" : "a copy engine");
}

/* --- Copies ----------------------------------------------------------------------------------- */

static unsigned at_least_1_at_most(size_t count, unsigned most) {
    return count < 1 ? 1 : count > most ? most : (unsigned)count;
}

/* Returns the number of words of the largest size that a thread can move between the two addresses.
 */
static size_t word_count(const void *to, const void *from, size_t bytes) {
    uintptr_t apart = (uintptr_t)to ^ (uintptr_t)from;
    size_t word = WORD_BYTES;
    while (apart % word != 0)
        word /= 2;
    return (bytes + word - 1) / word;
}

static bool kernel_reaches(const void *to, const void *from, enum weft_direction direction) {
    if (direction < WEFT_TO_HOST)
        return true;
    return weft_gpu_memory_kind(to) != WEFT_MEMORY_HOST &&
           weft_gpu_memory_kind(from) != WEFT_MEMORY_HOST;
}

/* Gives each thread one word, until further blocks do not help; then more words. */
static int copy_by_threads(void *to, const void *from, size_t bytes, enum weft_direction direction,
                           weft_cu_stream stream) {
    size_t nwords = word_count(to, from, bytes);
    unsigned threads = weft_gpu_warps(nwords, THREADS);
    unsigned blocks =
        at_least_1_at_most((nwords + threads - 1) / threads, table[direction].blocks_max);
    void *arguments[] = {&to, &from, &bytes, NULL};
    return weft_gpu_launch(WEFT_KERNEL_weftk_copy, blocks, threads, stream, arguments);
}

static int copy_by_engine(char *to, const char *from, size_t bytes, weft_cu_stream stream) {
    int error = 0;
    for (size_t run; bytes > 0 && error == 0; to += run, from += run, bytes -= run) {
        run = weft_gpu_run(to, weft_gpu_run(from, bytes));
        error = weft_cuda.cuMemcpyAsync((uintptr_t)to, (uintptr_t)from, run, stream);
    }
    return weft_cuda_check(error, "cuMemcpyAsync");
}

/* A host waits for its own copies one by one, and launching a kernel costs it more (10.5 us) than
 * starting a copy engine (8 us). */
static enum weft_copy_engine engine_choose(enum weft_direction direction, size_t bytes,
                                           weft_cu_stream stream) {
    if (weft_engine_get() == WEFT_ENGINE_AUTO && weft_gpu_is_own_stream(stream))
        return WEFT_ENGINE_COPY;
    return weft_engine_choose(direction, bytes);
}

int weft_gpu_copy(void *to, const void *from, size_t bytes, enum weft_direction direction,
                  weft_cu_stream stream) {
    if (bytes == 0)
        return 0;
    /* A small word costs the multiprocessors as much as a large one. */
    size_t cost = word_count(to, from, bytes) * WORD_BYTES;
    if (engine_choose(direction, cost, stream) == WEFT_ENGINE_SM &&
        kernel_reaches(to, from, direction))
        return copy_by_threads(to, from, bytes, direction, stream);
    return copy_by_engine(to, from, bytes, stream);
}

int weft_gpu_copy_blocks(struct weft_array to, struct weft_array from, size_t bytes, size_t nblocks,
                         weft_cu_stream stream) {
    if (bytes == 0 || nblocks == 0)
        return 0;
    size_t threads_a_block = (bytes + 63) / 64; /* as weftk_copy_blocks divides the work */
    size_t threads = nblocks > SIZE_MAX / threads_a_block ? SIZE_MAX : nblocks * threads_a_block;
    void *arguments[] = {&to, &from, &bytes, &nblocks, NULL};
    return weft_gpu_launch(WEFT_KERNEL_weftk_copy_blocks,
                           at_least_1_at_most(threads / THREADS + 1, table[WEFT_WITHIN].blocks_max),
                           THREADS, stream, arguments);
}
