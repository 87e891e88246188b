/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: with SHMEMX_ENGINE_COPY, puts, gets and all-gathers in place complete while a kernel
 * holds every multiprocessor of every GPU, so no other kernel could run. The transfers between
 * members of other all-gathers and all-to-alls complete as well; a member's own block is copied by
 * a kernel of the driver. Only on real GPUs, one for each PE. PEs: 2 4 */
#include "on_stream.h"
#include <time.h>

enum { BYTES = 4 << 20, MEMBERS = 4 };

/* Every thread waits until the word is not 0. */
static const char hold_ptx[] = ".version 7.0\n"
                               ".target sm_80\n"
                               ".address_size 64\n"
                               ".visible .entry hold(.param .u64 word)\n"
                               "{\n"
                               "    .reg .u64 %rd<2>;\n"
                               "    .reg .u32 %r<2>;\n"
                               "    .reg .pred %p<2>;\n"
                               "    ld.param.u64 %rd1, [word];\n"
                               "again:\n"
                               "    nanosleep.u32 1000;\n"
                               "    ld.volatile.global.u32 %r1, [%rd1];\n"
                               "    setp.eq.u32 %p1, %r1, 0;\n"
                               "    @%p1 bra again;\n"
                               "    ret;\n"
                               "}\n";

static weft_cu_function hold_kernel;
static weft_cu_stream holding, releasing;
static uint32_t *word; /* device heap */
static uint64_t *signal_word;
static unsigned char *source, *dest;
static int me, npes, right;

