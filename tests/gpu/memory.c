/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: allocation in either space: alignment, zeros, disjoint objects, contents after
 * realloc, freed memory that is reused or returned, growth by extents, addresses for the host and
 * for the GPU, NULL with text on every PE if nothing can be allocated; tensor calls refuse GPU
 * memory. PEs: 1 2 3 4 Far: cyclic:2 seed=7,reorder=16 */
#include "gpu/gpu.h"
#include <shmemx.h>
#include <stdint.h>
#include <weft.h>
#include "device/device.h"
#include "reach.h"

static int me, npes;
static long word;

static void expect_zero(const void *p, size_t bytes, const char *what) {
    unsigned char *zero = calloc(bytes, 1);
    gpu_expect(p, zero, bytes, "%s", what);
    free(zero);
}

/* A PE's objects have the same offsets as those of the others. */
static void expect_same_offset(const void *p, const void *base) {
    long mine = (long)((const char *)p - (const char *)base), all;
    word = mine;
    shmem_barrier_all();
    all = shmem_long_g(&word, 0);
    EXPECT(mine == all, "offset %ld here and %ld on PE 0", mine, all);
    shmem_barrier_all();
}

static void allocation(void) {
    static const size_t sizes[] = {1, 7, 64, 4096, 100000, 3 << 20};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    char *p[SIZES];
    for (int i = 0; i < SIZES; i++) {
        p[i] = shmemx_malloc(SHMEMX_SPACE_DEVICE, sizes[i]);
        EXPECT(p[i] && (uintptr_t)p[i] % 16 == 0, "%zu bytes at %p", sizes[i], (void *)p[i]);
        gpu_poison(p[i], sizes[i]);
        expect_same_offset(p[i], p[0]);
    }
    for (int i = 0; i < SIZES; i++)
        gpu_write(p[i], gpu_data(sizes[i], (uint64_t)i * 8 + 1), sizes[i]);
    for (int i = 0; i < SIZES; i++)
        gpu_expect(p[i], gpu_data(sizes[i], (uint64_t)i * 8 + 1), sizes[i], "%zu bytes", sizes[i]);
    for (int i = 0; i < SIZES; i++)
        shmem_free(p[i]);
    char *again = shmemx_malloc(SHMEMX_SPACE_DEVICE, 1);
    EXPECT(again == p[0], "what was freed is given out again");
    shmem_free(again);
    shmem_free(NULL);
}

static void zeros_and_alignment(void) {
    char *p = shmemx_calloc(SHMEMX_SPACE_DEVICE, 1001, 3);
    expect_zero(p, 3003, "calloc");
    gpu_poison(p, 3003);
    shmem_free(p);
    p = shmemx_calloc(SHMEMX_SPACE_DEVICE, 1, 3003);
    expect_zero(p, 3003, "calloc where others were");
    shmem_free(p);
    for (size_t alignment = 8; alignment <= 2 << 20; alignment *= 4) {
        p = shmemx_align(SHMEMX_SPACE_DEVICE, alignment, 100);
        char *host = shmemx_align(SHMEMX_SPACE_HOST, alignment, 100);
        EXPECT(p && (uintptr_t)p % alignment == 0, "%p for %zu", (void *)p, alignment);
        EXPECT(host && (uintptr_t)host % alignment == 0, "%p for %zu", (void *)host, alignment);
        memset(host, 1, 100);
        shmem_free(host);
        shmem_free(p);
    }
}

static void reallocation(void) {
    enum { SMALL = 5000, LARGE = 400000 };
    char *p = shmemx_malloc(SHMEMX_SPACE_DEVICE, SMALL);
    gpu_write(p, gpu_data(SMALL, 5), SMALL);
    char *other = shmemx_malloc(SHMEMX_SPACE_DEVICE, 64);
    char *grown = shmem_realloc(p, LARGE);
    gpu_expect(grown, gpu_data(SMALL, 5), SMALL, "grown");
    char *shrunk = shmem_realloc(grown, SMALL / 4);
    gpu_expect(shrunk, gpu_data(SMALL, 5), SMALL / 4, "shrunk");
    EXPECT(!shmem_realloc(shrunk, 0), "realloc to nothing");
    shmem_free(other);
}

static void addresses(void) {
    char *p = shmemx_malloc(SHMEMX_SPACE_DEVICE, 256), *heap = shmem_malloc(64), here;
    EXPECT(!shmem_ptr(p, me) && !shmem_ptr(p, (me + 1) % npes), "the host's");
    EXPECT(!shmemx_ptr(SHMEMX_SPACE_HOST, p, me), "the host's, by name");
    EXPECT(shmemx_ptr(SHMEMX_SPACE_DEVICE, p + 9, me) == p + 9, "the own GPU's");
    EXPECT(shmemx_ptr(SHMEMX_SPACE_HOST, heap, me) == heap, "the host's of the host heap");
    EXPECT(shmemx_ptr(SHMEMX_SPACE_DEVICE, heap, me) == heap, "the GPU's of the host heap");
    EXPECT(!shmemx_ptr(SHMEMX_SPACE_DEVICE, &here, me), "of the stack");
    EXPECT(!shmemx_ptr(SHMEMX_SPACE_DEVICE, p, npes) && !shmemx_ptr((shmemx_space_t)7, heap, me),
           "of nobody");
    EXPECT(shmem_addr_accessible(p, (me + 1) % npes) && !shmem_addr_accessible(p, npes),
           "accessible");
    char *theirs = shmemx_ptr(SHMEMX_SPACE_DEVICE, p, (me + 1) % npes);
    EXPECT((theirs != NULL) == reach_is_near((me + 1) % npes), "a peer's: %p", (void *)theirs);
    if (theirs)
        gpu_write(theirs, gpu_data(256, 40 + (uint64_t)me), 256);
    else
        shmem_putmem(p, gpu_data(256, 40 + (uint64_t)me), 256, (me + 1) % npes);
    shmem_barrier_all();
    gpu_expect(p, gpu_data(256, 40 + (uint64_t)((me + npes - 1) % npes)), 256, "a peer's store");
    shmem_barrier_all();
    shmem_free(heap);
    shmem_free(p);
}

