// SPDX-License-Identifier: BSD-3-Clause
// The rows of calls inside kernels: the same kernels for each library, and their measurement.
// Before it is included a program defines `struct calls`, the library's functions on the device by
// the names used here, which kernels take by value; and it gives `rows_of_kernels` its memory and
// `launched`.
//
// What takes less than a launch is timed by the kernel itself, in rounds that depend on each other.
#ifndef BENCH_GPU_DEVICE_CUH
#define BENCH_GPU_DEVICE_CUH

#include "rows.h"

enum {
    WARM = 16, // rounds before the clock starts
    LINES = 64,
    LINE_BYTES = 128,
    PUT_THREADS = 1024,
    SHARED_BYTES = 6 << 15, // of a block that has a multiprocessor for itself
    RATE_BLOCKS = 16,
    RATE_THREADS = 256,
    ADDS = 256, // of a thread
    ADD_WORDS = 65536,
    MEETING_THREADS = 256,
    GRID_BLOCKS = 16,
    POISON = 0xa5
};
static const size_t PUT_BYTES = 256 << 20, TILE = 64 << 10;
static const size_t RATE_WORDS = 4 << 20;

// Of this PE: what kernels and their measurement work on. `words` are zeros at first.
static struct {
    struct calls calls;
    char *dest, *source;  // PUT_BYTES that peers reach
    uint64_t *words;      // ADD_WORDS, likewise
    uint64_t *ns, *wrong; // GPU memory of one's own
    int blocks, peer, rounds;
    uint64_t used; // values of signals up to here
    size_t bytes;
} args;

static void allocate_own() {
    CUDA(cudaMalloc(&args.ns, sizeof *args.ns));
    CUDA(cudaMalloc(&args.wrong, sizeof *args.wrong));
    CUDA(cudaMemset(args.wrong, 0, sizeof *args.wrong));
    args.peer = (me + 1) % npes;
    args.rounds = is_crowded() ? 2 * WARM : 1024;
}

