/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: blocks of GPU memory through the public calls: a block that members share stays
 * valid at its address when its owner frees it, after shmem_finalize, and in a later job; if one
 * member passes a block in host memory, all get an error; after the end the memory can be freed.
 * PEs: 1 2 3 4 */
#include "on_stream.h"
#include <errno.h>

enum { PART = 30000, ROUNDS = 3 };

static int me, npes;
static int all[16];

static shmemx_block_t new_block(shmemx_space_t space) {
    shmemx_block_t block = NULL;
    ON(block_alloc(space, (size_t)PART * (size_t)npes, &block));
    return block;
}

static shmemx_share_t attach(shmemx_block_t block, uint64_t tag) {
    shmemx_share_t share = NULL;
    ON(share_attach(block, all, npes, tag, &share));
    return share;
}

static uint64_t key(int round, int from, int to) {
    return (uint64_t)(round * 10000 + from * 100 + to);
}

static void write_to_all(shmemx_share_t share, int round) {
    for (int pe = 0; pe < npes; pe++)
        gpu_write((char *)shmemx_share_ptr(share, pe) + (size_t)me * PART,
                  gpu_data(PART, key(round, me, pe)), PART);
    shmem_barrier_all();
}

static void expect_all(const char *at, int round) {
    for (int pe = 0; pe < npes; pe++)
        gpu_expect(at + (size_t)pe * PART, gpu_data(PART, key(round, pe, me)), PART,
                   "from PE %d in round %d", pe, round);
}

static void spaces_that_differ(void) {
    shmemx_block_t block = new_block(me == npes - 1 ? SHMEMX_SPACE_HOST : SHMEMX_SPACE_DEVICE);
    shmemx_share_t share = NULL;
    int rc = shmemx_share_attach(block, all, npes, 1, &share);
    if (npes == 1)
        EXPECT(rc == 0, "%d: %s", rc, weft_last_error());
    else
        EXPECT(rc == -EINVAL && strstr(weft_last_error(), "of host memory and that of PE 0") &&
                   strstr(weft_last_error(), "of device memory: pass"),
               "%d: %s", rc, weft_last_error());
    shmemx_share_release(share);
    shmemx_block_free(block);
}

/* The owner's address, too. */
static void freed_by_its_owner(void) {
    shmemx_block_t block = new_block(SHMEMX_SPACE_DEVICE);
    shmemx_share_t share = attach(block, 2);
    char *at = shmemx_block_ptr(block);
    write_to_all(share, 20);
    shmemx_block_free(block);
    EXPECT(!shmemx_block_find(at) && shmemx_share_ptr(share, me) == at, "%p", (void *)at);
    expect_all(at, 20);
    shmem_barrier_all();
    write_to_all(share, 21);
    expect_all(at, 21);
    shmemx_share_release(share);
    gpu_enter();
    EXPECT(!gpu_is_device(at), "%p is mapped still", (void *)at);
    gpu_leave();
}

/* Only the library holds the context meanwhile. */
static void end_the_job(void) {
    GPU(cuDevicePrimaryCtxRelease(gpu_device));
    shmem_finalize();
    GPU(cuDevicePrimaryCtxRetain(&gpu_context, gpu_device));
    gpu_stream = gpu_stream_new();
}

static void through_jobs(void) {
    shmemx_block_t block = new_block(SHMEMX_SPACE_DEVICE), late = new_block(SHMEMX_SPACE_DEVICE);
    shmemx_share_t share = attach(block, 3);
    char *at = shmemx_block_ptr(block);
    for (int round = 0; round < ROUNDS; round++) {
        write_to_all(share, round);
        end_the_job();
        expect_all(at, round);
        EXPECT(shmemx_block_find(at + PART - 1) == block, "still found");
        if (round == ROUNDS - 1)
            break;
        shmem_init();
        shmemx_share_t again = attach(block, 3), other = attach(late, 4 + (uint64_t)round);
        EXPECT(again == share, "still the same");
        write_to_all(other, round);
        expect_all(shmemx_block_ptr(late), round);
        shmemx_share_release(again);
        shmem_barrier_all();
        shmemx_share_release(other);
    }
    shmemx_block_free(block);
    expect_all(at, ROUNDS - 1);
    shmemx_share_release(share);
    shmemx_block_free(late);
    gpu_enter();
    EXPECT(!gpu_is_device(at), "%p is mapped still", (void *)at);
    gpu_leave();
}

int main(void) {
    shmem_init();
    gpu_start();
    npes = shmem_n_pes();
    me = shmem_my_pe();
    for (int pe = 0; pe < npes; pe++)
        all[pe] = pe;
    tap_case("a block of the host among blocks of GPUs");
    spaces_that_differ();
    tap_case("a block that its owner frees");
    freed_by_its_owner();
    tap_case("through several jobs");
    through_jobs();
    return tap_finish();
}
