/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: one process with blocks on two GPUs: each block is on the requested GPU, is shared
 * like any other block, and can be used for meetings on streams of its own GPU; a job ends while
 * they exist, and the next job still has them. PEs: 1 2 3 */
#include "gpu/gpu.h"
#include <errno.h>
#include <shmemx.h>
#include <weft.h>

enum { GPUS = 2, PART = 30000, ROUNDS = 3, MIB = 1 << 20 };

/* A GPU as a program has it. */
static struct side {
    weft_cu_context context;
    weft_cu_stream stream;
} sides[GPUS];

static int me, npes, all[16];

static void enter(int g) {
    GPU(cuCtxPushCurrent(sides[g].context));
}

static void leave(void) {
    weft_cu_context context;
    GPU(cuCtxPopCurrent(&context));
}

static void copy(int g, void *to, const void *from, size_t bytes) {
    enter(g);
    GPU(cuMemcpyAsync((weft_cu_address)to, (weft_cu_address)from, bytes, sides[g].stream));
    GPU(cuStreamSynchronize(sides[g].stream));
    leave();
}

static shmemx_block_t new_block(int g, size_t bytes) {
    shmemx_block_t block = NULL;
    int rc = shmemx_block_alloc_on(g, bytes, &block);
    EXPECT(rc == 0, "GPU %d: %d, %s", g, rc, weft_last_error());
    EXPECT(shmemx_block_gpu(block) == g, "GPU %d: it lies on %d", g, shmemx_block_gpu(block));
    return block;
}

static shmemx_share_t attach(shmemx_block_t block, uint64_t tag) {
    shmemx_share_t share = NULL;
    int rc = shmemx_share_attach(block, all, npes, tag, &share);
    EXPECT(rc == 0, "%d, %s", rc, weft_last_error());
    return share;
}

static size_t available(int g) {
    size_t bytes = 0, total;
    enter(g);
    GPU(cuMemGetInfo(&bytes, &total));
    leave();
    return bytes;
}

static void places(void) {
    for (int g = 0; g < GPUS && npes == 1; g++) {
        size_t here = available(g), there = available(1 - g);
        shmemx_block_t block = new_block(g, 32 * MIB);
        EXPECT(here - available(g) >= 32 * MIB, "GPU %d gave %zu bytes", g, here - available(g));
        EXPECT(there == available(1 - g), "GPU %d gave some, too", 1 - g);
        shmemx_block_free(block);
    }
}

static uint64_t key(int g, int round, int from, int to) {
    return (uint64_t)(g * 1000000 + round * 10000 + from * 100 + to);
}

static void expect_part(int g, const char *at, int round, int from) {
    static unsigned char seen[PART];
    copy(g, seen, at, PART);
    EXPECT(memcmp(seen, gpu_data(PART, key(g, round, from, me)), PART) == 0,
           "from PE %d on GPU %d in round %d", from, g, round);
}

static void shares(void) {
    shmemx_block_t blocks[GPUS];
    shmemx_share_t share[GPUS];
    for (int g = 0; g < GPUS; g++) {
        blocks[g] = new_block(g, (size_t)PART * (size_t)npes);
        share[g] = attach(blocks[g], (uint64_t)g);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < GPUS * npes; i++) {
            int g = i % GPUS, pe = i / GPUS;
            copy(g, (char *)shmemx_share_ptr(share[g], pe) + (size_t)me * PART,
                 gpu_data(PART, key(g, round, me, pe)), PART);
        }
        shmem_barrier_all();
        for (int i = 0; i < GPUS * npes; i++)
            expect_part(i % GPUS,
                        (char *)shmemx_block_ptr(blocks[i % GPUS]) + (size_t)(i / GPUS) * PART,
                        round, i / GPUS);
        shmem_barrier_all();
    }
    for (int g = 0; g < GPUS; g++) {
        shmemx_block_free(blocks[g]);
        shmemx_share_release(share[g]);
    }
}