static void rest(long milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* Returns whether the stream drains within that time. */
static bool drains(weft_cu_stream stream, int milliseconds) {
    int error = WEFT_CU_NOT_READY;
    gpu_enter();
    for (int i = 0; i <= milliseconds && error == WEFT_CU_NOT_READY; i++) {
        error = gpu.cuStreamQuery(stream);
        rest(1);
    }
    gpu_leave();
    return error == WEFT_CU_SUCCESS;
}

/* Blocks of 512 threads fill an SM of any GPU; there are more of them than can run at once. */
static void hold(void) {
    int sms = 0;
    void *arguments[] = {&word};
    uint32_t zero = 0;
    gpu_write(word, &zero, sizeof zero);
    shmem_barrier_all();
    gpu_enter();
    GPU(cuDeviceGetAttribute(&sms, WEFT_CU_DEVICE_SMS, gpu_device));
    GPU(cuLaunchKernel(hold_kernel, 4 * (unsigned)sms, 1, 1, 512, 1, 1, 0, holding, arguments,
                       NULL));
    gpu_leave();
    rest(100);
    shmem_barrier_all();
}

static void release(void) {
    gpu_enter();
    GPU(cuStreamWriteValue32(releasing, (weft_cu_address)word, 1, WEFT_CU_WRITE_ORDERED));
    GPU(cuStreamSynchronize(holding));
    GPU(cuStreamSynchronize(gpu_stream));
    gpu_leave();
    shmem_barrier_all();
}

static uint64_t key_of(int round, int pe, int block) {
    return (uint64_t)((round * 64 + pe) * 64 + block + 1);
}

static void prepare(int round) {
    gpu_poison(dest, (size_t)BYTES * (size_t)npes);
    for (int k = 0; k < npes; k++)
        gpu_write(source + (size_t)k * BYTES, gpu_data(BYTES, key_of(round, me, k)), BYTES);
}

/* Returns whether the enqueued work completes while all multiprocessors are held. */
static bool while_held(void (*enqueue)(void), int round) {
    prepare(round);
    hold();
    enqueue();
    bool done = drains(gpu_stream, 2000);
    shmem_barrier_all();
    release();
    return done;
}

/* Returns how many members' blocks are in dest while all multiprocessors are held. */
static int blocks_while_held(void (*enqueue)(void), int round, bool by_member) {
    static unsigned char found[MEMBERS][BYTES];
    int blocks = 0;
    prepare(round);
    hold();
    enqueue();
    drains(gpu_stream, 2000);
    gpu_enter();
    GPU(cuMemcpyAsync((weft_cu_address)found, (weft_cu_address)dest, (size_t)npes * BYTES,
                      releasing));
    GPU(cuStreamSynchronize(releasing));
    gpu_leave();
    shmem_barrier_all();
    release();
    for (int i = 0; i < npes; i++)
        blocks += i != me && memcmp(found[i], gpu_data(BYTES, key_of(round, i, by_member ? me : 0)),
                                    BYTES) == 0;
    return blocks;
}

static void kernel(void) {
    ON(signal_op_on_stream(signal_word, 1, SHMEM_SIGNAL_SET, me, gpu_stream));
}
static void put(void) {
    ON(putmem_on_stream(dest, source, BYTES, right, gpu_stream));
}
static void get(void) {
    ON(getmem_on_stream(dest, source, BYTES, right, gpu_stream));
}
static void to_host_and_back(void) {
    static unsigned char bytes[BYTES];
    ON(getmem_on_stream(bytes, source, BYTES, right, gpu_stream));
    ON(putmem_on_stream(dest, bytes, BYTES, right, gpu_stream));
}
/* The member's own block is in its place. */
static void gather_in_place(void) {
    unsigned char *own = source + (size_t)me * BYTES;
    ON(fcollectmem_on_stream(SHMEM_TEAM_WORLD, source, own, BYTES, gpu_stream));
}
static void gather(void) {
    ON(fcollectmem_on_stream(SHMEM_TEAM_WORLD, dest, source, BYTES, gpu_stream));
}
static void alltoall(void) {
    ON(alltoallmem_on_stream(SHMEM_TEAM_WORLD, dest, source, BYTES, gpu_stream));
}

static void copies(void) {
    int left = (me + npes - 1) % npes;
    tap_case("a put");
    EXPECT(while_held(put, 1), "waited for a multiprocessor");
    gpu_expect(dest, gpu_data(BYTES, key_of(1, left, 0)), BYTES, "put");
    tap_case("a get");
    EXPECT(while_held(get, 2), "waited for a multiprocessor");
    gpu_expect(dest, gpu_data(BYTES, key_of(2, right, 0)), BYTES, "get");
    tap_case("a get to host memory, and a put from there");
    EXPECT(while_held(to_host_and_back, 3), "waited for a multiprocessor");
    gpu_expect(dest, gpu_data(BYTES, key_of(3, me, 0)), BYTES, "there and back");
}

static void collectives(void) {
    tap_case("an all-gather in place");
    EXPECT(while_held(gather_in_place, 4), "waited for a multiprocessor");
    for (int i = 0; i < npes; i++)
        gpu_expect(source + (size_t)i * BYTES, gpu_data(BYTES, key_of(4, i, i)), BYTES, "block %d",
                   i);
    tap_case("an all-gather");
    int blocks = blocks_while_held(gather, 5, false);
    EXPECT(blocks == npes - 1, "%d blocks came", blocks);
    for (int i = 0; i < npes; i++)
        gpu_expect(dest + (size_t)i * BYTES, gpu_data(BYTES, key_of(5, i, 0)), BYTES, "block %d",
                   i);
    tap_case("an all-to-all");
    blocks = blocks_while_held(alltoall, 6, true);
    EXPECT(blocks == npes - 1, "%d blocks came", blocks);
    for (int i = 0; i < npes; i++)
        gpu_expect(dest + (size_t)i * BYTES, gpu_data(BYTES, key_of(6, i, me)), BYTES, "block %d",
                   i);
}

static const char *reason_to_skip(void) {
    if (gpu_is_pretended())
        return "a pretended GPU has no multiprocessors";
    return gpu_count < shmem_n_pes() ? "there are fewer GPUs than PEs" : NULL;
}

static void make_all(void) {
    weft_cu_module module;
    gpu_enter();
    GPU(cuModuleLoadData(&module, hold_ptx));
    GPU(cuModuleGetFunction(&hold_kernel, module, "hold"));
    gpu_leave();
    holding = gpu_stream_new();
    releasing = gpu_stream_new();
    word = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, sizeof *word));
    signal_word = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, sizeof *signal_word));
    source = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, (size_t)BYTES * MEMBERS));
    dest = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, (size_t)BYTES * MEMBERS));
}

int main(void) {
    shmem_init();
    gpu_start();
    const char *reason = reason_to_skip();
    if (reason)
        gpu_skip(reason);
    me = shmem_my_pe(), npes = shmem_n_pes(), right = (me + 1) % npes;
    make_all();
    shmemx_set_engine(SHMEMX_ENGINE_COPY);
    kernel(); /* anything loaded at its first use must be loaded before */
    tap_case("a kernel has to wait: all multiprocessors are held");
    EXPECT(!while_held(kernel, 0), "it did not");
    copies();
    collectives();
    return gpu_finish();
}
