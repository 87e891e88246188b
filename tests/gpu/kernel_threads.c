/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the pretended driver runs the blocks and threads of kernels that ask for it: each
 * has its number, a block's memory is its own, barriers hold all threads of a block, polling
 * threads let others run, no more blocks are resident than the GPU has multiprocessors, stores
 * arrive late if that is wanted, warps meet, bulk copies end no earlier than they have to, and a
 * trap of one thread ends them all. PEs: 1 */
#include "gpu.h"
#include "own_memory.h"
#include "driver/probe.h"
#include <time.h>

enum { SMS = 8, BLOCKS = 24, THREADS = 96, ALL = BLOCKS * THREADS, TRAPPED = 719 };

static weft_cu_module module;
static uint32_t *words, found[ALL + 2];

static void launch(const char *name, unsigned blocks, unsigned threads, void **arguments) {
    weft_cu_function function;
    gpu_enter();
    GPU(cuModuleGetFunction(&function, module, name));
    GPU(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, gpu_stream, arguments, NULL));
    gpu_leave();
}

static void zero(void) {
    memset(found, 0, sizeof found);
    gpu_write(words, found, sizeof found);
}

static void numbers_and_barriers(void) {
    tap_case("every thread has its number, every block its memory, and a barrier holds all");
    void *out = words;
    zero();
    launch("probe_shift", BLOCKS, THREADS, (void *[]){&out});
    gpu_drain(gpu_stream);
    gpu_copy(found, words, sizeof found);
    for (uint32_t i = 0; i < ALL; i++) {
        uint32_t block = i / THREADS, expected = block * THREADS + (i % THREADS + 1) % THREADS;
        EXPECT(found[i] == expected, "thread %u found %u, not %u", i, found[i], expected);
    }
}

/* Threads in the order of their numbers would be no test. */
static void crowd(void) {
    tap_case("threads that poll let others run, in an order drawn at random");
    uint32_t all = SMS * THREADS, in_order = 0;
    void *come = words, *order = words + 1;
    zero();
    launch("probe_crowd", SMS, THREADS, (void *[]){&come, &all, &order});
    gpu_drain(gpu_stream);
    gpu_copy(found, words, sizeof found);
    EXPECT(found[0] == all, "%u of %u threads have come", found[0], all);
    for (uint32_t i = 0; i < all; i++)
        in_order += found[1 + i] == i;
    EXPECT(in_order < all / 4, "%u threads came in their order", in_order);
}

static void resident(void) {
    tap_case("as many blocks run at once as there are multiprocessors");
    void *now = words, *most = words + 1;
    zero();
    launch("probe_resident", BLOCKS, 2, (void *[]){&now, &most});
    gpu_drain(gpu_stream);
    gpu_copy(found, words, sizeof found);
    EXPECT(found[0] == 0 && found[1] == SMS, "%u run on, %u at once", found[0], found[1]);
}

/* The first blocks wait for a block that begins when they have ended. */
static void no_progress(void) {
    tap_case("a grid that is not resident as a whole does not meet");
    uint32_t all = (SMS + 1) * 2;
    void *come = words, *order = words + 1;
    zero();
    launch("probe_crowd", SMS + 1, 2, (void *[]){&come, &all, &order});
    gpu_enter();
    struct timespec pause = {0, 100000000};
    nanosleep(&pause, NULL);
    bool ended = gpu.cuStreamQuery(gpu_stream) == 0;
    weft_cu_stream other = NULL;
    GPU(cuStreamCreateWithPriority(&other, WEFT_CU_STREAM_NON_BLOCKING, 0));
    GPU(cuStreamWriteValue32(other, (weft_cu_address)words, all, WEFT_CU_WRITE_ORDERED));
    GPU(cuStreamSynchronize(gpu_stream));
    GPU(cuStreamDestroy(other));
    gpu_leave();
    EXPECT(!ended, "%d blocks have met", SMS + 1);
}

/* In host memory: a block sees stores to a GPU's own memory after a barrier. */
static struct {
    _Alignas(16) uint64_t words[64];
    _Alignas(16) uint32_t quad[4];
    uint32_t data[64], flag[2], missing, torn, next, stale[64];
} host;

static void send_messages(uint32_t ordered) {
    void *data = host.data, *flag = host.flag, *missing = &host.missing, *torn = &host.torn;
    void *words = host.words, *quad = host.quad, *next = &host.next, *stale = host.stale;
    memset(&host, 0, sizeof host);
    launch("probe_message", 2, 64, (void *[]){&data, &flag, &ordered, &missing});
    launch("probe_stale", 2, 64, (void *[]){&words, &next, &ordered, &stale});
    launch("probe_torn", 2, 1, (void *[]){&quad, &torn});
    gpu_drain(gpu_stream);
}

