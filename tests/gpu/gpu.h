/* SPDX-License-Identifier: BSD-3-Clause */
/* Code shared by tests of GPU memory: the driver without the library under test, data that any PE
 * can tell of any other, poison, and comparison through copies.
 *
 *   int main(void) {
 *       shmem_init();
 *       gpu_start();                    // ends the program with the reason where there is no GPU
 *       tap_case("a put arrives");
 *       gpu_write(p, gpu_data(bytes, key), bytes); // key: what data this is, such as PE and round
 *       ...
 *       gpu_expect(q, gpu_data(bytes, other_key), bytes, "put of %zu bytes", bytes);
 *       return gpu_finish();
 *   }
 *
 * In `make check` the driver is the pretended one (tests/gpu/driver), in `make check-gpu` the
 * machine's (GPU_REQUIRED in the environment: no GPU is a failure). A PE's GPU is PE modulo the
 * number of GPUs, as the library has it. The test's own context is current within these functions
 * only, so that the library must see to its own. */
#ifndef TESTS_GPU_GPU_H
#define TESTS_GPU_GPU_H

#include "base/cuda.h"
#include "tap.h"
#include <dlfcn.h>
#include <shmemx.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { GPU_POISON = 0xee };

static struct weft_cuda gpu; /* the driver's calls */
static weft_cu_device gpu_device;
static weft_cu_context gpu_context;
static weft_cu_stream gpu_stream; /* non-blocking, the tests' own */
static int gpu_count;
static uint64_t gpu_seed; /* equal on all PEs, new in each run; GPU_SEED sets it */