static uint64_t read_word(const uint64_t *word) {
    uint64_t value;
    CUDA(cudaMemcpy(&value, word, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}

// A wrong result takes the place of a figure, and shows in the exit status.
static bool any_wrong;

static double right_or_nan(const char *text, double value) {
    CUDA(cudaStreamSynchronize(stream));
    uint64_t wrong = read_word(args.wrong);
    if (wrong == 0)
        return value;
    fprintf(stderr, "PE %d: %s, %s: wrong data, %llu times\n", me, library, text,
            (unsigned long long)wrong);
    CUDA(cudaMemset(args.wrong, 0, sizeof *args.wrong));
    any_wrong = true;
    return NAN;
}

__device__ static uint64_t device_ns() {
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
    return ns;
}

__device__ static uint64_t thread_index() {
    return blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
}

__device__ static uint64_t thread_count() {
    return (uint64_t)gridDim.x * blockDim.x;
}

// Who has written an array: `from`, or, where tile_words are set, PEs in turn, as put_turns has it.
struct written {
    int from;
    size_t tile_words;
    int blocks, me, n;
};

__device__ static int writer_of(const struct written &by, size_t word) {
    if (by.tile_words == 0)
        return by.from;
    size_t turn = word / by.tile_words / by.blocks % (by.n - 1);
    return (int)((by.me + 2 * by.n - 1 - turn) % by.n);
}

__host__ __device__ static uint64_t seed_of(int pe) {
    return (uint64_t)pe + 1;
}

__global__ static void count_wrong(const uint64_t *words, size_t n, struct written by,
                                   uint64_t *wrong) {
    for (size_t i = thread_index(); i < n; i += thread_count())
        if (words[i] != word_at(seed_of(writer_of(by, i)), i))
            atomicAdd((unsigned long long *)wrong, 1ull);
}

static void check_dest(size_t size, int from, size_t tile_bytes) {
    struct written by = {from, tile_bytes / 8, args.blocks, me, npes};
    count_wrong<<<64, 256, 0, stream>>>((const uint64_t *)args.dest, size / 8, by, args.wrong);
    CUDA(cudaGetLastError());
}

static void poison(size_t size) {
    CUDA(cudaMemset(args.dest, POISON, size));
    CUDA(cudaDeviceSynchronize());
    meet();
}

// Microseconds of a round of what `launch` starts, which leaves nanoseconds in *args.ns.
static double round_us(enqueue *launch) {
    double samples[SAMPLES];
    for (int i = -2; i < SAMPLES; i++) {
        launch(i);
        CUDA(cudaGetLastError());
        CUDA(cudaStreamSynchronize(stream));
        if (i >= 0)
            samples[i] = 1e-3 * (double)read_word(args.ns) / (args.rounds - WARM);
    }
    return median(samples, SAMPLES);
}

// --- Put-with-signal, there and back ------------------------------------------------------------

enum { WORD = 0 }; // a size: 8 bytes by value, for which a library may have a call of its own

// By one thread or by a block of so many; the size is a constant, as in most kernels.
template <int THREADS, size_t SIZE>
__device__ static void send(const struct calls &c, char *dest, const char *source, uint64_t *signal,
                            uint64_t value, int pe) {
    if (SIZE == WORD)
        c.word_signal((uint64_t *)dest, (const uint64_t *)source, signal, value, pe);
    else if (THREADS > 1)
        c.put_signal_b(dest, source, SIZE, signal, value, pe);
    else
        c.put_signal_t(dest, source, SIZE, signal, value, pe);
}

template <int THREADS>
__device__ static void await(const struct calls &c, uint64_t *signal, uint64_t value) {
    if (THREADS > 1)
        c.wait_b(signal, value);
    else
        c.wait_t(signal, value);
}

// Rounds take turns on lines of memory: the ways to them differ, and which one a library's word
// gets is luck.
template <int THREADS, size_t SIZE>
__global__ static void __launch_bounds__(THREADS)
    ping_pong(const __grid_constant__ struct calls c, char *dest, const char *source,
              uint64_t *signal, uint64_t first, int rounds, int me, uint64_t *ns) {
    uint64_t start = 0;
    for (int i = 0; i < rounds; i++) {
        uint64_t value = first + (uint64_t)i + 1;
        int at = i % LINES * LINE_BYTES;
        uint64_t *word = signal + at / (int)sizeof *signal;
        if (i == WARM)
            start = device_ns();
        if (me == 1)
            await<THREADS>(c, word, value);
        send<THREADS, SIZE>(c, dest + at, source + at, word, value, 1 - me);
        if (me == 0)
            await<THREADS>(c, word, value);
    }
    if (thread_index() == 0)
        *ns = device_ns() - start;
}

template <int THREADS, size_t SIZE> static void launch_ping_pong(int i) {
    uint64_t first = args.used + (uint64_t)(i + WARM) * (uint64_t)args.rounds;
    ping_pong<THREADS, SIZE><<<1, THREADS, 0, stream>>>(
        args.calls, args.dest, args.source, args.words, first, args.rounds, me, args.ns);
}

template <int THREADS, size_t SIZE> static void signal_row(const char *text) {
    size_t bytes = SIZE == WORD ? sizeof(uint64_t) : SIZE;
    poison(bytes);
    if (me < 2) {
        double us = 0.5 * round_us(launch_ping_pong<THREADS, SIZE>);
        check_dest(bytes, 1 - me, 0);
        row(text, right_or_nan(text, us), "us");
    }
    args.used += (uint64_t)(WARM + SAMPLES) * (uint64_t)args.rounds;
    meet();
}

// --- Meetings -----------------------------------------------------------------------------------

enum meeting { BLOCK_BARRIER, BLOCK_SYNC, GRID_BARRIER };

template <enum meeting KIND> __device__ static void meet_once(const struct calls &c) {
    if (KIND == BLOCK_BARRIER)
        c.barrier_b();
    else if (KIND == BLOCK_SYNC)
        c.sync_b();
    else
        c.barrier_grid();
}

template <enum meeting KIND>
__global__ static void meetings(const __grid_constant__ struct calls c, int rounds, uint64_t *ns) {
    uint64_t start = 0;
    for (int i = 0; i < rounds; i++) {
        if (i == WARM)
            start = device_ns();
        meet_once<KIND>(c);
    }
    if (thread_index() == 0)
        *ns = device_ns() - start;
}

// Each round a block's word is told to the next PE, and behind the barrier another block reads it.
template <enum meeting KIND>
__global__ static void meetings_checked(const __grid_constant__ struct calls c, uint64_t *words,
                                        uint64_t first, int rounds, int peer, uint64_t *wrong) {
    unsigned other = (blockIdx.x + 1) % gridDim.x;
    for (int i = 1; i <= rounds; i++) {
        if (threadIdx.x == 0)
            c.p(words + blockIdx.x, first + (uint64_t)i, peer);
        meet_once<KIND>(c);
        if (threadIdx.x == 0 && ((volatile uint64_t *)words)[other] != first + (uint64_t)i)
            atomicAdd((unsigned long long *)wrong, 1ull);
        meet_once<KIND>(c);
    }
}

// A grid that meets is resident as a whole: each library has its way to start such a one.
static void launched(const void *kernel, int blocks, int threads, void **arguments);

template <enum meeting KIND> static void launch_meetings(int) {
    void *arguments[] = {&args.calls, &args.rounds, &args.ns};
    launched((const void *)meetings<KIND>, args.blocks, MEETING_THREADS, arguments);
}

template <enum meeting KIND> static void meeting_row(const char *text, int blocks) {
    args.blocks = blocks;
    meet();
    double us = round_us(launch_meetings<KIND>);
    if (KIND != BLOCK_SYNC) {
        int rounds = 2 * WARM;
        void *arguments[] = {&args.calls, &args.words, &args.used,
                             &rounds,     &args.peer,  &args.wrong};
        launched((const void *)meetings_checked<KIND>, blocks, MEETING_THREADS, arguments);
        args.used += (uint64_t)rounds;
    }
    row(text, right_or_nan(text, us), "us");
    meet();
}

// --- Bandwidths ---------------------------------------------------------------------------------

// Of a grid with one block on each multiprocessor: this one's number among the `blocks` that work,
// which lie as far apart as can be, or -1. Multiprocessors that are neighbours share a way out: 8
// of them put 310 GB/s on four H100s, and 8 that lie apart 359.
__device__ static int number_of_block(int blocks) {
    int number, count = (int)gridDim.x;
    asm("mov.u32 %0, %%smid;" : "=r"(number));
    return number * blocks % count < blocks ? number * blocks / count : -1;
}

// Each block has one part of the array, and one call for it.
template <bool GET>
__global__ static void __launch_bounds__(PUT_THREADS)
    move_parts(const __grid_constant__ struct calls c, char *dest, const char *source, size_t size,
               int blocks, int peer) {
    int number = number_of_block(blocks);
    if (number < 0)
        return;
    size_t part = size / blocks & ~(size_t)127, at = number * part;
    size_t mine = number == blocks - 1 ? size - at : part;
    if (GET)
        c.get_b(dest + at, source + at, mine, peer);
    else
        c.put_b(dest + at, source + at, mine, peer);
}

// Tiles, each to the next peer.
__global__ static void __launch_bounds__(PUT_THREADS)
    put_turns(const __grid_constant__ struct calls c, char *dest, const char *source, size_t size,
              int blocks, int me, int n) {
    int number = number_of_block(blocks);
    for (size_t tile = number; number >= 0 && tile < size / TILE; tile += blocks)
        c.put_b(dest + tile * TILE, source + tile * TILE, TILE,
                (int)((me + 1 + tile / blocks % (n - 1)) % n));
}

static int multiprocessors() {
    int n;
    CUDA(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, me % ngpus));
    return n;
}

// One block on each multiprocessor, which has shared memory for one.
template <class... PARAMETERS, class... ARGUMENTS>
static void launch_everywhere(void (*kernel)(PARAMETERS...), int threads, ARGUMENTS... arguments) {
    CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
    kernel<<<multiprocessors(), threads, SHARED_BYTES, stream>>>(arguments...);
}

template <bool GET> static void launch_parts(int) {
    launch_everywhere(move_parts<GET>, PUT_THREADS, args.calls, args.dest, args.source, PUT_BYTES,
                      args.blocks, args.peer);
}

static void launch_turns(int) {
    launch_everywhere(put_turns, PUT_THREADS, args.calls, args.dest, args.source, PUT_BYTES,
                      args.blocks, me, npes);
}

// Of what leaves, or comes to, each GPU, all at once. `in_turn`: so many bytes to each peer in
// turn.
static void bandwidth_row(const char *what, int blocks, enqueue *body, int from, size_t in_turn) {
    char text[96];
    const int calls = 2;
    snprintf(text, sizeof text, "kernel: %s, %d block%s", what, blocks, blocks > 1 ? "s" : "");
    args.blocks = blocks;
    poison(PUT_BYTES);
    double us = eager_us(body, calls);
    CUDA(cudaGetLastError());
    meet();
    check_dest(PUT_BYTES, from, in_turn);
    row(text, right_or_nan(text, gigabytes_per_second(PUT_BYTES, us)), "GB/s");
    meet();
}

static int last_pe() {
    return (me + npes - 1) % npes;
}

// By 1, 8 and 24 blocks, and one on each multiprocessor.
static void bandwidth_rows(const char *what, enqueue *body, int from, size_t in_turn) {
    const int counts[] = {1, 8, 24, multiprocessors()};
    for (int k = 0; k < LENGTH(counts); k++)
        bandwidth_row(what, counts[k], body, from, in_turn);
}

// --- Words --------------------------------------------------------------------------------------

__global__ static void add_words(const __grid_constant__ struct calls c, uint64_t *words,
                                 int peer) {
    for (uint64_t i = 0; i < ADDS; i++)
        c.add(words + (thread_index() + i * thread_count()) % ADD_WORDS, 1, peer);
}

__global__ static void put_words(const __grid_constant__ struct calls c, uint64_t *dest,
                                 const uint64_t *source, size_t n, int peer) {
    for (size_t i = thread_index(); i < n; i += thread_count())
        c.p(dest + i, source[i], peer);
}

__global__ static void fetch_adds(const __grid_constant__ struct calls c, uint64_t *word,
                                  int rounds, int peer, uint64_t *ns) {
    uint64_t start = 0, last = 0;
    for (int i = 0; i < rounds; i++) {
        if (i == WARM)
            start = device_ns();
        last = c.fetch_add(word, 1 + (last >> 63), peer);
    }
    *ns = device_ns() - start;
}

static uint64_t times; // the body has been called

static void launch_adds(int) {
    times++;
    add_words<<<RATE_BLOCKS, RATE_THREADS, 0, stream>>>(args.calls, args.words, args.peer);
}

static void launch_words(int) {
    put_words<<<RATE_BLOCKS, RATE_THREADS, 0, stream>>>(
        args.calls, (uint64_t *)args.dest, (const uint64_t *)args.source, RATE_WORDS, args.peer);
}

static void launch_fetch_adds(int) {
    times++;
    fetch_adds<<<1, 1, 0, stream>>>(args.calls, args.words, args.rounds, args.peer, args.ns);
}

// All `n` words have been added to so often.
__global__ static void count_unequal(const uint64_t *words, size_t n, uint64_t sum,
                                     uint64_t *wrong) {
    for (size_t i = thread_index(); i < n; i += thread_count())
        if (words[i] != sum)
            atomicAdd((unsigned long long *)wrong, 1ull);
}

static void zero_words() {
    CUDA(cudaMemset(args.words, 0, ADD_WORDS * sizeof *args.words));
    CUDA(cudaDeviceSynchronize());
    times = 0;
    meet();
}

static void expect_words(size_t n, uint64_t sum) {
    meet();
    count_unequal<<<64, 256, 0, stream>>>(args.words, n, sum, args.wrong);
    CUDA(cudaGetLastError());
}

static void atomic_rows() {
    const char *text = "kernel: fetch_add, there and back";
    const uint64_t adds = (uint64_t)RATE_BLOCKS * RATE_THREADS * ADDS;
    zero_words();
    double us = round_us(launch_fetch_adds);
    expect_words(1, times * (uint64_t)args.rounds);
    row(text, right_or_nan(text, us), "us");
    meet();

    text = "kernel: adds of 8 B by 16 blocks";
    zero_words();
    us = eager_us(launch_adds, 2);
    expect_words(ADD_WORDS, times * adds / ADD_WORDS);
    row(text, right_or_nan(text, (double)adds / us), "M/s");
    zero_words();
}

static void word_rows() {
    const char *text = "kernel: words of 8 B by 16 blocks";
    poison(RATE_WORDS * 8);
    double us = eager_us(launch_words, 2);
    CUDA(cudaGetLastError());
    meet();
    check_dest(RATE_WORDS * 8, last_pe(), 0);
    row(text, right_or_nan(text, (double)RATE_WORDS / us), "M/s");
    meet();
}

// --- All rows that every library has ------------------------------------------------------------

static void rows_of_kernels() {
    fill(args.source, PUT_BYTES, seed_of(me));
    zero_words();
    signal_row<1, 8>("kernel: put-with-signal 8 B by a thread, one way");
    signal_row<1, WORD>("kernel: word of 8 B with its signal, one way");
    signal_row<256, 16 << 10>("kernel: put-with-signal 16 KiB by 256 threads, one way");
    signal_row<512, 16 << 10>("kernel: put-with-signal 16 KiB by 512 threads, one way");
    signal_row<1024, 16 << 10>("kernel: put-with-signal 16 KiB by 1024 threads, one way");
    meeting_row<BLOCK_BARRIER>("kernel: barrier of one block", 1);
    meeting_row<BLOCK_SYNC>("kernel: sync of one block", 1);
    meeting_row<GRID_BARRIER>("kernel: barrier of a grid of 16 blocks", GRID_BLOCKS);
    atomic_rows();
    word_rows();
    bandwidth_rows("put to the next PE", launch_parts<false>, last_pe(), 0);
    if (npes > 2)
        bandwidth_rows("put to all peers in turn", launch_turns, 0, TILE);
    bandwidth_rows("get from the next PE", launch_parts<true>, args.peer, 0);
}

#endif