static void nothing(void *p, const char *part) {
    EXPECT(!p && strstr(weft_last_error(), part), "%p, \"%s\"", p, weft_last_error());
    shmem_barrier_all();
}

static void refusals(void) {
    nothing(shmemx_malloc((shmemx_space_t)5, 8), "argument space is 5");
    nothing(shmemx_malloc(SHMEMX_SPACE_DEVICE, 0), "of no bytes");
    nothing(shmemx_calloc(SHMEMX_SPACE_DEVICE, SIZE_MAX / 2, 3), "more than memory has");
    nothing(shmemx_align(SHMEMX_SPACE_DEVICE, 24, 8), "argument alignment is 24");
    nothing(shmemx_align(SHMEMX_SPACE_DEVICE, 4, 8), "argument alignment is 4");
    nothing(shmemx_align(SHMEMX_SPACE_DEVICE, 4 << 20, 8), "argument alignment is");
    nothing(shmemx_malloc(SHMEMX_SPACE_DEVICE, SIZE_MAX / 2), "shmemx_malloc");
    nothing(shmemx_malloc(SHMEMX_SPACE_HOST, SIZE_MAX / 2), "shmemx_malloc of");
    void *p = shmemx_malloc(SHMEMX_SPACE_DEVICE, 100);
    EXPECT(p, "there is memory all the same");
    int error = weft_all_reduce(SHMEM_TEAM_WORLD, p, p, 4, WEFT_F32, WEFT_SUM, WEFT_STREAM_HOST);
    EXPECT(error < 0 && strstr(weft_last_error(), "GPU memory"), "%d, \"%s\"", error,
           weft_last_error());
    shmem_free(p);
}

static size_t heap_bytes(void) {
    return weft_window_bytes(&weft_device.heap.window);
}

static size_t gpu_available(void) {
    size_t available, total;
    gpu_enter();
    GPU(cuMemGetInfo(&available, &total));
    gpu_leave();
    return available;
}

/* Into the right PE, and back. */
static void expect_works(char *p, size_t bytes, uint64_t key) {
    static char got[1000];
    shmem_putmem(p + bytes - 1000, gpu_data(1000, key + (uint64_t)me), 1000, (me + 1) % npes);
    shmem_barrier_all();
    gpu_expect(p + bytes - 1000, gpu_data(1000, key + (uint64_t)(me + npes - 1) % (uint64_t)npes),
               1000, "what a peer has put");
    shmem_getmem(got, p + bytes - 1000, 1000, (me + 1) % npes);
    EXPECT(memcmp(got, gpu_data(1000, key + (uint64_t)me), 1000) == 0, "a get is wrong");
    shmem_barrier_all();
}

/* Much free memory at the end is returned by the next call, and allocated anew; a loop with one
 * size keeps its memory. */
static void comes_back(void) {
    enum { LARGE = 70 << 20 };
    char *kept = shmemx_malloc(SHMEMX_SPACE_DEVICE, 5000), *p;
    expect_works(kept, 5000, 100);
    size_t least = heap_bytes();
    for (int round = 0; round < 3; round++) {
        p = shmemx_malloc(SHMEMX_SPACE_DEVICE, LARGE);
        expect_works(p, LARGE, 200);
        size_t most = heap_bytes();
        EXPECT(most >= least + LARGE / 2, "%zu bytes, %zu before", most, least);
        size_t available = gpu_available();
        shmem_free(p);
        shmem_free(shmemx_malloc(SHMEMX_SPACE_DEVICE, 8));
        EXPECT(gpu_available() >= available + LARGE / 2, "%zu bytes, %zu before", gpu_available(),
               available);
        EXPECT(heap_bytes() <= least, "%zu bytes of %zu are left, %zu before", heap_bytes(), most,
               least);
        gpu_expect(kept + 4000, gpu_data(1000, 100 + (uint64_t)(me + npes - 1) % (uint64_t)npes),
                   1000, "what was there before");
    }
    p = shmemx_malloc(SHMEMX_SPACE_DEVICE, LARGE);
    size_t most = heap_bytes();
    for (int round = 0; round < 5; round++) {
        shmem_free(p);
        p = shmemx_malloc(SHMEMX_SPACE_DEVICE, LARGE);
        EXPECT(heap_bytes() == most, "%zu bytes, not %zu", heap_bytes(), most);
    }
    shmem_free(p);
    shmem_free(kept);
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    gpu_start();
    tap_case("objects of many sizes");
    allocation();
    tap_case("zeros and alignment");
    zeros_and_alignment();
    tap_case("realloc");
    reallocation();
    tap_case("addresses");
    addresses();
    tap_case("what is free goes back");
    comes_back();
    tap_case("what cannot be given");
    refusals();
    return gpu_finish();
}