/* Pads of all members, and the list of them, in memory of one GPU; half each. */
static uint32_t **make_pads(int g, shmemx_block_t block, shmemx_share_t share) {
    char *list = (char *)shmemx_block_ptr(block) + 4096;
    uint32_t *pads[16];
    for (int pe = 0; pe < npes; pe++)
        pads[pe] = shmemx_share_ptr(share, pe);
    copy(g, list, pads, sizeof *pads * (size_t)npes);
    return (uint32_t **)(void *)list;
}

static void meet_on(int g, uint32_t **pads) {
    enter(g);
    int rc = shmemx_pad_barrier_on_stream(pads, me, npes, 0, 20000, sides[g].stream);
    leave();
    EXPECT(rc == 0, "GPU %d: %d, %s", g, rc, weft_last_error());
}

static void streams(void) {
    shmemx_block_t blocks[GPUS];
    shmemx_share_t share[GPUS];
    uint32_t **pads[GPUS], words[16];
    for (int g = 0; g < GPUS; g++) {
        blocks[g] = new_block(g, 8192);
        share[g] = attach(blocks[g], (uint64_t)(10 + g));
        pads[g] = make_pads(g, blocks[g], share[g]);
    }
    for (int i = 0; i < 2 * ROUNDS * GPUS; i++)
        meet_on(i % GPUS, pads[i % GPUS]);
    for (int g = 0; g < GPUS; g++) {
        copy(g, words, shmemx_block_ptr(blocks[g]), sizeof *words * (size_t)npes);
        for (int pe = 0; pe < npes; pe++)
            EXPECT(words[pe] == 0, "GPU %d: word %d is %u behind barriers", g, pe, words[pe]);
    }
    shmem_barrier_all();
    for (int g = 0; g < GPUS; g++) {
        shmemx_share_release(share[g]);
        shmemx_block_free(blocks[g]);
    }
}

static void refused(void) {
    shmemx_block_t block;
    const int wrong[] = {-1, 999};
    for (int i = 0; i < 2; i++) {
        int rc = shmemx_block_alloc_on(wrong[i], 64, &block);
        EXPECT(rc == -EINVAL && strstr(weft_last_error(), "argument gpu is"), "%d: %d, %s",
               wrong[i], rc, weft_last_error());
    }
}

static void begin(void) {
    me = shmem_my_pe();
    npes = shmem_n_pes();
    for (int pe = 0; pe < npes; pe++)
        all[pe] = pe;
}

static void next_job(void) {
    enum { WORDS = 8192 }; /* of pads, before the data */
    shmemx_block_t blocks[GPUS];
    for (int g = 0; g < GPUS; g++) {
        blocks[g] = new_block(g, WORDS + PART);
        copy(g, (char *)shmemx_block_ptr(blocks[g]) + WORDS, gpu_data(PART, key(g, 9, me, me)),
             PART);
    }
    shmem_finalize();
    shmem_init();
    begin();
    for (int g = GPUS; g-- > 0;) {
        expect_part(g, (char *)shmemx_block_ptr(blocks[g]) + WORDS, 9, me);
        shmemx_share_t share = attach(blocks[g], 99);
        meet_on(g, make_pads(g, blocks[g], share)); /* finalize waits for what is under way */
        EXPECT(shmemx_share_ptr(share, me) == shmemx_block_ptr(blocks[g]), "share of GPU %d", g);
        shmemx_block_free(blocks[g]);
        shmemx_share_release(share);
    }
}

int main(void) {
    shmem_init();
    gpu_start();
    begin();
    if (gpu_count < GPUS)
        gpu_skip("this machine has one GPU");
    for (int g = 0; g < GPUS; g++) {
        weft_cu_device device;
        GPU(cuDeviceGet(&device, g));
        GPU(cuDevicePrimaryCtxRetain(&sides[g].context, device));
        enter(g);
        GPU(cuStreamCreateWithPriority(&sides[g].stream, WEFT_CU_STREAM_NON_BLOCKING, 0));
        leave();
    }
    tap_case("a block lies on the GPU that it was asked for");
    places();
    tap_case("blocks on both GPUs are shared, and written to by all");
    shares();
    tap_case("streams of both GPUs meet on signal pads of their own");
    streams();
    tap_case("a GPU that is not there is refused");
    refused();
    tap_case("the next job has blocks on both GPUs still");
    next_job();
    return gpu_finish();
}