static void weak_memory(void) {
    tap_case(
        "stores come late and torn, loads early; but not across what is released and acquired");
    gpu_enter();
    GPU(cuMemHostRegister(&host, sizeof host, 0));
    gpu_leave();
    for (uint32_t weak = 0; weak < 2; weak++)
        for (uint32_t ordered = 0; ordered < 2; ordered++) {
            setenv("WEFT_FAKE_WEAK", weak ? "1" : "0", 1);
            send_messages(ordered);
            uint32_t stale = 0;
            for (int i = 0; i < 64; i++)
                stale += host.stale[i];
            EXPECT((host.missing > 0) == (weak && !ordered), "%u words missing, weak %u ordered %u",
                   host.missing, weak, ordered);
            EXPECT((stale > 0) == (weak && !ordered), "%u loads stale, weak %u ordered %u", stale,
                   weak, ordered);
            EXPECT((host.torn > 0) == weak, "%u quads torn, weak %u", host.torn, weak);
        }
    unsetenv("WEFT_FAKE_WEAK");
}

static void warps(void) {
    tap_case("lanes of a warp meet, also of one that is not whole");
    void *out = words;
    zero();
    launch("probe_warp", 2, THREADS - 8, (void *[]){&out});
    gpu_drain(gpu_stream);
    gpu_copy(found, words, sizeof found);
    for (uint32_t i = 0; i < 2 * (THREADS - 8); i++) {
        uint32_t id = i % (THREADS - 8);
        uint32_t lanes = id / 32 == 2 ? 24 : 32, expected = id % 32 ? 2 * id - 1 : lanes;
        EXPECT(found[i] == expected, "thread %u found %u, not %u", i, found[i], expected);
    }
}

static void warp_messages(void) {
    tap_case("what lanes store is behind the release of one of them, if they meet before");
    setenv("WEFT_FAKE_WEAK", "1", 1);
    for (uint32_t synced = 0; synced < 2; synced++) {
        void *data = host.data, *flag = host.flag, *missing = &host.missing;
        memset(&host, 0, sizeof host);
        launch("probe_warp_message", 2, 32, (void *[]){&data, &flag, &synced, &missing});
        gpu_drain(gpu_stream);
        EXPECT((host.missing > 0) == !synced, "%u words missing, synced %u", host.missing, synced);
    }
    unsetenv("WEFT_FAKE_WEAK");
}

static void bulk_copies(void) {
    tap_case("bulk copies are late, but for those who do all that they have to");
    for (uint32_t weak = 0; weak < 2; weak++)
        for (uint32_t without = PROBE_NOTHING; without < PROBE_KINDS; without++) {
            void *data = host.words, *flag = host.flag, *missing = &host.missing;
            setenv("WEFT_FAKE_WEAK", weak ? "1" : "0", 1);
            memset(&host, 0, sizeof host);
            launch("probe_bulk", 2, PROBE_TILE, (void *[]){&data, &flag, &without, &missing});
            gpu_drain(gpu_stream);
            bool lacks = weak && without != PROBE_NOTHING;
            if (weak || without != PROBE_MBARRIER)
                EXPECT((host.missing > 0) == lacks, "%u words missing, weak %u, without %u",
                       host.missing, weak, without);
        }
    unsetenv("WEFT_FAKE_WEAK");
}

static void trap(void) {
    tap_case("a trap of one thread ends the kernel, and the context is of no more use");
    void *word = words;
    zero();
    launch("probe_trap_one", SMS, THREADS, (void *[]){&word});
    gpu_enter();
    int error = gpu.cuStreamSynchronize(gpu_stream);
    gpu_leave();
    EXPECT(error == TRAPPED, "the kernel came to %d", error);
}

static const char *start(void) {
    char sms[12];
    snprintf(sms, sizeof sms, "%d", SMS);
    setenv("WEFT_FAKE_SMS", sms, 1);
    tap_start(0);
    const char *missing = gpu_load();
    if (missing || !gpu_is_pretended())
        return missing ? missing : "this machine's GPU is a real one";
    GPU(cuDevicePrimaryCtxRetain(&gpu_context, gpu_device));
    gpu_stream = gpu_stream_new();
    gpu_enter();
    GPU(cuModuleLoadData(&module, "any"));
    gpu_leave();
    words = (uint32_t *)own_memory(sizeof found);
    return NULL;
}

int main(void) {
    const char *missing = start();
    if (missing) {
        printf("1..0 # SKIP %s\n", missing);
        return 0;
    }
    numbers_and_barriers();
    crowd();
    resident();
    no_progress();
    weak_memory();
    warps();
    warp_messages();
    bulk_copies();
    trap();
    return tap_finish();
}