/* A call of the driver that must not fail. */
#define GPU(call)                                                                          \
    do {                                                                                   \
        int gpu_error = gpu.call;                                                          \
        if (gpu_error) {                                                                   \
            const char *gpu_text = "";                                                     \
            gpu.cuGetErrorName(gpu_error, &gpu_text);                                      \
            fprintf(stderr, "# PE %d: %s:%d: %s: %s\n", tap_pe, __FILE__, __LINE__, #call, \
                    gpu_text);                                                             \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

/* --- Beginning and end -------------------------------------------------------------------------
 */

/* Returns NULL, or the reason why there is no GPU to test. */
static inline const char *gpu_load(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver)
        return "there is no CUDA driver here";
#define GPU_FIND(name, exported, arguments)        \
    *(void **)&gpu.name = dlsym(driver, exported); \
    if (!gpu.name)                                 \
        return "the CUDA driver is too old: it has no " exported;
    WEFT_CUDA_CALLS(GPU_FIND)
#undef GPU_FIND
    if (gpu.cuInit(0) || gpu.cuDeviceGetCount(&gpu_count) || gpu_count < 1)
        return "the CUDA driver sees no GPU";
    return NULL;
}

static inline bool gpu_is_pretended(void) {
    char name[64] = "";
    gpu.cuDeviceGetName(name, sizeof name, gpu_device);
    return strncmp(name, "Pretended", 9) == 0;
}

/* How often to repeat something: a few times on pretended GPUs, unless WEFT_TEST_LONG is set. */
static inline int gpu_rounds(int all, int few) {
    return gpu_is_pretended() && !getenv("WEFT_TEST_LONG") ? few : all;
}

/* The same for a test whose PEs wait for each other, equal on all of them: PEs that share a GPU
 * alternate by time slices. */
static inline int gpu_rounds_together(int all, int few) {
    return shmem_n_pes() > gpu_count ? few : gpu_rounds(all, few);
}

/* The test's context is current in between. */
static inline void gpu_enter(void) {
    GPU(cuCtxPushCurrent(gpu_context));
}
static inline void gpu_leave(void) {
    GPU(cuCtxPopCurrent(&gpu_context));
}

/* Returns the free bytes of this GPU, while no PE allocates or frees any. Collective. */
static inline size_t gpu_memory_left(void) {
    size_t available, total;
    shmem_barrier_all();
    gpu_enter();
    GPU(cuMemGetInfo(&available, &total));
    gpu_leave();
    shmem_barrier_all();
    return available;
}

/* Limits the free memory of the last PE's pretended GPU to `mib`, until WEFT_FAKE_MEMORY_MB is
 * unset. */
static inline void gpu_memory_limit(size_t mib) {
    size_t available, total;
    char all[24];
    gpu_enter();
    GPU(cuMemGetInfo(&available, &total));
    gpu_leave();
    snprintf(all, sizeof all, "%zu", ((total - available) >> 20) + mib);
    if (shmem_my_pe() == shmem_n_pes() - 1)
        setenv("WEFT_FAKE_MEMORY_MB", all, 1);
}

/* The last PE, then the first ones, except one of four or more: members that are no arithmetic
 * progression. */
static inline shmem_team_t gpu_list_team(void) {
    int n = shmem_n_pes(), self = shmem_my_pe(), count = n < 4 ? n : n - 1, in = 0;
    int pes[64];
    for (int i = 0; i < count; i++) {
        pes[i] = (n - 1 + i) % n;
        in |= pes[i] == self;
    }
    shmem_team_t team = SHMEM_TEAM_INVALID;
    if (in && shmemx_team_create(pes, count, 0, &team) != 0)
        shmem_global_exit(1);
    return team;
}

static inline weft_cu_stream gpu_stream_new(void) {
    weft_cu_stream stream;
    gpu_enter();
    GPU(cuStreamCreateWithPriority(&stream, WEFT_CU_STREAM_NON_BLOCKING, 0));
    gpu_leave();
    return stream;
}

/* Waits until all work given to the stream is done. */
static inline void gpu_drain(weft_cu_stream stream) {
    gpu_enter();
    GPU(cuStreamSynchronize(stream));
    gpu_leave();
}

static inline uint64_t gpu_agreed_seed(void) {
    static uint64_t mine, agreed;
    const char *wanted = getenv("GPU_SEED");
    if (wanted)
        mine = strtoull(wanted, NULL, 0);
    else if (getrandom(&mine, sizeof mine, 0) != sizeof mine)
        exit(1);
    shmem_barrier_all();
    shmem_getmem(&agreed, &mine, sizeof agreed, 0);
    shmem_barrier_all();
    return agreed;
}

/* Ends a test that this machine's GPUs are not made for. */
static inline void gpu_skip(const char *reason) {
    if (shmem_my_pe() == 0)
        printf("1..0 # SKIP %s\n", reason);
    shmem_finalize();
    exit(0);
}

/* With the pretended driver, a missing GPU is a failure. */
static inline void gpu_miss(const char *reason) {
    if (!getenv("GPU_REQUIRED"))
        gpu_skip(reason);
    if (shmem_my_pe() == 0)
        printf("Bail out! %s\n", reason);
    shmem_finalize();
    exit(1);
}

/* After shmem_init. Collective. */
static inline void gpu_start(void) {
    tap_start(shmem_my_pe());
    const char *reason = gpu_load();
    if (reason)
        gpu_miss(reason);
    GPU(cuDeviceGet(&gpu_device, tap_pe % gpu_count));
    GPU(cuDevicePrimaryCtxRetain(&gpu_context, gpu_device));
    gpu_stream = gpu_stream_new();
    gpu_seed = gpu_agreed_seed();
    if (tap_pe == 0)
        printf("# GPU_SEED=%#llx, %d GPU%s\n", (unsigned long long)gpu_seed, gpu_count,
               gpu_count == 1 ? "" : "s");
}

static inline int gpu_finish(void) {
    int failed = tap_finish();
    gpu_drain(gpu_stream);
    shmem_finalize();
    return failed;
}

/* --- Data --------------------------------------------------------------------------------------
 */

static inline uint64_t gpu_mix(uint64_t x) { /* splitmix64 */
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* A number of this run below `limit`. */
static inline uint64_t gpu_draw(uint64_t key, uint64_t limit) {
    return gpu_mix(gpu_seed ^ gpu_mix(key)) % limit;
}

/* Random bytes, equal on all PEs for equal keys. */
static inline void gpu_fill(void *to, size_t bytes, uint64_t key) {
    uint64_t state = gpu_mix(gpu_seed ^ gpu_mix(key));
    unsigned char *out = (unsigned char *)to;
    for (size_t at = 0; at < bytes; at += 8) {
        uint64_t word = gpu_mix(state + at);
        memcpy(out + at, &word, bytes - at < 8 ? bytes - at : 8);
    }
}

/* Like gpu_fill, into a buffer that the 32nd caller from now reuses. */
static inline const void *gpu_data(size_t bytes, uint64_t key) {
    static unsigned char *kept[32];
    static unsigned next;
    unsigned char **data = &kept[next++ % 32];
    *data = (unsigned char *)realloc(*data, bytes + 8);
    if (!*data)
        exit(1);
    gpu_fill(*data, bytes, key);
    return *data;
}

/* --- To the GPU and back: complete on return ----------------------------------------------------
 */

static inline bool gpu_is_device(const void *p) {
    unsigned kind = 0;
    return !gpu.cuPointerGetAttribute(&kind, WEFT_CU_POINTER_MEMORY_TYPE, (weft_cu_address)p) &&
           kind == WEFT_CU_POINTER_TO_DEVICE;
}

/* Copies between addresses of the host with the processor: the library may have registered them in
 * pieces, and the driver copies no range that lies in two. */
static inline void gpu_copy(void *to, const void *from, size_t bytes) {
    gpu_enter();
    if (!gpu_is_device(to) && !gpu_is_device(from)) {
        memcpy(to, from, bytes);
    } else {
        GPU(cuMemcpyAsync((weft_cu_address)to, (weft_cu_address)from, bytes, gpu_stream));
        GPU(cuStreamSynchronize(gpu_stream));
    }
    gpu_leave();
}

static inline void gpu_write(void *to, const void *from, size_t bytes) {
    gpu_copy(to, from, bytes);
}

/* In either space. */
static inline void gpu_poison(void *at, size_t bytes) {
    unsigned char *poison = (unsigned char *)malloc(bytes + 1);
    if (!poison)
        exit(1);
    memset(poison, GPU_POISON, bytes);
    gpu_copy(at, poison, bytes);
    free(poison);
}

/* Returns how many of the bytes at p, in either space, are as expected from the first one on. */
static inline size_t gpu_equal(const void *p, const void *expected, size_t bytes,
                               unsigned char *wrong) {
    unsigned char *found = (unsigned char *)malloc(bytes + 1);
    if (!found)
        exit(1);
    gpu_copy(found, p, bytes);
    size_t equal = 0;
    while (equal < bytes && found[equal] == ((const unsigned char *)expected)[equal])
        equal++;
    *wrong = found[equal < bytes ? equal : 0];
    free(found);
    return equal;
}

__attribute__((format(printf, 4, 5))) static inline void gpu_expect(const void *p,
                                                                    const void *expected,
                                                                    size_t bytes, const char *what,
                                                                    ...) {
    unsigned char wrong;
    char text[256];
    size_t equal = gpu_equal(p, expected, bytes, &wrong);
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(text, sizeof text, what, arguments);
    va_end(arguments);
    EXPECT(equal == bytes, "%s: byte %zu of %zu is %#x%s, not %#x", text, equal, bytes, wrong,
           wrong == GPU_POISON ? " (poison)" : "", ((const unsigned char *)expected)[equal]);
}

/* Expects that nothing has been written there since gpu_poison. */
static inline void gpu_expect_poison(const void *p, size_t bytes, const char *what) {
    unsigned char wrong, *poison = (unsigned char *)malloc(bytes + 1);
    if (!poison)
        exit(1);
    memset(poison, GPU_POISON, bytes);
    size_t equal = gpu_equal(p, poison, bytes, &wrong);
    EXPECT(equal == bytes, "%s: byte %zu has been written: %#x", what, equal, wrong);
    free(poison);
}

#endif
