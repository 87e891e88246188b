/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels: the same sources, compiled for the host (device.h, kernel.h). They register themselves
 * when this library is loaded; the image from which a module is loaded is ignored. */
#ifndef TESTS_GPU_DRIVER_MODULE_H
#define TESTS_GPU_DRIVER_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* kernels may also be in the program (tests/gpu/runtime) */

struct kernel {
    const char *name;
    void *(*pack)(void **arguments);              /* a copy of them */
    bool (*reaches)(const void *packed, int gpu); /* all that its pointers point to */
    void (*run)(const void *packed);
    void (*drop)(void *packed);
    bool threads; /* all threads of a launch run; otherwise only one */
    struct kernel *next;
};

void kernel_register(struct kernel *kernel);

/* Which thread of a kernel runs in this thread of the host, in CUDA's words. */
struct kernel_dim {
    unsigned x, y, z;
};
static inline unsigned kernel_volume(struct kernel_dim size) {
    return size.x * size.y * size.z;
}
struct kernel_place {
    struct kernel_dim thread, block, threads, blocks;
};
extern __thread const struct kernel_place *kernel_place;

/* Lets other threads of the kernel run: until all threads of the block are here, and returns
 * whether any passed true; or for a while. */
bool kernel_block_sync(bool mine);
void kernel_yield(void);

/* Waits until all lanes of the warp that have not ended are here. Returns their values, by lane,
 * and in `lanes` a bit for each lane that has arrived. The values are valid until the thread's next
 * meeting. */
const uint64_t *kernel_warp_meet(uint64_t mine, uint32_t *lanes);

/* Set while a thread runs whose stores may be late (buffer.h) and loads early (cache.h): then it
 * has its memory by these. `order`: as C++ has it, __ATOMIC_*, or KERNEL_WEAK; kernel_order is a
 * fence, or the memory order before an atomic on `word`. */
extern __thread bool kernel_is_weak;
enum { KERNEL_WEAK = -1 };
uint64_t kernel_load(const void *at, unsigned bytes, int order);
void kernel_store(void *at, uint64_t value, unsigned bytes, int order);
void kernel_order(const void *word, int order);

/* Ends the kernel: an access that is not aligned to its size. */
__attribute__((noreturn)) void kernel_misaligned(const void *at, unsigned bytes);

/* Bulk copies, as their instructions are: addresses and sizes are multiples of 16, `shared` lies in
 * the block's own memory, and a commit and a wait concern the copies that this thread has begun: a
 * wait concerns all groups except the `newest` ones (async.h). */
enum kernel_bulk {
    KERNEL_BULK_PUT,
    KERNEL_BULK_ADD_F32,
    KERNEL_BULK_ADD_F16,
    KERNEL_BULK_ADD_BF16,
    KERNEL_BULK_ADD_U32,
    KERNEL_BULK_ADD_U64
};
void kernel_bulk_load(void *shared, const void *from, unsigned bytes, uint64_t *mbarrier);
void kernel_bulk_store(enum kernel_bulk kind, void *to, const void *shared, unsigned bytes);
void kernel_bulk_commit(void);
void kernel_bulk_wait(bool read, unsigned newest);

/* A box of a matrix that a map describes, whose first element is column x and row y: of 2-byte
 * elements, swizzled if the map says so. `both`: for both blocks of the cluster, and their
 * mbarriers. */
struct weft_cu_tensor_map;
void kernel_box_load(void *shared, const struct weft_cu_tensor_map *map, unsigned x, unsigned y,
                     uint64_t *mbarrier, bool both);
void kernel_box_store(const struct weft_cu_tensor_map *map, const void *shared, unsigned x,
                      unsigned y, bool add);

/* fence.proxy.async: between the threads' and the bulk copies' view of memory, for shared memory
 * only or global memory only. */
void kernel_fence_async(bool shared);

/* An mbarrier in the block's own memory. An arrival also adds the bytes to be loaded; a test
 * returns true when the phase of that parity is over. */
void kernel_mbarrier_init(uint64_t *mbarrier, unsigned count);
void kernel_mbarrier_expect(uint64_t *mbarrier, unsigned bytes);
bool kernel_mbarrier_test(const uint64_t *mbarrier, unsigned parity);
void kernel_mbarrier_arrive_at(uint64_t *mbarrier, unsigned rank);

/* Returns the block's own memory for the declaration at `site`. */
void *kernel_shared(void *site, size_t bytes);

/* Returns the block's dynamic shared memory, at a multiple of 1024. */
void *kernel_shared_dynamic(void);

/* Clusters: the block's number, and a wait for all threads of its blocks. */
unsigned kernel_cluster_rank(void);
void *kernel_cluster_address(void *shared, unsigned rank);
void kernel_cluster_sync(void);

/* Waits until this number of threads of the block are at the barrier. */
void kernel_named_sync(unsigned id, unsigned threads);
void kernel_named_arrive(unsigned id, unsigned threads); /* does not wait */

/* Waits for the four warps of a warpgroup, which begin products together. It orders no memory. */
void kernel_warpgroup_meet(void);

/* A warpgroup's products (wgmma.c): adds this thread's share of 64 x 16 by 16 x (2 * nsums)
 * elements to its sums. a and b are addresses divided by 16, of swizzled rows of 128 bytes: a row
 * of a, and a column of b, or if b is `by_rows` 64 columns in a row, in boxes of 64 rows. With weak
 * memory shared memory is read when the thread waits for the product. */
void kernel_product(float *sums, int nsums, uint64_t a, uint64_t b, bool keep, bool f16,
                    bool by_rows);
void kernel_product_commit(void);
void kernel_product_wait(unsigned newest);

/* Stores `count` matrices of 8 x 8 elements of 2 bytes to shared memory, as stmatrix does. */
void kernel_matrix_store(void *row, const uint32_t *elements, unsigned count);

/* Returns two rounded numbers. */
uint32_t kernel_pack(float first, float second, bool f16);

/* Returns whether a kernel on the GPU may access the memory at p. */
bool kernel_reaches(const void *p, int gpu);

/* Returns whether atomics of the kernel in this thread on this word are not atomic. */
bool kernel_tears(const void *word);

/* clock_gettime, for a kernel. */
int kernel_clock(clockid_t clock, struct timespec *now);

/* Ends the kernel that runs in this thread: the context fails. */
__attribute__((noreturn)) void kernel_trap(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
